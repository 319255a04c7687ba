"""Hosts in network namespaces: as slow as asked for, good enough for Spark to train across, and gone afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.errors import ClusterError
from cluster.network import Network, namespaces, remove_leftovers, why_not
from cluster.processes import Process, started, wait_for_end
from cluster.spark_standalone import SparkStandalone
from tests.pipeline.place import eventually

TOP = Path(__file__).parent.parent.parent
NODES = ("node-1", "node-2")
SLOW_MEGABITS, SENT_BYTES = 40, 4_000_000
RECEIVES = """
import socket, time
with socket.create_server(("0.0.0.0", 5000)) as listener:
    print("listens", flush=True)
    peer, _ = listener.accept()
    received, began = 0, time.perf_counter()
    while found := peer.recv(1 << 20):
        received += len(found)
    print(received * 8 / 1e6 / (time.perf_counter() - began))
"""
SENDS = "import socket, sys; socket.create_connection((sys.argv[1], 5000)).sendall(bytes(int(sys.argv[2])))"
DIES = """
import os, signal, subprocess, sys, time
from cluster.network import Network
network = Network("lonely").__enter__()
child = subprocess.Popen(network.command("lonely", ["sleep", "600"]), stdout=subprocess.DEVNULL)
time.sleep(0.5)
print(network.namespace("lonely"), child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
WHY_NOT = why_not() if os.geteuid() == 0 else "network namespaces need root"
needs_namespaces = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with Network("driver", *NODES) as found:
        yield found


def megabits(network: Network, *, towards: str, sender: str) -> float:
    receiver = subprocess.Popen(
        network.command(towards, [sys.executable, "-c", RECEIVES]), stdout=subprocess.PIPE, text=True
    )
    assert receiver.stdout is not None
    with receiver.stdout as said:
        assert said.readline() == "listens\n"
        send = [sys.executable, "-c", SENDS, network.address(towards), str(SENT_BYTES)]
        subprocess.run(network.command(sender, send), check=True)
        found = float(said.read())
    receiver.wait()
    return found


@needs_namespaces
@pytest.mark.parametrize(("sender", "towards"), [("node-1", "node-2"), ("node-2", "driver")])
def test_a_link_is_as_slow_as_asked_for(network: Network, sender: str, towards: str) -> None:
    network.limit(SLOW_MEGABITS)
    assert megabits(network, sender=sender, towards=towards) < 2 * SLOW_MEGABITS
    network.limit(None)
    eventually(lambda: megabits(network, sender=sender, towards=towards) > 2 * SLOW_MEGABITS)


@needs_namespaces
def test_hosts_see_each_other_and_nothing_else(network: Network) -> None:
    reach = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)"

    def refused(host: str, address: str, port: int) -> str:
        command = network.command(host, [sys.executable, "-c", reach, address, str(port)])
        return subprocess.run(command, stderr=subprocess.PIPE, text=True).stderr.splitlines()[-1]

    assert "ConnectionRefusedError" in refused("node-1", network.address("node-2"), 9), "it answers that nobody listens"
    assert "ConnectionRefusedError" in refused("node-1", "127.0.0.1", 9), "its loopback is up"
    assert "Network is unreachable" in refused("node-1", "192.0.2.1", 9)


@pytest.mark.spark
@needs_namespaces
def test_torch_spark_trains_across_nodes_to_the_losses_of_the_reference(network: Network, tmp_path: Path) -> None:
    network.limit(1000)
    with SparkStandalone(
        network, directory=tmp_path / "spark", master="driver", workers=NODES, cores=1, memory_mib=1024
    ) as spark:
        command = [sys.executable, "-m", "tests.cluster.across_nodes", str(tmp_path), spark.url]
        done = subprocess.run(network.command("driver", command), cwd=TOP, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["losses"] == pytest.approx(found["reference"], rel=1e-5)
    assert found["executors"] == 2
    for node in NODES:
        assert len(list((tmp_path / "spark" / f"work-{node}").glob("app-*/*/stderr"))) == 1, "an executor on each"


@needs_namespaces
def test_what_runs_in_a_network_ends_with_it() -> None:
    before = links()
    with Network("one") as network:
        command = network.command("one", ["sh", "-c", "echo runs; exec sleep 600"])
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        with child.stdout as said:
            assert said.readline() == "runs\n"
        there = network.namespace("one")
        assert there in namespaces()
    assert child.wait(10) == -signal.SIGTERM
    assert there not in namespaces()
    assert links() == before


@needs_namespaces
def test_a_network_whose_process_was_killed_is_found_and_removed_with_what_runs_in_it(network: Network) -> None:
    killed = subprocess.run([sys.executable, "-c", DIES], cwd=TOP, stdout=subprocess.PIPE, text=True)
    assert killed.returncode == -signal.SIGKILL
    name, pid = killed.stdout.split()
    orphan = Process(pid=int(pid), started=started(int(pid)) or "")
    assert orphan.is_alive()
    assert name in remove_leftovers()
    assert not wait_for_end([orphan], patience=10)
    assert name not in namespaces()
    assert network.namespace("driver") in namespaces(), "of a process that lives nothing is touched"


@pytest.mark.parametrize("hosts", [(), ("one", "one"), ("switch",), ("a b",), ("-rf",), ("a-name-of-13c",)])
def test_names_that_cannot_be_are_refused_before_anything_is_made(hosts: tuple[str, ...]) -> None:
    with pytest.raises(ClusterError, match=r"a network of 0 hosts|a host called"):
        Network(*hosts)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_without_root_it_says_so() -> None:
    ask = "import os; from cluster.network import why_not; os.setuid(65534); print(why_not())"
    said = subprocess.run([sys.executable, "-c", ask], cwd=TOP, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said == "network namespaces need root, and this is user 65534\n"


def links() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}
