"""`yarnstick run`: the main job, with progress, an end by the clock, and a partial report after Ctrl-C."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from pipeline.commands.frame import (
    INTERRUPTED,
    ProfileOption,
    RunOption,
    SetOption,
    StoreOption,
    sentences,
    settings_given,
)
from store.errors import SettingError, StoreError

if TYPE_CHECKING:
    from pipeline.experiment import Experiment
    from pipeline.progress import Progress

LONGEST_MINUTES = 60 * 24 * 366


def _minutes(value: float | None) -> float | None:
    """A range of typer's would let nan through."""
    if value is not None and not 0 < value <= LONGEST_MINUTES:
        raise typer.BadParameter(f"{value:g} is not above 0 and at most {LONGEST_MINUTES}")
    return value


@sentences
def run(
    profile: ProfileOption = "quick",
    store: StoreOption = None,
    run_id: RunOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start a new run even if one is unfinished.")] = False,
    max_minutes: Annotated[
        float | None,
        typer.Option("--max-minutes", metavar="N", help="Begin no trial that would end later.", callback=_minutes),
    ] = None,
    set_: SetOption = None,
) -> None:
    """Measure all trials of a profile and report: the main job."""
    from pipeline.budget import Budget
    from pipeline.experiment import experiment, unfinished_run
    from pipeline.progress import Progress
    from pipeline.run_file import new_run_id, read_run

    budget = Budget(minutes=max_minutes) if max_minutes is not None else None
    settings, given = settings_given(profile, store, set_)
    resumed = None if run_id or fresh else unfinished_run(settings)
    name = run_id or resumed or new_run_id(profile)
    measured = experiment(profile, name, given)
    measured.budget = budget
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
        _interrupted(measured, progress, given)
    progress.total()
    try:
        if not isinstance(measured.broken, StoreError) and measured.trials.outcomes():
            _tell(measured)
    except StoreError:
        if succeeded:  # else an error is told already
            raise
    if not succeeded:
        raise typer.Exit(1)
    if measured.ended_early:
        print(f"Ended by --max-minutes {measured.ended_early}; {_continues(measured)}.")


def _build(profile: str, run_id: str, settings: str) -> bool:
    import luigi

    from pipeline.tasks import Report

    luigi.configuration.get_config().set("core", "no_configure_logging", "true")  # progress.py shows what is shown
    task = Report(profile=profile, run_id=run_id, settings=settings)
    result = luigi.build([task], local_scheduler=True, workers=1, detailed_summary=True)
    return bool(result.status in (luigi.LuigiStatusCode.SUCCESS, luigi.LuigiStatusCode.SUCCESS_WITH_RETRY))


def _interrupted(run: Experiment, progress: Progress | None, settings: str) -> NoReturn:
    """What was measured is reported, unless a second Ctrl-C says that it need not be; the rest is for the next call."""
    from pipeline.partial_report import report_partly

    end = "Interrupted"
    try:
        run.abort()
        if progress is not None:
            progress.clear()
            progress.total()
        report_partly(run.settings.profile_name, run.run_id, settings)
    except KeyboardInterrupt:
        end = "Interrupted again, so the report may lack the last trials"
    print(f"{end}; {_continues(run)}.", file=sys.stderr)
    raise typer.Exit(INTERRUPTED)


def _continues(run: Experiment) -> str:
    return f"the same command with --run-id {run.run_id} continues with the trials that are missing"


def _tell(run: Experiment) -> None:
    from pipeline.reporting import judged_otherwise, summary

    begun = run.begin()
    for line in (*summary(run.store, begun), *judged_otherwise(run.settings, begun)):
        print(line)
