"""`yarnstick replay`: records and report from archived Spark event logs, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands.frame import SetOption, StoreOption, sentences, settings_given


@sentences
def replay(
    path: Annotated[Path, typer.Argument(help="An event log, or a directory with event logs, as a run of ours.")],
    run_id: Annotated[str, typer.Option("--run-id", help="Names the run that is made of them.")],
    dataset: Annotated[str | None, typer.Option("--dataset", help="What was trained on; no log tells it.")] = None,
    network: Annotated[str | None, typer.Option("--network", help="What was trained, as mlp:784-100-10.")] = None,
    rows: Annotated[int | None, typer.Option("--rows", min=1, help="How many rows were trained on.")] = None,
    machine: Annotated[str | None, typer.Option("--machine", help="A name for the cluster it ran on.")] = None,
    store: StoreOption = None,
    set_: SetOption = None,
) -> None:
    """Make a run with records and report from archived Spark event logs, without a cluster."""
    from models.replayed import Names
    from models.spec import UNKNOWN, Network
    from pipeline.replay import replay as replayed

    settings, _ = settings_given("default", store, set_)
    names = Names(
        dataset=dataset or UNKNOWN,
        network=Network.parse(network) if network else Network(sizes=()),
        rows=rows,
        machine=machine or UNKNOWN,
    )
    for line in replayed(path, run_id, settings, names=names):
        print(line)
