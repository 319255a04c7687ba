"""A cluster's life: up, down, and single daemons that a test kills and starts again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cluster import class_archive, configuration, daemons, jars, processes, readiness
from cluster.daemons import Daemon
from cluster.errors import ClusterError
from cluster.jars import Jars
from cluster.java import Java, find_java
from cluster.place import MOST_NODES, Place, Shape, choose_ports, still_taken
from cluster.processes import Process
from cluster.room import too_full, too_small

NODES = 2
READY_SECONDS = 180.0
# Containers get SIGTERM from their NodeManager, which waits for them; HDFS writes what it has in memory.
END_SECONDS = 20.0
FREE_SECONDS = 2.0  # until the kernel has taken back the ports of a process that ended
KEPT_FOR_THE_SYSTEM_MIB = 4096
LARGEST_NODE_MIB = 8192
LEAST_NODE_MIB = 2048


class Cluster:
    def __init__(self, directory: Path, *, say: Callable[[str], None] = print) -> None:
        self.place = Place(directory)
        self._say = say

    def up(
        self,
        *,
        nodes: int | None = None,
        node_memory_mib: int | None = None,
        node_vcores: int | None = None,
        patience: float = READY_SECONDS,
    ) -> None:
        """Start what does not run, and wait until all is ready; on failure what was started here is ended again."""
        began = time.monotonic()
        java = find_java()
        fetched = jars.fetched(self._say)
        with self.place.held():
            shape = self._shape(nodes=nodes, node_memory_mib=node_memory_mib, node_vcores=node_vcores)
            found = {daemon: self.place.process(daemon.name) for daemon in daemons.daemons(shape)}
            missing = [daemon for daemon, process in found.items() if process is None]
            running = {daemon.name: process for daemon, process in found.items() if process is not None}
            for daemon in missing:
                self._end_leftovers(daemon.name)
            shape = self._with_free_ports(shape, missing=missing)
            self.place.record_shape(shape)
            configuration.write(self.place, shape, jars=fetched, java=java)
            names = [daemon.name for daemon in missing]
            # Only of a whole cluster, so that no daemon's classes are left out.
            records_classes = (
                len(names) == len(daemons.daemons(shape)) and not class_archive.path(fetched, java).exists()
            )
            try:
                running |= self._start(shape, names, jars=fetched, java=java, records_classes=records_classes)
                readiness.wait(
                    self.place, {daemon: running[daemon.name] for daemon in daemons.daemons(shape)}, patience=patience
                )
                _make_folders(self.daemon("namenode"))
            except BaseException:
                self._end(names)
                raise
            self._say(f"ready after {time.monotonic() - began:.1f} s" if missing else "it runs already")
            for warning in (too_small(shape), too_full(self.place.directory)):
                if warning:
                    self._say(warning)
            if records_classes:
                self._say("making an archive of Hadoop's classes, once: later starts are quicker")
                class_archive.make(self.place, names, jars=fetched, java=java)

    def down(self) -> None:
        """End all that belongs to this directory, and look that nothing is left."""
        if not self.place.directory.is_dir():
            # Somebody may have removed it under a cluster that runs.
            self._end_leftovers()
            return
        with self.place.held():
            names = self.place.recorded()
            # While NodeManagers end they hand containers' logs to HDFS: it goes last.
            yarn = [name for name in names if not name.startswith(("namenode", "datanode"))]
            self._end(yarn)
            self._end([name for name in names if name not in yarn])
            self._end_leftovers()
            shape = self.place.shape()
            ended = [self.daemon(name) for name in names] if shape else []
            busy = self._still_taken(shape, ended) if shape else {}
        if busy:
            raise ClusterError(
                "all processes of the cluster have ended, and yet another one listens on "
                + ", ".join(f"{port} ({name})" for name, port in busy.items())
            )

    def remove(self) -> None:
        """Down, and HDFS's data with it."""
        self.down()
        shutil.rmtree(self.place.directory, ignore_errors=True)

    def kill(self, name: str) -> None:
        """SIGKILL to one daemon, as a crash would end it; its containers go on."""
        process = self.place.process(name)
        if process is None:
            raise ClusterError(f"{name} does not run in {self.place.directory}; {self._known()}")
        process.signal(signal.SIGKILL)
        processes.wait_for_end([process], patience=END_SECONDS)

    def status(self) -> dict[str, Process | None]:
        shape = self.place.shape()
        return {daemon.name: self.place.process(daemon.name) for daemon in daemons.daemons(shape)} if shape else {}

    def web(self, name: str) -> str:
        """The address of a daemon's pages."""
        return f"http://{self.daemon(name).web}"

    def daemon(self, name: str) -> Daemon:
        shape = self.place.shape()
        found = [each for each in daemons.daemons(shape) if each.name == name] if shape else []
        if not found:
            raise ClusterError(f"{self.place.directory} has no {name}; {self._known()}")
        return found[0]

    def environment(self) -> dict[str, str]:
        """What commands need that use this cluster: the exports of its file `env`."""
        script = '. "$1" && env -0'
        told = subprocess.run(
            ["/bin/sh", "-c", script, "sh", str(self.place.environment)], capture_output=True, check=True
        ).stdout.decode()
        pairs = (entry.partition("=") for entry in told.split("\0") if entry)
        return {key: value for key, _, value in pairs if key not in ("_", "PWD", "OLDPWD", "SHLVL")}

    def _start(
        self, shape: Shape, names: list[str], *, jars: Jars, java: Java, records_classes: bool
    ) -> dict[str, Process]:
        self._end_leftovers("format")
        daemons.format_names(self.place, shape, jars=jars, java=java)
        return {
            daemon.name: daemons.start(daemon, self.place, jars=jars, java=java, records_classes=records_classes)
            for daemon in daemons.daemons(shape)
            if daemon.name in names
        }

    def _known(self) -> str:
        return f"it has {', '.join(self.status()) or 'no daemons yet; bring it up first'}"

    def _shape(self, *, nodes: int | None, node_memory_mib: int | None, node_vcores: int | None) -> Shape:
        """As recorded, with what was asked for now."""
        before = self.place.shape()
        if nodes is None:
            nodes = before.nodes if before else NODES
        if not 1 <= nodes <= MOST_NODES:
            raise ClusterError(f"nodes={nodes} is not between 1 and {MOST_NODES}")
        if before and nodes < before.nodes:
            raise ClusterError(
                f"nodes={nodes}, and the cluster in {self.place.directory} has {before.nodes}, whose disks hold its "
                f"data; take {before.nodes} or more, or remove it with `python -m cluster remove`"
            )
        ports = choose_ports(self.place, nodes=nodes, recorded=before.ports if before else {})
        if before is None:
            each = (_memory_mib() - KEPT_FOR_THE_SYSTEM_MIB) // nodes
            # One core more than there are: an application master waits, nearly all of its time.
            before = Shape(
                nodes=nodes,
                node_memory_mib=max(LEAST_NODE_MIB, min(LARGEST_NODE_MIB, each)),
                node_vcores=(os.cpu_count() or 1) + 1,
                ports=ports,
            )
        return replace(
            before,
            nodes=nodes,
            ports=ports,
            node_memory_mib=node_memory_mib or before.node_memory_mib,
            node_vcores=node_vcores or before.node_vcores,
        )

    def _with_free_ports(self, shape: Shape, *, missing: list[Daemon]) -> Shape:
        """Others may have taken ports while we were down: new ones are chosen, unless a daemon that runs knows them."""
        wanted = {name: port for name, port in shape.ports.items() if any(_belongs(name, daemon) for daemon in missing)}
        taken = still_taken(wanted, patience=FREE_SECONDS)
        if not taken:
            return shape
        told = ", ".join(f"{port} ({name})" for name, port in taken.items())
        if len(missing) < len(daemons.daemons(shape)):
            raise ClusterError(
                f"another process listens on {told}, and daemons that run know it; take the cluster down and up, which "
                "chooses another"
            )
        self._say(f"others listen on {told} by now; new ones are chosen")
        kept = {name: port for name, port in shape.ports.items() if name not in taken}
        return replace(shape, ports=choose_ports(self.place, nodes=shape.nodes, recorded=kept))

    def _still_taken(self, shape: Shape, dead: list[Daemon]) -> dict[str, int]:
        theirs = {name: port for name, port in shape.ports.items() if any(_belongs(name, each) for each in dead)}
        return still_taken(theirs, patience=FREE_SECONDS)

    def _end(self, names: list[str]) -> None:
        found = [process for name in names if (process := self.place.process(name)) is not None]
        processes.end(found, patience=END_SECONDS)
        for name in names:
            self._end_leftovers(name)
            self.place.forget_process(name)

    def _end_leftovers(self, name: str | None = None) -> None:
        """What a daemon started and could not end any more, and itself where we were killed before we recorded it."""
        if left := processes.members(self.place.mark(name)):
            processes.end(left, patience=END_SECONDS)


def _belongs(port_name: str, daemon: Daemon) -> bool:
    kind, _, node = port_name.partition("-")
    kind = "nodemanager" if kind == "shuffle" else kind.partition("_")[0]
    return daemon.name == (f"{kind}-{node}" if node else kind)


def _memory_mib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def _make_folders(namenode: Daemon) -> None:
    """A place for everybody's temporary files and a home for the user, as a real cluster has them."""
    me = configuration.user()
    folders = {"/tmp": "1777", "/user": "755", f"/user/{me}": "755", "/yarn": "755"}  # noqa: S108 - on HDFS
    for path, permission in folders.items():
        for operation in ("MKDIRS", "SETPERMISSION"):
            query = f"op={operation}&permission={permission}&user.name={me}"
            readiness.put(f"http://{namenode.web}/webhdfs/v1{path}?{query}")
