"""Which daemons a cluster has, and how each is started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cluster import class_archive, processes
from cluster.configuration import OPENS, QUICK
from cluster.errors import ClusterError
from cluster.jars import Jars
from cluster.java import Java
from cluster.place import HOST, Place, Shape
from cluster.processes import MEMBER, Process

MASTERS = {
    "namenode": "hdfs.server.namenode.NameNode",
    "resourcemanager": "yarn.server.resourcemanager.ResourceManager",
    "jobhistory": "mapreduce.v2.hs.JobHistoryServer",
}
OF_NODES = {
    "datanode": "hdfs.server.datanode.DataNode",
    "nodemanager": "yarn.server.nodemanager.NodeManager",
}
HEAP_MIB = {"resourcemanager": 384}
LEAST_HEAP_MIB = 256
FORMAT_SECONDS = 120
TAIL_LINES = 12
# A developer's environment holds secrets and proxies; daemons, and the containers that NodeManagers start, need these.
INHERITED = ("PATH", "HOME", "LANG", "TZ", "USER", "LOGNAME")


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    name: str  # namenode, datanode-1
    kind: str
    node: int | None
    web: str  # host:port of its pages and its JMX
    rpc: str  # host:port by which others know it

    def log(self, place: Place) -> Path:
        return place.logs / f"{self.name}.log"

    def last_words(self, place: Place) -> str:
        """Where it lies, and the end of its log: from the last exception on, without the lines of its stack."""
        try:
            lines = self.log(place).read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return f"there is no log {self.log(place)}"
        told = [line for line in lines if line.strip() and not re.match(r"\s+(at |\.\.\. \d|Suppressed:)|[/*]+$", line)]
        causes = [
            number
            for number, line in enumerate(told)
            if re.search(r" (ERROR|FATAL) |^Caused by: |^\S+Exception: ", line)
        ]
        tail = told[-TAIL_LINES:]
        if causes and causes[-1] < len(told) - TAIL_LINES:
            tail = [*told[causes[-1] : causes[-1] + 2], "...", *tail[2:]]
        return "\n".join([f"the last lines of {self.log(place)}:", *tail])


def daemons(shape: Shape) -> list[Daemon]:
    """In the order in which they are started."""
    ports = shape.ports
    found = [_daemon("namenode", None, HOST, ports, "")]
    for node in range(1, shape.nodes + 1):
        found.append(_daemon("datanode", node, HOST, ports, f"-{node}"))
    found.append(_daemon("resourcemanager", None, HOST, ports, ""))
    for node in range(1, shape.nodes + 1):
        found.append(_daemon("nodemanager", node, f"127.0.0.{node}", ports, f"-{node}"))
    return [*found, _daemon("jobhistory", None, HOST, ports, "")]


def _daemon(kind: str, node: int | None, host: str, ports: dict[str, int], suffix: str) -> Daemon:
    web = f"{host}:{ports[f'{kind}_web{suffix}']}"
    return Daemon(name=kind + suffix, kind=kind, node=node, web=web, rpc=f"{host}:{ports[kind + suffix]}")


def start(daemon: Daemon, place: Place, *, jars: Jars, java: Java, records_classes: bool) -> Process:
    """Start a daemon and record its process."""
    place.logs.mkdir(exist_ok=True)
    log = daemon.log(place)
    if log.exists():
        log.replace(log.with_suffix(".log.before"))
    # What a daemon that was killed left there is of no use to the next.
    shutil.rmtree(place.scratch(daemon.name), ignore_errors=True)
    place.scratch(daemon.name).mkdir(parents=True)
    command = _command(daemon, place, jars=jars, java=java)
    if records_classes:
        command[1:1] = class_archive.recording(place, daemon.name)
    process = processes.start(
        command,
        environment=_environment(daemon.name, place, java=java),
        directory=place.directory,
        log=log,
    )
    place.record_process(daemon.name, process)
    return process


def format_names(place: Place, shape: Shape, *, jars: Jars, java: Java) -> None:
    """Make the NameNode's directory once; killed half-way, it is made again."""
    if place.names.exists():
        return
    fresh = place.names.with_name("name.new")
    place.logs.mkdir(exist_ok=True)
    log = place.logs / "format.log"
    # Blocks without a NameNode's directory are nobody's, and a DataNode that has some would refuse the new one.
    for leftover in [fresh, *place.names.parent.glob("data-*")]:
        shutil.rmtree(leftover, ignore_errors=True)
    namenode = daemons(shape)[0]
    command = _command(namenode, place, jars=jars, java=java)
    arguments = ["-D", f"dfs.namenode.name.dir=file://{fresh}", "-format", "-force", "-nonInteractive"]
    with log.open("wb") as output:
        try:
            status = subprocess.run(
                [*command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=place.directory,
                env=_environment("format", place, java=java),
                timeout=FORMAT_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise ClusterError(f"formatting HDFS did not end within {FORMAT_SECONDS} seconds; see {log}") from None
    if status != 0 or not fresh.is_dir():
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:])
        raise ClusterError(f"formatting HDFS ended with {status}; the last lines of {log}:\n{tail}")
    fresh.replace(place.names)


def _command(daemon: Daemon, place: Place, *, jars: Jars, java: Java) -> list[str]:
    configuration = place.configuration if daemon.node is None else place.node_configuration(daemon.node)
    # Nothing in the jars has the name of a file of the configuration.
    class_path = [jars.everything, str(configuration)]
    if daemon.kind in ("namenode", "datanode"):
        class_path.append(jars.pages)
    return [
        str(java.command),
        f"-Xmx{HEAP_MIB.get(daemon.kind, LEAST_HEAP_MIB)}m",
        *QUICK,
        *OPENS,
        *class_archive.options(jars, java),
        "-Djava.net.preferIPv4Stack=true",
        f"-XX:ErrorFile={place.logs}/{daemon.name}.crash",
        f"-Djava.io.tmpdir={place.scratch(daemon.name)}",
        "-cp",
        ":".join(class_path),
        f"org.apache.hadoop.{(MASTERS | OF_NODES)[daemon.kind]}",
    ]


def _environment(name: str, place: Place, *, java: Java) -> dict[str, str]:
    inherited = {key: os.environ[key] for key in INHERITED if key in os.environ}
    own = {
        "JAVA_HOME": str(java.home),
        "HADOOP_HOME": str(place.home),
        MEMBER: place.mark(name),
        # glibc would keep an arena of memory for each of a daemon's many threads.
        "MALLOC_ARENA_MAX": "2",
    }
    return inherited | own
