"""The tests here run against real daemons, and break them: only on a cluster that is there for them alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.__main__ import FRESH
from cluster.lifecycle import Cluster
from pipeline.config import read_settings
from pipeline.opening import open_store
from tests.cluster.edge_node import settings
from tests.pipeline.place import Place

HERE = Path(__file__).parent
NEED_NO_DAEMONS = {"test_network.py", "test_without_daemons.py"}


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


@pytest.fixture
def edge_node(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Place]]:
    """Makes a place with settings for this cluster; its runs and data are removed afterwards, Spark's jars stay."""
    environment = {key: value for key, value in cluster.environment().items() if key != "LUIGI_CONFIG_PATH"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("LUIGI_CONFIG_PATH", raising=False)
    url = f"{environment['YARNSTICK_STORE']}-edge"

    places: list[Place] = []

    def made(**changes: object) -> Place:
        place = Place(tmp_path / "place", settings(url, **changes))  # type: ignore[arg-type]
        monkeypatch.chdir(place.folder)
        places.append(place)
        return place

    yield made
    for place in places:
        place.end()
    store = open_store(read_settings("quick", store=url, overrides=["store.security=insecure"]))
    for name in ("runs", "data"):
        store.remove(name)
