"""What of a cluster can be told without one: processes, ports, configuration, what is said when something is amiss."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from cluster import configuration, processes
from cluster.daemons import daemons
from cluster.errors import ClusterError
from cluster.jars import Jars
from cluster.java import Java
from cluster.lifecycle import Cluster
from cluster.place import Place, Shape, choose_ports, is_free
from cluster.processes import MEMBER, Process
from cluster.room import DISK_BYTES, EXECUTOR_MIB, MASTER_MIB, too_full, too_small
from models.spark_containers import executor_mib, master_mib
from models.spec import Resources
from pipeline.config import read_settings
from tests.pipeline.place import eventually

TOP = Path(__file__).parent.parent.parent


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path / "cluster")
    found.directory.mkdir()
    return found


def shape(place: Place, *, nodes: int = 2) -> Shape:
    ports = choose_ports(place, nodes=nodes, recorded={})
    return Shape(nodes=nodes, node_memory_mib=4096, node_vcores=3, ports=ports)


def sleeper(place: Place, daemon: str = "namenode") -> Process:
    environment = {"PATH": os.environ["PATH"], MEMBER: place.mark(daemon)}
    return processes.start(
        ["sleep", "600"], environment=environment, directory=place.directory, log=place.directory / "log"
    )


def test_an_id_that_was_used_again_is_nobody_of_ours(place: Place) -> None:
    other = sleeper(place)
    before = Process(pid=other.pid, started="1@another boot")
    assert not before.is_alive()
    assert processes.end([before], patience=1) == []
    assert other.is_alive()
    processes.end([other], patience=5)
    assert not other.is_alive()


def test_who_does_not_end_is_killed(place: Place) -> None:
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    log = place.directory / "log"
    deaf = processes.start([sys.executable, "-c", script], environment={}, directory=place.directory, log=log)
    while "deaf" not in log.read_text(encoding="utf-8"):
        assert deaf.is_alive()
    assert processes.end([deaf], patience=0.5) == [deaf]
    eventually(lambda: not deaf.is_alive())


def test_the_record_of_a_dead_process_is_removed(place: Place) -> None:
    process = sleeper(place)
    place.record_process("namenode", process)
    assert place.process("namenode") == process
    process.signal(signal.SIGKILL)
    processes.wait_for_end([process], patience=5)
    assert place.process("namenode") is None
    assert place.recorded() == []


def test_half_a_record_is_no_process(place: Place) -> None:
    process = sleeper(place)
    place.record_process("namenode", process)
    record = place.directory / "processes" / "namenode.json"
    record.write_bytes(record.read_bytes()[:9])
    assert place.process("namenode") is None
    processes.end([process], patience=5)


def test_down_ends_what_was_killed_before_it_was_recorded(place: Place) -> None:
    place.record_shape(shape(place))
    stray = sleeper(place, "nodemanager-2")
    Cluster(place.directory).down()
    assert not stray.is_alive()


def test_down_leaves_the_processes_of_another_cluster_alone(place: Place) -> None:
    place.record_shape(shape(place))
    other = Place(Path(f"{place.directory}-2"))
    other.directory.mkdir()
    theirs = sleeper(other)
    Cluster(place.directory).down()
    assert theirs.is_alive()
    processes.end([theirs], patience=5)


def test_down_ends_a_cluster_whose_directory_somebody_removed(place: Place) -> None:
    stray = sleeper(place, "nodemanager-2")
    shutil.rmtree(place.directory)
    Cluster(place.directory).down()
    assert not stray.is_alive()


def test_down_again_does_not_mind_who_has_the_ports_by_now(place: Place) -> None:
    found = shape(place)
    place.record_shape(found)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", found.ports["namenode"]))
        taken.listen()
        Cluster(place.directory).down()


def test_down_where_nothing_is(tmp_path: Path) -> None:
    Cluster(tmp_path / "nothing").down()
    assert not (tmp_path / "nothing").exists()


def test_ports_stay_and_a_taken_one_is_passed_over(place: Place) -> None:
    first = choose_ports(place, nodes=1, recorded={})
    assert len(set(first.values())) == len(first)
    assert choose_ports(place, nodes=1, recorded=first) == first
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first["namenode"]))
        taken.listen()
        assert not is_free(first["namenode"])
        assert first["namenode"] not in choose_ports(place, nodes=2, recorded={}).values()


def test_ports_are_none_that_the_kernel_gives_to_others(place: Place) -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    assert max(shape(place, nodes=16).ports.values()) < lowest


def test_every_file_is_valid_and_on_loopback(place: Place, tmp_path: Path) -> None:
    jars = Jars(directory=tmp_path / "jars")
    (jars.directory / "streaming").mkdir(parents=True)
    (jars.directory / "streaming" / "hadoop-streaming-3.4.2.jar").touch()
    configuration.write(place, shape(place), jars=jars, java=Java(home=Path("/java"), version="17"))
    files = sorted(place.directory.rglob("conf*/*.xml"))
    assert len(files) == 15
    addresses = set()
    for path in files:
        for each in ElementTree.parse(path).getroot().iter("property"):  # noqa: S314 - our own
            value = each.findtext("value") or ""
            assert value
            addresses |= set(re.findall(r"[\d.]+(?=:\d+)", value))
    assert addresses == {"127.0.0.1", "127.0.0.2"}
    assert not [path for path in place.directory.rglob("*") if path.is_file() and "@directory@" in path.read_text()]


def test_nodes_differ_in_all_that_they_listen_on(place: Place) -> None:
    found = daemons(shape(place, nodes=3))
    assert [each.name for each in found if each.kind == "datanode"] == ["datanode-1", "datanode-2", "datanode-3"]
    listening = [address for each in found for address in (each.web, each.rpc)]
    assert len(set(listening)) == len(listening)


def test_commands_that_the_cluster_does_not_have_are_named(place: Place, tmp_path: Path) -> None:
    test_every_file_is_valid_and_on_loopback(place, tmp_path)
    done = subprocess.run([place.home / "bin" / "hadoop", "distcp"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: hadoop distcp is none of the commands that this cluster has; take hadoop ver")


def test_last_words_are_the_cause_and_not_its_stack(place: Place) -> None:
    (daemon, *_) = daemons(shape(place))
    place.logs.mkdir()
    stack = "\n".join(f"\tat org.apache.Some.method(Some.java:{line})" for line in range(40))
    chatter = "\n".join(f"26/11/18 14:00:00 INFO x.Y: stopped {n}" for n in range(40))
    daemon.log(place).write_text(
        f"26/11/18 14:00:00 ERROR x.Y: no start\njava.net.BindException: Address already in use\n{stack}\n{chatter}\n"
    )
    said = daemon.last_words(place)
    assert str(daemon.log(place)) in said
    assert "BindException: Address already in use" in said
    assert "stopped 39" in said
    assert "Some.java" not in said


@pytest.mark.parametrize("name", ["with space", "with,comma", "größe", "a<b"])
def test_a_directory_that_hadoop_cannot_take_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ClusterError, match="cannot hold a cluster: Hadoop takes only letters, digits"):
        Cluster(tmp_path / name)


def test_a_damaged_record_says_what_to_remove(place: Place) -> None:
    (place.directory / "cluster.json").write_text(json.dumps({"nodes": 2})[:-3])
    with pytest.raises(ClusterError, match=r"cluster\.json is damaged; remove .*, and with it the data"):
        place.shape()


def test_nodes_too_small_for_the_profile_as_shipped_say_so(place: Place) -> None:
    """As on a machine of 8 GiB; each amount that it names is enough."""
    small = replace(shape(place), node_memory_mib=2048)
    assert too_small(small) == (
        "a node has 2048 MiB for containers, and profile quick, whose executors take 3584 and whose application takes "
        "896, will be refused: lower profile.quick.memory_mib or yarnstick.spark.overhead_mib by 1536 in all, or give "
        'ARGS="--node-memory-mib 3584" where the machine has that much'
    )
    assert too_small(replace(small, node_memory_mib=3584)) is None
    assert '"--node-memory-mib 4480"' in (too_small(replace(small, nodes=1, node_memory_mib=3584)) or "")
    assert too_small(replace(small, nodes=1, node_memory_mib=4480)) is None


def test_a_disk_too_full_for_blocks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = SimpleNamespace(free=DISK_BYTES)
    monkeypatch.setattr("cluster.room.shutil.disk_usage", lambda _: left)
    assert too_full(tmp_path) is None
    left.free = 200_000_000
    assert too_full(tmp_path) == (
        f"the disk of {tmp_path} has 0.2 GB left, and HDFS and containers may need 4.3 GB: make room, or HDFS will "
        "take no more blocks"
    )


def test_the_profile_as_shipped_is_of_that_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUIGI_CONFIG_PATH", raising=False)
    settings = read_settings("quick")
    [memory_mib] = settings.profile.memory_mib
    resources = Resources(executors=1, cores=1, memory_mib=memory_mib, deploy_mode="client")
    assert settings.profile.deploy_modes == ("client",)
    assert executor_mib(resources, python_mib=settings.spark.overhead_mib, given={}) == EXECUTOR_MIB
    assert master_mib(resources, given={}) == MASTER_MIB


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cluster", *arguments],
        cwd=TOP,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_java_is_one_sentence(place: Place) -> None:
    done = run("up", "--directory", place.directory, JAVA_HOME="/nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: found no Java that runs (/nowhere/bin/java); install Java 17, or name one with JAVA_HOME\n"
    )


def test_an_old_java_is_one_sentence(place: Place, tmp_path: Path) -> None:
    java = tmp_path / "java8" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nprintf '    java.home = /java8\\n    java.specification.version = 1.8\\n' >&2\n")
    java.chmod(0o755)
    done = run("up", "--directory", place.directory, JAVA_HOME=str(tmp_path / "java8"))
    assert done.returncode == 1
    assert "found Java 1.8" in done.stderr
    assert "this Hadoop needs 17" in done.stderr


def test_status_of_nothing(tmp_path: Path) -> None:
    assert run("status", "--directory", tmp_path / "nothing").returncode == 1


def test_two_runs_in_one_directory_do_not_meet(place: Place) -> None:
    with place.alone():
        done = run("run", "--directory", place.directory, "--", "true")
    assert done.returncode == 1
    assert "is in use by another `python -m cluster run`" in done.stderr


def test_the_template_for_a_real_cluster_names_no_address() -> None:
    settings = (TOP / "luigi.cluster.cfg").read_text(encoding="utf-8")
    lines = [line for line in settings.splitlines() if not line.startswith("#")]
    assert not re.findall(r"\d+\.\d+\.\d+\.\d+|localhost|:\d+|://\w", "\n".join(lines))
