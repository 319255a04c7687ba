"""`yarnstick history`: runs of one profile over time, and whether the newest is slower."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands.frame import (
    JsonOption,
    ProfileOption,
    SetOption,
    StoreOption,
    sentences,
    settings_given,
)
from pipeline.completion import run_ids
from store.errors import RegressionError


@sentences
def history(
    profile: ProfileOption = "quick",
    store: StoreOption = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Begin with this run: what it takes is the usual.", autocompletion=run_ids),
    ] = None,
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Exit with 1 when the newest run is slower beyond doubt.")
    ] = False,
    json: JsonOption = False,
    export_json: Annotated[
        str | None, typer.Option("--export-json", metavar="PATH", help="All of it as JSON; - is standard output.")
    ] = None,
    export_mlflow: Annotated[
        Path | None, typer.Option("--export-mlflow", metavar="DIR", help="As a tracking directory of MLflow.")
    ] = None,
    set_: SetOption = None,
) -> None:
    """Runs of one profile over time: where times changed, what changed beside them, and the newest run."""
    from pipeline import history as read
    from pipeline.opening import open_store
    from report.history_words import regression

    settings, _ = settings_given("default", store, set_)
    opened = open_store(settings)
    looked = read.look(opened, profile, since=since)
    found, said = looked.history, ""
    if found is None:
        settings_given(profile, store, set_)  # a profile that is not in luigi.cfg either is an error
        said = read.no_run(opened, looked, profile)
    if json and export_json != read.STANDARD_OUTPUT:
        read.export_json(found, read.STANDARD_OUTPUT, profile=profile, said=said)
    if export_json is not None:
        read.export_json(found, export_json, profile=profile, said=said)
    quiet = json or export_json == read.STANDARD_OUTPUT
    if found is None:
        if not quiet:
            print(said)
        return
    if export_mlflow is not None:
        read.export_mlflow(found, export_mlflow, store_url=opened.url)
    if not quiet:
        for line in read.lines(found, looked.damaged):
            print(line, flush=True)
        print(f"\nPage: {read.publish_page(opened, found)}")
    if fail_on_regression and found.regressions:
        raise RegressionError(regression(found).removesuffix("."))
