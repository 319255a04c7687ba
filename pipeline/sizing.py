"""How many executors of which size a cluster holds, by the rule that study C followed; nothing of it is measured."""

from __future__ import annotations

from dataclasses import dataclass

from store.errors import SettingError

SYSTEM_CORES, SYSTEM_GB = 1, 1.0  # of each node
MOST_CORES = 5  # of an executor
OVERHEAD_GB = 2.0  # of an executor's container, beside its heap
MASTERS = 1  # the application master takes the place of an executor


@dataclass(frozen=True)
class Shape:
    """One way to cut the cluster: `executors` in all, each with `cores` and a heap of `memory_gb`."""

    cores: int
    executors: int
    memory_gb: int
    idle_cores: int  # of each node

    @property
    def memory_mib(self) -> int:
        return self.memory_gb * 1024


def shapes(*, nodes: int, cores: int, memory_gb: float) -> list[Shape]:
    """The largest executors first. Executors of a node and GB of an executor are rounded down, so that all fit."""
    free_cores, free_gb = cores - SYSTEM_CORES, memory_gb - SYSTEM_GB
    found = []
    for each in range(min(MOST_CORES, free_cores), 0, -1):
        of_a_node = free_cores // each
        executors = nodes * of_a_node - MASTERS
        heap = int(free_gb / of_a_node - OVERHEAD_GB)
        if executors >= 1 and heap >= 1:
            found.append(Shape(each, executors, heap, cores - SYSTEM_CORES - of_a_node * each))
    if not found:
        raise SettingError(
            f"no executor fits in {nodes} nodes of {cores} cores and {memory_gb:g} GB: {SYSTEM_CORES} core and "
            f"{SYSTEM_GB:g} GB of each node stay with the system, an executor needs 1 GB of heap and "
            f"{OVERHEAD_GB:g} GB beside it, and one executor's place is the application master's; give larger "
            f"nodes, or more of them"
        )
    return found
