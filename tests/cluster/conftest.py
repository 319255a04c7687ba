"""The tests here run against real daemons, and break them: only on a cluster that is there for them alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.__main__ import FRESH
from cluster.lifecycle import Cluster

HERE = Path(__file__).parent
NEED_NO_DAEMONS = {"test_without_daemons.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if FRESH not in os.environ:
        reason = "runs by `make cluster-test`, which brings up a cluster for it"
        for item in items:
            if HERE in item.path.parents and item.path.name not in NEED_NO_DAEMONS:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The running cluster; its environment is that of the tests."""
    return Cluster(Path(os.environ[FRESH]))


@pytest.fixture
def broken(cluster: Cluster) -> Iterator[Cluster]:
    """The same for a test that kills daemons: whatever it did, the next test finds the cluster whole."""
    yield cluster
    cluster.up()
