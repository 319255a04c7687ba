"""`yarnstick predict`: seconds an epoch of what was not measured, with how far off that may be, as JSON."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from pipeline.commands.frame import KnownRunOption, SetOption, StoreOption, print_json, sentences, settings_given

LARGEST = 999_999_999  # as in a network's name


def _layers(value: str | None) -> str | None:
    if value is not None and not all(re.fullmatch("[1-9][0-9]{0,8}", part) for part in value.split("-")):
        raise typer.BadParameter(f"{value!r} is no layer sizes; write 4096, or 100-50")
    return value


@sentences
def predict(
    run_id: KnownRunOption,
    platform: Annotated[str, typer.Option("--platform", help="Of which platform that the run measured.")],
    dataset: Annotated[str, typer.Option("--dataset", help="One of the run's, or any synthetic:ROWSxCOLUMNSxCLASSES.")],
    executors: Annotated[int | None, typer.Option("--executors", min=1, max=LARGEST, help="Spark executors.")] = None,
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, max=LARGEST, help="Of each executor; else threads.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, max=LARGEST**2, help="As many as were measured, if left out.")
    ] = None,
    hidden: Annotated[
        str | None, typer.Option("--hidden", metavar="SIZES", help="Hidden units, as 4096 or 100-50.", callback=_layers)
    ] = None,
    solver: Annotated[str | None, typer.Option("--solver", help="Of several; gd, if left out.")] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", help="Of several; the baseline's, if left out.")
    ] = None,
    store: StoreOption = None,
    set_: SetOption = None,
) -> None:
    """Predict seconds an epoch on other resources, rows or hidden units from what a run measured, as JSON."""
    from pipeline.opening import open_store
    from pipeline.prediction import prediction
    from report.question import Question

    settings, _ = settings_given("default", store, set_)
    question = Question(
        run_id=run_id,
        platform=platform,
        dataset=dataset,
        executors=executors,
        cores=cores,
        rows=rows,
        hidden=tuple(map(int, hidden.split("-"))) if hidden else None,
        solver=solver,
        precision=precision,
    )
    print_json(prediction(open_store(settings), question))
