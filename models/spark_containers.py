"""How large the containers are that a Spark application asks YARN for: the same for who checks, asks and compares."""

from __future__ import annotations

import re
from collections.abc import Mapping

from models.spark_conf import overhead_mib
from models.spec import Resources
from store.errors import SettingError

# Spark's own: the application master of client mode. In cluster mode it is the driver.
CLIENT_MASTER_MIB, CLIENT_MASTER_CORES = 512, 1
DRIVER_MIB, DRIVER_CORES = 2048, 1
SIZE = re.compile(r"(?P<number>\d+)\s*(?P<unit>[bkmgtp]?)b?", re.IGNORECASE)
BYTES = {unit: 1 << (10 * power) for power, unit in enumerate("bkmgtp")}
MIB = 1 << 20


def executor_mib(resources: Resources, *, python_mib: int, given: Mapping[str, str]) -> int:
    """Heap and all beside it, where a user's own Spark settings, `given`, win over ours."""
    heap = _size(given, "spark.executor.memory", resources.memory_mib or 0)
    return heap + beside_mib(resources, python_mib=python_mib, given=given)


def beside_mib(resources: Resources, *, python_mib: int, given: Mapping[str, str]) -> int:
    """Of an executor's container, beside its heap."""
    return _size(given, "spark.executor.memoryOverhead", overhead_mib(resources.memory_mib or 0, python_mib))


def master_mib(resources: Resources, *, given: Mapping[str, str]) -> int:
    """Of the application master."""
    if resources.deploy_mode == "cluster":
        heap, overhead = _size(given, "spark.driver.memory", DRIVER_MIB), "spark.driver.memoryOverhead"
    else:
        heap, overhead = _size(given, "spark.yarn.am.memory", CLIENT_MASTER_MIB), "spark.yarn.am.memoryOverhead"
    return heap + _size(given, overhead, overhead_mib(heap, 0))


def master_cores(resources: Resources, *, given: Mapping[str, str]) -> int:
    if resources.deploy_mode == "cluster":
        return int(given.get("spark.driver.cores", DRIVER_CORES))
    return int(given.get("spark.yarn.am.cores", CLIENT_MASTER_CORES))


def _size(given: Mapping[str, str], name: str, ours: int) -> int:
    """MiB, as Spark reads them: a bare number is MiB."""
    if name not in given:
        return ours
    found = SIZE.fullmatch(given[name].strip())
    if not found:
        raise SettingError(
            f"yarnstick.spark.conf: {name}={given[name]} is no size that Spark takes; write a whole number with its "
            f"unit, as 1536m or 2g"
        )
    return -(-int(found["number"]) * BYTES[found["unit"].lower() or "m"] // MIB)
