"""`yarnstick import`: timings of other machines, from a CSV file into a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands.frame import SetOption, StoreOption, sentences, settings_given
from pipeline.completion import run_ids


@sentences
def import_(
    file: Annotated[Path, typer.Argument(help="A CSV file: platform, dataset, seconds, and what else is known.")],
    run_id: Annotated[
        str, typer.Option("--run-id", help="A run that is there, or the name of a new one.", autocompletion=run_ids)
    ],
    store: StoreOption = None,
    set_: SetOption = None,
) -> None:
    """Put timings of other machines or studies into a run, beside what was measured there. All rows, or none."""
    from pipeline.importing import import_timings

    settings, _ = settings_given("default", store, set_)
    for line in import_timings(file, run_id, settings):
        print(line)
