"""`yarnstick size`: executors for a cluster of equal nodes, by study C's rule, as a first guess to be measured."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.commands.frame import JsonOption, print_json, sentences

MOST = 999_999


@sentences
def size(
    nodes: Annotated[int, typer.Option("--nodes", min=1, max=MOST, help="Machines that run executors.")],
    cores: Annotated[int, typer.Option("--cores", min=1, max=MOST, help="Of each node.")],
    memory: Annotated[float, typer.Option("--memory", min=0, max=MOST, metavar="GB", help="Of each node, in GB.")],
    json: JsonOption = False,
) -> None:
    """Executors, cores and memory for a cluster by a rule of thumb: 1 core and 1 GB of a node left to the system."""
    from pipeline.sizing import MOST_CORES, OVERHEAD_GB, shapes

    found = shapes(nodes=nodes, cores=cores, memory_gb=memory)
    if json:
        print_json(found)
        return
    print("executors  cores  memory_mib  cores idle on a node")
    for each in found:
        print(f"{each.executors:9}  {each.cores:5}  {each.memory_mib:10}  {each.idle_cores:20}")
    print(
        f"At most {MOST_CORES} cores an executor, one executor fewer for the application master, {OVERHEAD_GB:g} GB "
        f"beside each heap; executors of a node and GB of an executor are rounded down."
    )
    first = found[0]
    values = (("executors", first.executors), ("cores", first.cores), ("memory_mib", first.memory_mib))
    print("A rule of thumb, nothing measured. To measure the first line:")
    print("  yarnstick run --profile full " + " ".join(f"--set profile.full.{key}={value}" for key, value in values))
