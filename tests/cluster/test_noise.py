"""Others on a real YARN: a trial among them is flagged, repeated and told, one that is alone is not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from cluster.lifecycle import Cluster
from cluster.place import Shape
from models.outcome import Outcome
from models.spark_conf import OVERHEAD_SHARE
from models.spark_containers import master_mib
from models.spec import Resources
from pipeline.config import read_settings
from pipeline.opening import open_resource_manager, open_store
from store.protocol import Store
from tests.cluster.test_resource_manager import submitted, until
from tests.pipeline.place import Place
from yarn.resource_manager import ResourceManager
from yarn.submission import LIVING

SECONDS = 240.0
OTHER_MIB = 256


@pytest.fixture
def vcores(cluster: Cluster) -> int:
    """Of both nodes."""
    return 2 * shape(cluster).node_vcores


@pytest.fixture
def place(edge_node: Callable[..., Place], vcores: int) -> Place:
    return edge_node(noisy_share=0.9 / vcores, noisy_repeats=1)


def one_on_a_node(cluster: Cluster) -> int:
    """MiB of an executor that leave a node room for the application master and the other application, for no second.

    So there is one on each of two nodes, and the other application is with one of them, wherever it is.
    """
    room = shape(cluster).node_memory_mib - master_mib(Resources(deploy_mode="client"), given={}) - OTHER_MIB
    return int(room / (1 + OVERHEAD_SHARE))


def shape(cluster: Cluster) -> Shape:
    found = cluster.place.shape()
    assert found is not None
    return found


@pytest.fixture
def manager(place: Place) -> ResourceManager:
    """Of a cluster on which nothing of an earlier test is left."""
    manager = open_resource_manager(read_settings("tiny"))
    until(lambda: not manager.applications(states=LIVING))
    return manager


def outcomes(store: Store) -> list[Outcome]:
    path = "runs/R/trials"
    names = sorted(entry.name for entry in store.list(path))
    return [Outcome.decode(store.read(f"{path}/{name}/outcome.json")) for name in names]


def run(place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A driver on a node takes its time to start."""
    process = place.start("run", "--profile", "tiny", "--run-id", "R", *arguments)
    output, errors = process.communicate(timeout=SECONDS)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def test_a_trial_among_others_is_flagged_repeated_and_told(
    place: Place, cluster: Cluster, manager: ResourceManager, vcores: int
) -> None:
    other = submitted(manager, queue="default")
    until(lambda: manager.application(other).allocated_vcores == 1)
    try:
        memory = f"profile.tiny.memory_mib={one_on_a_node(cluster)}"
        done = run(place, "--set", "hadoop.quiet_seconds=3", "--set", memory)
    finally:
        manager.kill(other)
    assert done.returncode == 0, done.stderr
    found = outcomes(open_store(read_settings("tiny")))
    assert [(each.spec.attempt, each.outcome, each.reason) for each in found] == [(1, "ok", None), (2, "ok", None)]
    for outcome in found:
        assert outcome.noisy
        assert "cluster" in str(outcome.noise)
        assert outcome.crowding is not None
        assert len(outcome.crowding.nodes) == 2
        assert outcome.crowding.missed == 0
        for record in outcome.records:
            assert (record.others_vcores_before, record.others_vcores, record.nodes_vcores) == (1, 1, vcores)
            assert record.queue_used_by_others == pytest.approx(1 / vcores)
    waits = [
        line
        for line in done.stdout.splitlines()
        if f"waits for the cluster, at most 3 s: others have 1 of {vcores}" in line
    ]
    assert [line.rpartition(" vcores ")[2] for line in waits] == ["of the cluster", "of its nodes"]
    assert done.stdout.count(f"had 1 of {vcores} vcores of its nodes") == 2
    assert "1 of 1 noisy (all because others had part of the nodes)" in done.stdout
    assert "1 noisy attempt repeated (all because others had part of the nodes)" in done.stdout


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_alone_on_the_cluster_all_that_is_there_is_ours(mode: str, place: Place, manager: ResourceManager) -> None:
    settings = (f"profile.tiny.deploy_modes={mode}", "noisy_repeats=0", "hadoop.quiet_seconds=30")
    done = run(place, *(part for each in settings for part in ("--set", each)))
    assert done.returncode == 0, done.stderr
    [outcome] = outcomes(open_store(read_settings("tiny")))
    assert outcome.outcome == "ok", outcome.reason
    assert outcome.noise in (None, "load")
    assert outcome.crowding is not None
    assert outcome.crowding.in_cluster.largest == 0
    for record in outcome.records:
        assert (record.others_vcores_before, record.others_vcores, record.queue_used_by_others) == (0, 0, 0)
    assert "waits for the cluster" not in done.stdout
    assert "vcores of its nodes" not in done.stdout
