"""A shell that sourced a cluster's `env` measures both: the parts of this machine see nothing of the cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

CLUSTER = "YARNSTICK_CLUSTER"  # set by build/cluster/env
# What leads our programs, Spark and Hadoop there.
LEADS_THERE = (
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "HADOOP_HOME",
    "HADOOP_STREAMING_JAR",
    "YARNSTICK_STORE",
    "LUIGI_CONFIG_PATH",
    "SPARK_CONF_DIR",
)


def has_cluster() -> bool:
    return CLUSTER in os.environ


@contextmanager
def without_it() -> Iterator[None]:
    """Where there is none, nothing changes: a luigi.cfg of one's own stays."""
    taken = {name: os.environ.pop(name) for name in LEADS_THERE if has_cluster() and name in os.environ}
    try:
        yield
    finally:
        os.environ |= taken
