"""The cluster itself: up, down, what it survives, what it leaves, and that its commands and pages work."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cluster import processes, readiness
from cluster.errors import ClusterError
from cluster.lifecycle import Cluster
from cluster.processes import Process

WAIT_SECONDS = 120


def hadoop(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["hadoop", *arguments], input=stdin, capture_output=True, check=False)


def fetched(url: str) -> tuple[int, bytes]:
    with readiness.OPENER.open(url, timeout=30) as response:
        return response.status, response.read()


def put(text: bytes, path: str) -> None:
    done = hadoop("fs", "-put", "-f", "-", path, stdin=text)
    assert done.returncode == 0, done.stderr.decode()


def cat(path: str) -> bytes:
    done = hadoop("fs", "-cat", path)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A second one beside the first, as of a second checkout."""
    made = Cluster(tmp_path_factory.mktemp("small") / "cluster", say=lambda _: None)
    yield made
    made.remove()


def test_all_daemons_run(cluster: Cluster) -> None:
    found = cluster.status()
    assert all(found.values())
    kinds = [name.partition("-")[0] for name in found]
    assert kinds.count("datanode") == kinds.count("nodemanager") == 2
    assert {"namenode", "resourcemanager", "jobhistory"} < set(kinds)


def test_up_again_changes_nothing(cluster: Cluster) -> None:
    before = cluster.status()
    said: list[str] = []
    Cluster(cluster.place.directory, say=said.append).up()
    assert cluster.status() == before
    assert said == ["it runs already"]


def test_daemons_listen_on_loopback(cluster: Cluster) -> None:
    found = cluster.status()
    ports = cluster.place.shape().ports  # type: ignore[union-attr]
    outside = {
        each.laddr.port
        for process in found.values()
        if process
        for each in psutil.Process(process.pid).net_connections("inet")
        if each.status == psutil.CONN_LISTEN and not each.laddr.ip.startswith("127.")
    }
    # Hadoop has no setting for the shuffle's address; it answers only who knows the job's secret.
    assert outside <= {ports["shuffle-1"], ports["shuffle-2"]}


@pytest.mark.parametrize(
    ("daemon", "path", "holds"),
    [
        ("namenode", "/", b"dfshealth.html"),
        ("namenode", "/explorer.html", b"Browsing HDFS"),
        ("namenode", "/explorer.js", b"webhdfs"),
        ("namenode", "/static/bootstrap-3.4.1/css/bootstrap.min.css", b"Bootstrap"),
        ("namenode", "/static/jquery-3.6.0.min.js", b"jQuery"),
        ("datanode-2", "/datanode.html", b"DataNode"),
        ("resourcemanager", "/cluster", b"Cluster Metrics"),
        ("resourcemanager", "/static/yarn.css", b"body"),
        ("resourcemanager", "/static/jquery/jquery-3.6.0.min.js", b"jQuery"),
        ("nodemanager-2", "/node", b"NodeManager"),
        ("jobhistory", "/jobhistory", b"JobHistory"),
        ("jobhistory", "/static/yarn.css", b"body"),
    ],
)
def test_pages_work(cluster: Cluster, daemon: str, path: str, holds: bytes) -> None:
    status, body = fetched(cluster.web(daemon) + path)
    assert status == 200
    assert holds in body


def test_the_file_browser_acts_as_the_user(cluster: Cluster) -> None:
    put(b"mine", "mine.txt")
    assert hadoop("fs", "-chmod", "700", ".").returncode == 0
    user = os.environ["YARNSTICK_STORE"].split("/")[4]
    status, body = fetched(f"{cluster.web('namenode')}/webhdfs/v1/user/{user}/mine.txt?op=OPEN")
    assert (status, body) == (200, b"mine")


def test_hadoop_version() -> None:
    assert hadoop("version").stdout.startswith(b"Hadoop 3.")


def test_a_missing_path_is_one_line() -> None:
    """mrjob matches it: a line of the log before it would break that."""
    done = hadoop("fs", "-ls", "/no/such")
    assert done.returncode == 1
    assert done.stderr == b"ls: `/no/such': No such file or directory\n"


@pytest.mark.parametrize(
    "command",
    [["hdfs", "dfsadmin", "-safemode", "get"], ["yarn", "node", "-list"], ["yarn", "application", "-list"]],
    ids=" ".join,
)
def test_commands_of_the_administrator(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def streaming(mapper: str, source: str, target: str, *settings: str) -> list[str]:
    definitions = [part for setting in settings for part in ("-D", setting)]
    files = ["-input", source, "-output", target, "-mapper", mapper, "-reducer", "uniq -c"]
    return ["hadoop", "jar", os.environ["HADOOP_STREAMING_JAR"], *definitions, *files]


def test_a_streaming_job_runs_and_its_log_is_kept() -> None:
    put(b"a b\nb c\nc c\n", "words.txt")
    # The name of the node goes to the task's standard error.
    mapper = """sh -c 'echo it ran >&2; tr " " "\\n"'"""
    done = subprocess.run(streaming(mapper, "words.txt", "counted"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(cat("counted/part-*").split()) == sorted(b"1 a 2 b 3 c".split())
    application = done.stderr.partition("Running job: job_")[2].split()[0]
    # Handed to HDFS after the end of the application.
    until = time.monotonic() + WAIT_SECONDS
    while b"it ran" not in (log := yarn_logs(f"application_{application}")):
        assert time.monotonic() < until, log.decode()


def yarn_logs(application: str) -> bytes:
    done = subprocess.run(["yarn", "logs", "-applicationId", application], capture_output=True, check=False)
    return done.stdout + done.stderr


def test_a_killed_namenode_is_started_again(broken: Cluster) -> None:
    put(b"kept", "kept.txt")
    before = broken.status()
    broken.kill("namenode")
    assert broken.status()["namenode"] is None
    broken.up()
    after = broken.status()
    assert after["namenode"] not in (None, before["namenode"])
    assert {name: each for name, each in after.items() if name != "namenode"} == {
        name: each for name, each in before.items() if name != "namenode"
    }
    assert cat("kept.txt") == b"kept"


def test_a_killed_nodemanagers_containers_are_ended(broken: Cluster) -> None:
    put(b"a\n", "one.txt")
    job = subprocess.Popen(
        streaming("sleep 600", "one.txt", "never", "mapreduce.job.maps=1", "mapreduce.map.maxattempts=1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        # The mapper itself runs on one of the nodes.
        marks = {node: broken.place.mark(node) for node in ("nodemanager-1", "nodemanager-2")}
        until = time.monotonic() + WAIT_SECONDS
        while not (found := {node: process for node in marks if (process := sleeping(marks[node]))}):
            assert time.monotonic() < until, "no mapper was started"
            assert job.poll() is None
            time.sleep(0.5)
        ((node, container),) = found.items()
        broken.kill(node)
        assert container.is_alive()
        broken.up()
        assert not container.is_alive()
    finally:
        job.kill()
        job.wait()
        for line in subprocess.run(
            ["yarn", "application", "-list"], capture_output=True, text=True, check=True
        ).stdout.split():
            if line.startswith("application_"):
                subprocess.run(["yarn", "application", "-kill", line], capture_output=True, check=True)


def sleeping(mark: str) -> Process | None:
    for process in processes.members(mark):
        with suppress(OSError):  # it ended meanwhile
            if Path(f"/proc/{process.pid}/comm").read_text(encoding="utf-8").strip() == "sleep":
                return process
    return None


def test_who_answers_must_be_who_was_started(cluster: Cluster) -> None:
    namenode = cluster.daemon("namenode")
    me = Process(pid=os.getpid(), started=str(processes.started(os.getpid())))
    with pytest.raises(
        ClusterError,
        match=rf"namenode was not ready after 0 seconds: process \d+@.* answers on .*, and not process {me.pid}",
    ):
        readiness.wait(cluster.place, {namenode: me}, patience=0)


def test_down_leaves_nothing_and_up_finds_the_data(broken: Cluster) -> None:
    put(b"over night", "night.txt")
    ports = broken.place.shape().ports  # type: ignore[union-attr]
    broken.down()
    assert processes.members(broken.place.mark()) == []
    assert not any(broken.status().values())
    broken.down()
    # Somebody takes one of its ports meanwhile.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports["jobhistory"]))
        taken.listen()
        broken.up()
        after = broken.place.shape().ports  # type: ignore[union-attr]
        assert after["jobhistory"] != ports["jobhistory"]
        assert after | {"jobhistory": 0} == ports | {"jobhistory": 0}
    assert cat("night.txt") == b"over night"


@pytest.mark.timeout(900)
def test_a_second_cluster_beside_it_comes_and_goes(cluster: Cluster, small: Cluster) -> None:
    before = cluster.status()
    # Killed half-way, as by a closing laptop: what it had started is found again.
    first = subprocess.Popen(
        [sys.executable, "-m", "cluster", "up", "--nodes", "1", "--directory", small.place.directory]
    )
    until = time.monotonic() + WAIT_SECONDS
    while not small.place.recorded():
        assert time.monotonic() < until
        assert first.poll() is None
        time.sleep(0.01)
    first.kill()
    first.wait()
    (early, *_) = small.place.recorded()
    kept_process = small.place.process(early)
    small.up()
    assert small.status()[early] == kept_process
    assert not set(cluster.place.shape().ports.values()) & set(small.place.shape().ports.values())  # type: ignore[union-attr]
    assert len(small.status()) == 5
    # All at once, as when a session ends.
    running = [process for process in small.status().values() if process]
    for process in running:
        process.signal(signal.SIGKILL)
    assert processes.wait_for_end(running, patience=WAIT_SECONDS) == []
    small.up()
    assert all(small.status().values())
    # A DataNode that cannot start: its directory is a file.
    small.kill("datanode-1")
    data = small.place.directory / "hdfs" / "data-1"
    data.rename(data.with_name("away"))
    data.touch()
    kept = small.status()
    with pytest.raises(
        ClusterError, match=r"(?s)datanode-1 died \(process \d+\); the last lines of .*datanode-1\.log:.*data-1"
    ):
        small.up()
    assert small.status() == kept
    with pytest.raises(ClusterError, match="nodes=0 is not between 1 and 16"):
        small.up(nodes=0)
    small.remove()
    assert not small.place.directory.exists()
    assert processes.members(small.place.mark()) == []
    assert cluster.status() == before
