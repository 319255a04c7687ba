"""What nodes of a small machine have no room for, told when they come up and not only by the first trial."""

from __future__ import annotations

from cluster.place import Shape

# Of profile quick as shipped, on YARN: an executor's heap and what is beside it, and the application master.
EXECUTOR_MIB, MASTER_MIB = 2048 + 1536, 896


def too_small(shape: Shape) -> str | None:
    """One sentence, where YARN would refuse an executor of profile quick."""
    most = shape.node_memory_mib - (MASTER_MIB if shape.nodes == 1 else 0)
    short = EXECUTOR_MIB - most
    if short <= 0:
        return None
    return (
        f"a node has {shape.node_memory_mib} MiB for containers, and profile quick, whose executors take "
        f"{EXECUTOR_MIB} and whose application takes {MASTER_MIB}, will be refused: lower profile.quick.memory_mib or "
        f'yarnstick.spark.overhead_mib by {short} in all, or give ARGS="--node-memory-mib '
        f'{shape.node_memory_mib + short}" where the machine has that much'
    )
