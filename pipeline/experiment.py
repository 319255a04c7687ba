"""One run of one profile: what its tasks share, found in the store or begun."""

from __future__ import annotations

import atexit
import logging
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from socket import gethostname
from typing import Any

import msgspec

from models.outcome import Outcome
from models.probes import Peak, cpu_name, memory_mib, peak_keys, usable_cores
from models.protocol import Surroundings, Yarn
from models.run import Event, Session
from models.spark_home import checked_home
from models.spec import TrialSpec
from pipeline.budget import Budget
from pipeline.config import read_settings_json
from pipeline.datasets.pack import open_dataset
from pipeline.datasets.sources import Source, dataset_slug, source
from pipeline.estimate import last_times, times_of
from pipeline.launch import Launcher
from pipeline.lease import StillHeldError, lease_file, measuring_lease
from pipeline.opening import open_store
from pipeline.peaks import Probing, machine_peaks
from pipeline.plan import Limits, Planned, Subject, plan
from pipeline.presence import Presence
from pipeline.run_file import (
    PUBLISHED,
    RUN,
    Published,
    RunFile,
    are_alike,
    check_run_id,
    checkout_commit,
    differences,
    read_marker,
    read_run,
)
from pipeline.settings import Settings
from pipeline.trials import Trials
from pipeline.warm import class_archives
from store.errors import SettingError, UnfinishedError, YarnstickError

log = logging.getLogger("luigi-interface.yarnstick")  # goes where Luigi's own log goes
WAITING = "waits until another measurement on this host ends (%s)"


class Experiment:
    def __init__(self, settings: Settings, run_id: str) -> None:
        self.settings = settings
        self.run_id = check_run_id(run_id)
        self.store = open_store(settings)
        self.path = f"runs/{run_id}"
        self.invocation = uuid.uuid4().hex
        self.listener: Callable[[Event], None] = lambda event: None
        self.budget: Budget | None = None
        self.ended_early: str | None = None  # why trials are left to another invocation
        self._marked: set[str] = set()
        self.broken: YarnstickError | None = None  # why nothing more can be measured, as a full disk
        self.trials = Trials(
            self.store,
            f"{self.path}/trials",
            invocation=self.invocation,
            noisy_repeats=settings.main.noisy_repeats,
        )

    @cached_property
    def sources(self) -> dict[str, Source]:
        """By the slug of their data."""
        found = [source(name, self.settings) for name in dict.fromkeys(self.settings.profile.datasets)]
        return {dataset_slug(each, self.settings): each for each in found}

    @cached_property
    def planned(self) -> list[Planned]:
        subjects = [
            Subject(name=each.name, slug=slug, columns=about.columns, classes=about.classes)
            for slug, each in self.sources.items()
            for about in (each.description(),)
        ]
        return plan(self.settings, subjects, self.limits)

    @cached_property
    def _presence(self) -> Presence:
        return Presence(self.store, self.path)

    @cached_property
    def _earlier_times(self) -> dict[str, float]:
        return last_times(self.store)

    @cached_property
    def limits(self) -> Limits:
        room = None
        if self.settings.spark.master == "yarn":
            from pipeline.on_yarn import queue_room

            room = queue_room(self.settings)
        return Limits(
            cores=usable_cores(),
            memory_mib=memory_mib(),
            room=room,
            has_executors=self.settings.spark.url is None,
        )

    @cached_property
    def launcher(self) -> Launcher:
        """Made when the first trial is due: only then all data is packed."""
        main = self.settings.main
        home = self.settings.spark.home and checked_home(self.settings.spark.home)
        begun = self.begin()
        session = Session(
            run_id=self.run_id,
            machine=begun.machine,
            machine_memory_gb=begun.memory_gb,
            commit=begun.commit,
            session=self.settings.profile.session,
            noisy_cores=main.quiet_cores(self.limits.cores),
            quiet_share=main.noisy_share,
            quiet_seconds=self.settings.hadoop.quiet_seconds,
            datasets={slug: open_dataset(self.store, slug, each.name) for slug, each in self.sources.items()},
            surroundings=Surroundings(
                work=main.cache,
                spark_conf=self.settings.spark.conf,
                overhead_mib=self.settings.spark.overhead_mib,
                stall_seconds=self.settings.spark.stall_seconds,
                targets=self.settings.target.refitted,
                shares_applications=self.settings.profile.session == "shared",
                archives=main.cache,
                # Made of the classes of PySpark's own.
                class_archives={} if home else class_archives(main.cache),
                yarn=self._yarn(),
                spark_url=self.settings.spark.url,
                spark_home=home,
            ),
            parent=os.getpid(),
            peaks=self._peaks(),
        )
        made = Launcher(
            session=session,
            shares_sessions=self.settings.profile.session == "shared",
            work=main.cache / "work",
            invocation=self.invocation,
            listener=self._hear,
        )
        atexit.register(made.abort)  # where an error ended the run before its last trial
        return made

    def _hear(self, event: Event) -> None:
        if event.kind == "waits":
            log.info("%s", event.note)
        else:
            self.listener(event)

    def _yarn(self) -> Yarn | None:
        """What lies in the way of a session on YARN is found before the first trial."""
        if self.settings.spark.master != "yarn":
            return None
        from pipeline.on_yarn import prepared

        return prepared(self.settings, self.store, folder=self.path)

    def _peaks(self) -> tuple[Peak, ...]:
        main, begun = self.settings.main, self.begin()
        how = Probing(
            machine=begun.machine,
            cpu=cpu_name(),
            seconds=main.probe_seconds,
            noisy_cores=main.quiet_cores(self.limits.cores),
            repeats=main.noisy_repeats,
        )
        possible = [each.spec for each in self.planned if not each.impossible]
        keys = peak_keys(possible, precision=self.settings.baseline.precision, cores=self.limits.cores)
        return machine_peaks(self.store, self.path, keys, how=how)

    def begin(self) -> RunFile:
        """Write down what this run is made with, or check that it is the same as before; and that we are at it."""
        found = read_run(self.store, self.run_id)
        if found is None:
            found = self._run_file()
            self.store.write(f"{self.path}/{RUN}", msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
            self.store.collect()
        self.check_same(found)
        self._presence.announce()
        return found

    def check_same(self, found: RunFile) -> None:
        mine = self._run_file()
        differing = differences(found, mine)
        if differing:
            raise SettingError(
                f"run {self.run_id} was begun with other values of {', '.join(differing)}; "
                f"give those values again, or another --run-id"
            )
        if self.changes_machine(found, mine):
            raise SettingError(
                f"run {self.run_id} was begun on {found.where}, and what is left of it would be timed on {mine.where}; "
                f"continue it there, or begin another one here with another --run-id: yarnstick runs merge puts both "
                f"into one report"
            )

    def changes_machine(self, begun: RunFile, here: RunFile) -> bool:
        """Whether a trial that is left would be timed on another machine than those before it."""
        return not are_alike(begun, here) and any(
            self._is_timed_here(each.spec) and self.trials.needs(each.spec) is not None for each in self.planned
        )

    def _is_timed_here(self, spec: TrialSpec) -> bool:
        """Else on executors of a cluster, which is the same one for all machines that submit to it."""
        return spec.resources.executors is None or self.settings.spark.master == "local-cluster"

    def _run_file(self) -> RunFile:
        return RunFile(
            run_id=self.run_id,
            profile=self.settings.profile_name,
            settings=self.settings.fingerprint(),
            datasets={each.name: slug for slug, each in self.sources.items()},
            rows={each.name: each.description().train_rows or 0 for each in self.sources.values()},
            trials=len(self.planned),
            machine=self.settings.main.machine or gethostname(),
            cpu=cpu_name(),
            cores=self.limits.cores,
            memory_gb=round(self.limits.memory_mib / 1024, 1),
            commit=checkout_commit(),
            begun_at=datetime.now(UTC),
        )

    def measure(self, spec: TrialSpec) -> None:
        """Run a trial until it needs no further attempt; each attempt is published when it ends."""
        impossible = next((each.impossible for each in self.planned if each.spec == spec), None)
        lease = lease_file(self.settings.main.lease)
        patience = None if self.budget is None else max(0.0, self.budget.left())
        try:
            with self.unbroken(), measuring_lease(lease, waiting=lambda: log.info(WAITING, lease), patience=patience):
                # Asked only now: while this one waited, another process may have measured it.
                self.trials.look()
                while (attempt := self.trials.needs(spec)) is not None:
                    if self._ends_before(attempt):
                        return
                    position = len(self.trials.outcomes()) + 1
                    if impossible:
                        measured = self.launcher.impossible(attempt, impossible, position=position)
                    else:
                        measured = self.launcher.measure(attempt, position=position)
                    self.trials.publish(measured.outcome, events=measured.events, logs=measured.logs)
        except StillHeldError:
            self._end_early("another measurement on this host went on until its minutes had passed")

    @contextmanager
    def unbroken(self) -> Iterator[None]:
        """What stops one step stops all that are left: at once, as the same error, and without asking anybody again."""
        if self.broken is not None:
            raise self.broken
        try:
            yield
        except YarnstickError as error:
            self.broken = error
            raise

    def is_over(self, spec: TrialSpec) -> bool:
        """Whether nothing more is done about a trial in this invocation."""
        return self.trials.needs(spec) is None or self.ended_early is not None

    def _ends_before(self, spec: TrialSpec) -> bool:
        """Whether the budget has no room for this trial. Later ones get none either: blocks stay complete."""
        if self.budget is not None and self.ended_early is None:
            took = self._earlier_times | times_of(self.trials.outcomes())
            refused = self.budget.refuses(took.get(spec.configuration))
            if refused:
                self._end_early(refused)
        return self.ended_early is not None

    def _end_early(self, reason: str) -> None:
        self.ended_early = f"after {self.done()} of {len(self.planned)} trials ({reason})"
        if not self.trials.outcomes():
            # The same error for all trials: it is told once.
            self.broken = UnfinishedError(
                f"no trial of run {self.run_id} was begun, as {reason}; give more than --max-minutes "
                f"{self.budget and self.budget.minutes:g}"
            )
            raise self.broken

    def close(self) -> None:
        """Nothing more is to be measured: what trials shared ends."""
        if "launcher" in self.__dict__:
            self.launcher.close()

    def abort(self) -> None:
        """End what is being measured, now."""
        if "launcher" in self.__dict__:
            self.launcher.abort()

    def marker(self, name: str) -> Published | None:
        """What the last Merge (`MERGED`) or Report (`PUBLISHED`) covered."""
        return read_marker(self.store, f"{self.path}/{name}")

    def mark(self, name: str) -> None:
        """Note what it covers, now that it is published."""
        marker = Published(trials=self.covered(), finished=self.is_measured() and not self.failed())
        self.store.write(f"{self.path}/{name}", msgspec.json.encode(marker))
        self._marked.add(name)

    def covered(self) -> tuple[str, ...]:
        """The trials that a report made now would cover."""
        return tuple(sorted(outcome.spec.slug for outcome in self.trials.outcomes()))

    def is_current(self, name: str) -> bool:
        if name in self._marked:
            return True  # for this invocation, whatever another one measures meanwhile
        marker = self.marker(name)
        return self.is_measured() and marker is not None and marker.trials == self.covered()

    def failed(self) -> list[Outcome]:
        return self.trials.failed(planned.spec for planned in self.planned)

    def is_measured(self) -> bool:
        return self.done() == len(self.planned)

    def done(self) -> int:
        """How many of the planned trials need no further attempt."""
        return self.trials.done(planned.spec for planned in self.planned)


@lru_cache(maxsize=8)
def experiment(profile: str, run_id: str, settings: str) -> Experiment:
    """The tasks of one run share one; `settings` is the JSON object of the `luigi` line."""
    return Experiment(read_settings_json(profile, parse_settings(settings)), run_id)


def parse_settings(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise SettingError(f'--settings: {error}; write a JSON object as {{"section.key": "value"}}') from None


def unfinished_run(settings: Settings) -> str | None:
    """The newest run of the same settings whose report does not cover all of it yet, and that can go on here."""
    probe = Experiment(settings, "unfinished")
    mine = probe._run_file()
    found = []
    for entry in probe.store.list("runs"):
        with suppress(YarnstickError):  # a damaged run, or one of another version, is none to continue
            run = read_run(probe.store, entry.name)
            if run is not None and run.profile == mine.profile and not differences(run, mine):
                there = Experiment(settings, entry.name)
                published = there.marker(PUBLISHED)
                if not (published and published.finished) and not there.changes_machine(run, mine):
                    found.append((run.begun_at, entry.name))
    return max(found)[1] if found else None
