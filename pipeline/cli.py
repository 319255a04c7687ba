"""The command line. Errors go to standard error as one `Error: ...` line; exit code 1, or 2 for wrong usage."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands import environment, history, import_timings, predict, replay, run, runs, size
from pipeline.commands.frame import (
    JsonOption,
    KnownRunOption,
    ProfileOption,
    SetOption,
    StoreOption,
    print_json,
    sentences,
    settings_given,
)
from pipeline.completion import words_of_bash
from store.errors import DataError, SettingError

app = typer.Typer(
    help="Where should this network be trained: on the Hadoop cluster, on one CPU, on one GPU? Measures it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """The console script."""
    with words_of_bash():
        app(prog_name="yarnstick")


@app.callback(invoke_without_command=True)
def version_option(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"yarnstick {installed('yarnstick')}")
        raise typer.Exit


app.command()(run.run)
app.command()(replay.replay)
app.command()(predict.predict)
app.command()(size.size)
app.command("import")(import_timings.import_)
app.command()(history.history)
app.command()(environment.pack_environment)
app.add_typer(runs.app, name="runs")


@app.command()
@sentences
def plan(
    profile: ProfileOption = "quick",
    store: StoreOption = None,
    json: JsonOption = False,
    set_: SetOption = None,
) -> None:
    """List the trials that a profile asks for; runs nothing."""
    from pipeline.estimate import estimate
    from pipeline.experiment import Experiment
    from pipeline.progress import describe

    settings, _ = settings_given(profile, store, set_)
    experiment = Experiment(settings, "plan")
    planned = experiment.planned
    possible = [each.spec for each in planned if each.impossible is None]
    epochs = sum(spec.hyperparameters.epochs for spec in possible)
    estimated = estimate(experiment.store, possible)
    if json:
        trials = [
            {"place": place, "block": each.spec.trial, "what": describe(each.spec), "impossible": each.impossible}
            | {"spec": each.spec}
            for place, each in enumerate(planned, 1)
        ]
        print_json({"trials": trials, "possible": len(possible), "epochs": epochs, "estimate": estimated})
        return
    for place, each in enumerate(planned, 1):
        status = f"not possible: {each.impossible}" if each.impossible else ""
        print(f"{place:4}  block {each.spec.trial}  {describe(each.spec)}  {status}".rstrip())
    print(f"{len(possible)} of {len(planned)} trials can run here, {epochs} epochs in all")
    print(estimated)


@app.command()
@sentences
def doctor(
    profile: ProfileOption = "quick",
    store: StoreOption = None,
    json: JsonOption = False,
    set_: SetOption = None,
    probe: Annotated[bool, typer.Option("--probe", help="Ask the cluster's nodes too, by a small job.")] = False,
) -> None:
    """Check that a profile can be measured here: each check with ok, or what to do."""
    from pipeline.doctor import examine, line

    failed = False
    found = []
    for check in examine(profile, store=store, overrides=set_ or [], probe=probe):
        failed = failed or not check.ok
        found.append(check)
        if not json:
            print(line(check), flush=True)
    if json:
        print_json(found)
    if failed:
        raise typer.Exit(1)


@app.command()
@sentences
def data(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which; without one, every real one.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
    set_: SetOption = None,
) -> None:
    """Fetch and check datasets ahead of time, or say where to put them."""
    from pipeline.datasets.ahead_of_time import fetch_all, line

    settings, _ = settings_given("default", store, set_)
    found = []
    for each in fetch_all(names or [], settings):
        found.append(each)
        if not json:
            print(line(each), flush=True)
    if json:
        print_json(found)
    missing = [each.name for each in found if not each.ok]
    if missing:
        raise DataError(f"{len(missing)} of {len(found)} datasets could not be had: {', '.join(missing)}")


@app.command("report")
@sentences
def report_again(run_id: KnownRunOption, store: StoreOption = None, set_: SetOption = None) -> None:
    """Make tables, figures and verdict again from the records, without training, at other prices or targets too."""
    from pipeline.reporting import again, check_judging

    settings, _ = settings_given("default", store, set_)
    check_judging(settings)
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
