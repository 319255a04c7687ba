"""`yarnstick runs`: what lies in the store, one run, two runs side by side, several in one, and what may go."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.commands.frame import (
    JsonOption,
    KnownRun,
    SetOption,
    StoreOption,
    print_json,
    sentences,
    settings_given,
)
from pipeline.completion import run_ids

app = typer.Typer(help="List, show, compare, merge and clean runs.", no_args_is_help=True, rich_markup_mode=None)


def _days(value: float | None) -> float | None:
    """A range of typer's would let nan through."""
    if value is not None and not 0 <= value < float("inf"):
        raise typer.BadParameter(f"{value:g} is not a number of days, 0 or more")
    return value


@app.command("list")
@sentences
def list_(store: StoreOption = None, json: JsonOption = False, set_: SetOption = None) -> None:
    """All runs of the store, the newest first."""
    from pipeline.opening import open_store
    from pipeline.runs import all_runs, table

    settings, _ = settings_given("default", store, set_)
    found = all_runs(open_store(settings))
    if json:
        print_json(found)
        return
    for line in table(found) or [f"no run in {settings.store.url} yet: start with yarnstick run"]:
        print(line)


@app.command()
@sentences
def show(run: KnownRun, store: StoreOption = None, json: JsonOption = False, set_: SetOption = None) -> None:
    """One run: how far it is, what it found, its settings that are not the shipped ones, and its report."""
    from pipeline.opening import open_store
    from pipeline.runs import shown

    settings, _ = settings_given("default", store, set_)
    found = shown(open_store(settings), run)
    if json:
        print_json(found)
        return
    for line in found.lines():
        print(line)


@app.command()
@sentences
def compare(
    one: KnownRun,
    other: KnownRun,
    store: StoreOption = None,
    json: JsonOption = False,
    set_: SetOption = None,
) -> None:
    """The same configurations of two runs side by side, and whether they differ."""
    from pipeline.opening import open_store
    from pipeline.side_by_side import compared

    settings, _ = settings_given("default", store, set_)
    found = compared(open_store(settings), one, other)
    if json:
        print_json(found)
        return
    for line in found.lines():
        print(line)


@app.command()
@sentences
def merge(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Ids of runs, or directories of copied ones.", autocompletion=run_ids),
    ],
    run_id: Annotated[str, typer.Option("--run-id", help="Names the run that is made of them.")],
    store: StoreOption = None,
    set_: SetOption = None,
) -> None:
    """Make one run of the records of several, as of several machines, with one report. Nothing is measured again."""
    from pipeline.merging import merge_runs

    settings, _ = settings_given("default", store, set_)
    for line in merge_runs(runs, run_id, settings):
        print(line)


@app.command()
@sentences
def clean(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Whole runs to remove.", autocompletion=run_ids),
    ] = None,
    older_than: Annotated[
        float | None,
        typer.Option("--older-than", metavar="DAYS", help="Whole runs that nobody added to since.", callback=_days),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")] = False,
    store: StoreOption = None,
    set_: SetOption = None,
) -> None:
    """Remove what dead processes left, and the runs that are named. A run that is measured now is never removed."""
    from pipeline.cleaning import clean

    settings, _ = settings_given("default", store, set_)
    for line in clean(settings, runs or [], older_than_days=older_than, dry_run=dry_run):
        print(line)
