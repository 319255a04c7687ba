"""The command line. Errors go to standard error as one `Error: ...` line; exit code 1, or 2 for wrong usage."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from store.errors import SettingError, YarnstickError

if TYPE_CHECKING:
    from pipeline.experiment import Experiment
    from pipeline.progress import Progress
    from pipeline.settings import Settings

INTERRUPTED = 130

app = typer.Typer(
    help="Where should this network be trained: on the Hadoop cluster, on one CPU, on one GPU? Measures it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ProfileOption = Annotated[str, typer.Option("--profile", help="A [profile.NAME] of luigi.cfg.")]
StoreOption = Annotated[str | None, typer.Option("--store", help="Where data and runs are kept.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="A setting, over luigi.cfg.")
]
RunOption = Annotated[str | None, typer.Option("--run-id", help="Names the run; an unfinished one is continued.")]


def main() -> None:
    """The console script."""
    app()


def sentences(command: Callable[..., None]) -> Callable[..., None]:
    """What a user can mend is told in one line."""

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except YarnstickError as error:
            print(f"Error: {error}", file=sys.stderr)
            raise typer.Exit(1) from None

    return guarded


@app.callback(invoke_without_command=True)
def version_option(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"yarnstick {installed('yarnstick')}")
        raise typer.Exit


@app.command()
@sentences
def run(
    profile: ProfileOption = "quick",
    store: StoreOption = None,
    run_id: RunOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start a new run even if one is unfinished.")] = False,
    set_: SetOption = None,
) -> None:
    """Measure all trials of a profile and report: the main job."""
    from pipeline.experiment import experiment, new_run_id, read_run, unfinished_run
    from pipeline.progress import Progress

    settings, given = _settings(profile, store, set_)
    resumed = None if run_id or fresh else unfinished_run(settings)
    name = run_id or resumed or new_run_id(profile)
    measured = experiment(profile, name, given)
    if fresh and read_run(measured.store, name) is not None:
        raise SettingError(f"run {name} is there already; leave out --fresh to continue it, or give another --run-id")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    progress = None
    try:
        measured.begin()
        progress = Progress(measured)
        progress.attach(resumed=resumed is not None)
        succeeded = _build(profile, name, given)
    except KeyboardInterrupt:
        _interrupted(measured, progress)
    progress.total()
    if measured.trials.outcomes():
        _tell(measured)
    if not succeeded:
        raise typer.Exit(1)


@app.command()
@sentences
def plan(profile: ProfileOption = "quick", store: StoreOption = None, set_: SetOption = None) -> None:
    """List the trials that a profile asks for; runs nothing."""
    from pipeline.estimate import estimate
    from pipeline.experiment import Experiment
    from pipeline.progress import describe

    settings, _ = _settings(profile, store, set_)
    experiment = Experiment(settings, "plan")
    planned = experiment.planned
    for place, each in enumerate(planned, 1):
        status = f"not possible: {each.impossible}" if each.impossible else ""
        print(f"{place:4}  block {each.spec.trial}  {describe(each.spec)}  {status}".rstrip())
    possible = [each.spec for each in planned if each.impossible is None]
    epochs = sum(spec.hyperparameters.epochs for spec in possible)
    print(f"{len(possible)} of {len(planned)} trials can run here, {epochs} epochs in all")
    print(estimate(experiment.store, possible))


@app.command("report")
@sentences
def report_again(
    run_id: Annotated[str, typer.Option("--run-id", help="Which run.")],
    store: StoreOption = None,
    set_: SetOption = None,
) -> None:
    """Make tables, figures and verdict again from the records, without training."""
    from pipeline.reporting import again

    settings, _ = _settings("default", store, set_)
    for line in again(settings, run_id):
        print(line)


@app.command()
@sentences
def init(
    folder: Annotated[Path, typer.Argument(help="Where luigi.cfg is written.")] = Path(),
) -> None:
    """Write a documented luigi.cfg here."""
    from pipeline.config import packaged_file

    target = folder / "luigi.cfg"
    if target.exists():
        raise SettingError(f"{target} is there already; remove it, or name another folder")
    try:
        shutil.copyfile(packaged_file(), target)
    except OSError as error:
        raise SettingError(f"{target} cannot be written: {error.strerror}") from None
    print(f"wrote {target}: every setting, documented; next: yarnstick plan")


def _settings(profile: str, store: str | None, overrides: list[str] | None) -> tuple[Settings, str]:
    """The settings, and the same overrides as the JSON that tasks take."""
    from pipeline.config import overrides_json, read_settings

    overrides = overrides or []
    return read_settings(profile, overrides=overrides, store=store), overrides_json(overrides, store=store)


def _build(profile: str, run_id: str, settings: str) -> bool:
    import luigi

    from pipeline.tasks import Report

    luigi.configuration.get_config().set("core", "no_configure_logging", "true")  # progress.py shows what is shown
    task = Report(profile=profile, run_id=run_id, settings=settings)
    result = luigi.build([task], local_scheduler=True, workers=1, detailed_summary=True)
    return bool(result.status in (luigi.LuigiStatusCode.SUCCESS, luigi.LuigiStatusCode.SUCCESS_WITH_RETRY))


def _interrupted(run: Experiment, progress: Progress | None) -> NoReturn:
    """What was measured is reported; the rest is for the next call."""
    from pipeline.reporting import merge, report

    run.abort()
    if progress is not None:
        progress.clear()
        progress.total()
    if run.trials.outcomes():
        merge(run)
        report(run)
        _tell(run)
    following = f"the same command with --run-id {run.run_id} continues with the trials that are missing"
    print(f"Interrupted; {following}.", file=sys.stderr)
    raise typer.Exit(INTERRUPTED)


def _tell(run: Experiment) -> None:
    from pipeline.reporting import summary

    for line in summary(run.store, run.begin()):
        print(line)
