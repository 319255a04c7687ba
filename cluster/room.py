"""What a small machine has no room for, told when its nodes come up and not only by the first trial."""

from __future__ import annotations

import shutil
from pathlib import Path

from cluster.place import Shape

# Of profile quick as shipped, on YARN: an executor's heap and what is beside it, and the application master.
EXECUTOR_MIB, MASTER_MIB = 2048 + 1536, 896
# A DataNode takes no block where it has not some blocks' room left; Spark's jars, unpacked by each node, and data.
DISK_BYTES = 4 << 30


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


def too_full(directory: Path) -> str | None:
    """One sentence, where DataNodes would soon take no more blocks."""
    free = shutil.disk_usage(directory).free
    if free >= DISK_BYTES:
        return None
    return (
        f"the disk of {directory} has {free / 1e9:.1f} GB left, and HDFS and containers may need "
        f"{DISK_BYTES / 1e9:.1f} GB: make room, or HDFS will take no more blocks"
    )
