"""`yarnstick pack-environment`: a Python for the nodes of a cluster, as [yarnstick.hadoop] python_archive takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands.frame import sentences


@sentences
def pack_environment(
    file: Annotated[Path, typer.Argument(help="The archive to make, NAME.tar.gz.")],
    requirement: Annotated[
        list[str] | None,
        typer.Option("--requirement", metavar="NAME", help="A package that is installed here, to go along."),
    ] = None,
) -> None:
    """Pack a Python with what jobs need, for nodes that have none: [yarnstick.hadoop] python_archive."""
    from pipeline.environment import pack_environment as packed

    made = packed(file, requirement or [])
    print(f"wrote {made.file}: {made.bytes / 1e6:.0f} MB, Python {made.python}, {', '.join(made.distributions)}")
    print(f"it runs on nodes with {made.needs}")
    print(f"next: [yarnstick.hadoop] python_archive = {made.file.absolute()}, python = environment/bin/python")
