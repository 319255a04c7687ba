"""A real ResourceManager is asked, and told to kill."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import requests

from cluster.lifecycle import Cluster
from store.errors import ClusterError, SettingError
from store.namenodes import Access
from store.retry import Patience
from yarn.resource_manager import Application, ResourceManager

ACCESS = Access(security="insecure", patience=Patience(seconds=30))
TAG = "yarnstick-test"
SPARE_MIB = 256
SECONDS = 60.0  # until an application is where a test wants it


@pytest.fixture
def manager(cluster: Cluster) -> ResourceManager:
    return ResourceManager.of((), ACCESS, environment=cluster.environment())


@pytest.fixture
def sleeping(manager: ResourceManager) -> Iterator[str]:
    """The id of an application whose master sleeps, without a JVM, and never registers."""
    id = submitted(manager, queue="default")
    yield id
    manager.kill(id)
    until(lambda: manager.application(id).has_ended)


@contextmanager
def occupied(manager: ResourceManager, queue: str) -> Iterator[str]:
    """By an application whose master has nearly all of the queue: no other one's gets in. Its id.

    YARN lets the first master of a queue in, however large it is.
    """
    found = manager.queue(queue)
    id = submitted(manager, queue=queue, memory_mib=min(found.maximum_mib or 0, found.largest_mib or 0) - SPARE_MIB)
    try:
        until(lambda: manager.application(id).containers == 1)
        yield id
    finally:
        manager.kill(id)
        until(lambda: manager.application(id).has_ended)


def submitted(manager: ResourceManager, *, queue: str, memory_mib: int = 128) -> str:
    address, who = f"{manager.address}/ws/v1/cluster/apps", {"user.name": ACCESS.name}
    id: str = requests.post(f"{address}/new-application", params=who, timeout=10).json()["application-id"]
    asked = {
        "application-id": id,
        "application-name": "sleeps",
        "application-type": "YARNSTICK",
        "queue": queue,
        "application-tags": {"tag": [TAG]},
        "max-app-attempts": 1,
        "am-container-spec": {"commands": {"command": "sleep 600"}},
        "resource": {"memory": memory_mib, "vCores": 1},
    }
    requests.post(address, params=who, json=asked, timeout=10).raise_for_status()
    return id


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.1)


def ours(manager: ResourceManager, id: str, *states: str) -> list[Application]:
    return [each for each in manager.applications(tag=TAG, states=states) if each.id == id]


def test_it_is_found_by_the_configuration_and_tells_of_itself(cluster: Cluster, manager: ResourceManager) -> None:
    assert manager.address == cluster.web("resourcemanager")
    told = manager.information()
    assert (told.state, told.ha_state) == ("STARTED", "ACTIVE")
    assert told.version.startswith("3.")
    assert 0 < told.started_ms < time.time() * 1000


def test_nodes_and_metrics_are_of_one_cluster(cluster: Cluster, manager: ResourceManager) -> None:
    nodes, metrics = manager.nodes(), manager.metrics()
    running = [node for node in nodes if node.state == "RUNNING"]
    assert len(running) == metrics.active_nodes == sum("nodemanager" in name for name in cluster.status())
    assert sum(node.total_mib for node in running) == metrics.total_mib
    assert sum(node.total_vcores for node in running) == metrics.total_vcores
    assert all(node.resources["memory-mb"] == node.total_mib for node in running)
    assert metrics.allocated_mib + metrics.available_mib == metrics.total_mib


def test_queues_have_limits(manager: ResourceManager) -> None:
    default, narrow = manager.queue("default"), manager.queue("root.narrow")
    assert (default.state, narrow.state) == ("RUNNING", "RUNNING")
    assert (default.capacity, narrow.capacity, narrow.maximum_capacity) == pytest.approx((60.0, 40.0, 40.0))
    assert default.maximum_mib == manager.metrics().total_mib
    assert narrow.maximum_mib is not None
    assert narrow.maximum_mib < manager.metrics().total_mib / 2
    assert narrow.largest_mib == max(node.total_mib for node in manager.nodes())
    assert default.am_share == 0.5


def test_an_unknown_queue_names_those_there_are(manager: ResourceManager) -> None:
    with pytest.raises(SettingError, match=r"queue=wide is no leaf queue of http://\S+; set it to one of default, nar"):
        manager.queue("wide")


def test_an_application_is_found_by_its_tag_and_killed(manager: ResourceManager, sleeping: str) -> None:
    until(lambda: manager.application(sleeping).containers == 1)
    [found] = ours(manager, sleeping, "SUBMITTED", "ACCEPTED", "RUNNING")
    assert (found.name, found.tags, found.user) == ("sleeps", (TAG,), ACCESS.name)
    assert found.queue in ("default", "root.default")
    assert (found.allocated_mib, found.allocated_vcores) == (128, 1)
    assert manager.queue("default").used_mib >= 128
    manager.kill(sleeping)
    until(lambda: manager.application(sleeping).has_ended)
    ended = manager.application(sleeping)
    assert (ended.state, ended.final_status, ended.containers) == ("KILLED", "KILLED", 0)
    assert f"killed by user {ACCESS.name}" in ended.diagnostics
    assert ours(manager, sleeping, "ACCEPTED", "RUNNING") == []
    manager.kill(sleeping)


def test_one_that_it_does_not_know_is_dead_enough(manager: ResourceManager) -> None:
    manager.kill("application_1_0001")
    with pytest.raises(ClusterError, match=r"NotFoundException \(app with id: application_1_0001 not found\)"):
        manager.application("application_1_0001")


def test_one_that_restarts_is_waited_for(broken: Cluster, manager: ResourceManager) -> None:
    assert manager.information().state == "STARTED"
    broken.kill("resourcemanager")
    with pytest.raises(ClusterError, match=r"takes no connection; start YARN, or correct yarnstick\.hadoop\.resource"):
        ResourceManager.of((), ACCESS, environment=broken.environment()).metrics()
    broken.up()
    assert manager.metrics().active_nodes > 0
