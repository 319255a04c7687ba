"""`yarnstick doctor`: every check with ok, or what to do; the slow ones only while no trial is measured here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import structs

from models.protocol import names, platform
from pipeline.checks import hadoop, hdfs, machine, places, programs
from pipeline.checks.check import Check, checked, fine
from pipeline.config import read_settings
from pipeline.experiment import Experiment
from pipeline.lease import StillHeldError, lease_file, measuring_lease
from pipeline.opening import reach
from pipeline.settings import Settings
from store.errors import SettingError

SPARK_AXIS = "deploy_modes"  # what only platforms have that are Spark applications
BUSY = "not tried: a trial is being measured on this host, and this would disturb it"
WIDTH = 16  # of a check's name
RETRY_SECONDS = 4.0  # what does not answer now is told now, and not waited for as a run would


def line(check: Check) -> str:
    """One line of the terminal: the advice stands behind what was found."""
    advice = f"; {check.advice}" if check.advice else ""
    return f"{check.word:4}  {check.check:{WIDTH}}  {check.detail}{advice}"


def examine(profile: str, *, store: str | None, overrides: Sequence[str], probe: bool = False) -> Iterator[Check]:
    """In the order in which they are told, each as soon as it is known."""
    yield checked("python", programs.python)
    yield checked("settings files", places.layers)
    found: list[Settings] = []

    def settings_read() -> Check:
        found.append(read_settings(profile, overrides=overrides, store=store))
        return fine(
            f"profile {profile}: {' '.join(found[0].profile.platforms)} on {' '.join(found[0].profile.datasets)}"
        )

    yield checked("settings", settings_read)
    if not found:
        yield checked("java", lambda: programs.java(needed=False))
        return
    [settings] = [_impatient(each) for each in found]
    yield checked("exit codes", places.exit_codes)
    yield from _places(settings)
    yield checked("java", lambda: programs.java(needed=_needs_spark(settings)))
    if all(places.is_known(name, settings) for name in settings.profile.datasets):
        yield checked("cores and memory", lambda: machine.room(Experiment(settings, "doctor")))
    yield checked("clock", machine.clock)
    yield checked("blas", machine.blas)
    yield checked("cuda", lambda: machine.cuda(settings))
    if _has_spark_here(settings):
        yield checked("class archives", lambda: programs.archives(settings))
    if hadoop.runs_mapreduce(settings) or hadoop.runs_spark(settings):
        yield from _yarn(settings, probe=probe)
    yield from _measured(settings)


def _places(settings: Settings) -> Iterator[Check]:
    if reach(settings).is_on_hdfs:
        answers = checked("namenode", lambda: hdfs.namenode(settings))
        yield answers
        if not answers.ok:
            return  # all that follows would wait for it, and say the same
        yield checked("hdfs clock", lambda: hdfs.clock(settings))
        yield checked("hdfs room", lambda: hdfs.room(settings))
    yield checked("store", lambda: places.keeping(settings))
    yield checked("disk", lambda: places.disk(settings))
    yield checked("leftovers", lambda: places.left(settings))
    for name in settings.profile.datasets:
        yield checked("dataset", partial(places.dataset, name, settings))


def _yarn(settings: Settings, *, probe: bool) -> Iterator[Check]:
    if hadoop.runs_mapreduce(settings):
        yield checked("hadoop client", lambda: hadoop.client(settings))
    yield checked("hadoop files", lambda: hadoop.configuration(settings))
    answers = checked("resource manager", lambda: hadoop.resource_manager(settings))
    yield answers
    if answers.ok:
        yield checked("queue", lambda: hadoop.queue(settings))
        yield checked("nodes", lambda: hadoop.nodes(settings))
        yield checked("cluster gpus", lambda: hadoop.gpus(settings))
        if probe:
            from pipeline.checks import nodes

            yield checked("python of nodes", lambda: nodes.probe(settings))


def _measured(settings: Settings) -> Iterator[Check]:
    """What takes the machine for itself, as a trial does."""
    slow: dict[str, Callable[[], Check]] = {
        "other load": lambda: machine.load(settings),
        "matrix product": lambda: machine.products(settings),
    }
    if _has_spark_here(settings):
        slow["spark"] = lambda: programs.spark(settings)
    yield checked("measuring lease", lambda: places.lease(settings))
    try:
        with measuring_lease(lease_file(settings.main.lease), waiting=lambda: None, patience=0.0):
            for name, look in slow.items():
                yield checked(name, look)
    except StillHeldError:
        for name in slow:
            yield checked(name, lambda: fine(BUSY, advice="look again when it has ended"))
    except SettingError:  # the lease's own check has told
        pass


def _impatient(settings: Settings) -> Settings:
    seconds = min(settings.store.retry_seconds, RETRY_SECONDS)
    return structs.replace(settings, store=structs.replace(settings.store, retry_seconds=seconds))


def _has_spark_here(settings: Settings) -> bool:
    """On YARN only the driver is here, or not even that; a session there is no matter of seconds."""
    return _needs_spark(settings) and not hadoop.runs_spark(settings)


def _needs_spark(settings: Settings) -> bool:
    """A name that is not known is told by the plan."""
    known = set(settings.profile.platforms) & set(names())
    return any(SPARK_AXIS in platform(name).axes for name in known)
