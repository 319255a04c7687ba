"""Where a cluster lies and what is recorded of it: its directory, its ports, the ids of its processes."""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from cluster.errors import ClusterError
from cluster.processes import POLL_SECONDS, Process

HOST = "127.0.0.1"
# Below the ports that the kernel gives to outgoing connections, which would take ours while the cluster is down.
FIRST_PORT, LAST_PORT = 20_000, 31_999
MASTER_PORTS = (
    "namenode",
    "namenode_web",
    "resourcemanager",
    "resourcemanager_scheduler",
    "resourcemanager_tracker",
    "resourcemanager_admin",
    "resourcemanager_web",
    "jobhistory",
    "jobhistory_web",
    "jobhistory_admin",
)
NODE_PORTS = (
    "datanode",
    "datanode_web",
    "datanode_ipc",
    "nodemanager",
    "nodemanager_localizer",
    "nodemanager_web",
    "shuffle",
)
MOST_NODES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a cluster is, kept from one up to the next."""

    nodes: int
    node_memory_mib: int
    node_vcores: int
    ports: dict[str, int]  # of a node: datanode-1 and so on


class Place:
    """A cluster's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(os.path.abspath(directory))
        check_path(self.directory)
        self.logs = self.directory / "logs"
        self.configuration = self.directory / "conf"
        self.home = self.directory / "home"
        self.names = self.directory / "hdfs" / "name"
        self.environment = self.directory / "env"
        self._shape = self.directory / "cluster.json"
        self._processes = self.directory / "processes"

    def node_configuration(self, node: int) -> Path:
        return self.directory / f"conf-{node}"

    def scratch(self, daemon: str) -> Path:
        """For what a daemon unpacks while it runs; /tmp would keep it when the daemon is killed."""
        return self.directory / "tmp" / daemon

    def mark(self, daemon: str | None = None) -> str:
        """What a daemon and all that it starts carry in their environment; without a name how all of them begin."""
        return f"{self.directory}#" if daemon is None else f"{self.directory}#{daemon}#"

    @contextmanager
    def held(self) -> Iterator[None]:
        """One up or down at a time."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One at a time that makes and removes the whole directory."""
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        with self.directory.with_name(f"{self.directory.name}.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ClusterError(
                    f"{self.directory} is in use by another `python -m cluster run`; wait for it, or name another "
                    "with --directory"
                ) from None
            yield

    def shape(self) -> Shape | None:
        try:
            return Shape(**json.loads(self._shape.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            raise ClusterError(f"{self._shape} is damaged; remove {self.directory}, and with it the data") from None

    def record_shape(self, shape: Shape) -> None:
        _replace(self._shape, json.dumps(asdict(shape), indent=1))

    def process(self, daemon: str) -> Process | None:
        """The living process of a daemon, if there is one; a record of a dead one is removed."""
        record = self._processes / f"{daemon}.json"
        try:
            process = Process(**json.loads(record.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        if process.is_alive():
            return process
        record.unlink(missing_ok=True)
        return None

    def record_process(self, daemon: str, process: Process) -> None:
        self._processes.mkdir(exist_ok=True)
        _replace(self._processes / f"{daemon}.json", json.dumps(asdict(process)))

    def forget_process(self, daemon: str) -> None:
        (self._processes / f"{daemon}.json").unlink(missing_ok=True)

    def recorded(self) -> list[str]:
        """The daemons that a process is recorded of."""
        return sorted(path.stem for path in self._processes.glob("*.json"))


def still_taken(ports: Mapping[str, int], *, patience: float) -> dict[str, int]:
    """Those that are in use, and still are after so many seconds."""
    gives_up = time.monotonic() + patience
    while (taken := {name: port for name, port in ports.items() if not is_free(port)}) and time.monotonic() < gives_up:
        time.sleep(POLL_SECONDS)
    return taken


def check_path(directory: Path) -> None:
    if not re.fullmatch(r"[\w./+-]+", str(directory), re.ASCII):
        raise ClusterError(
            f"directory {directory} cannot hold a cluster: Hadoop takes only letters, digits and ._/+- in its paths; "
            "take a checkout elsewhere, or name a directory with --directory"
        )


def port_names(nodes: int) -> list[str]:
    return [*MASTER_PORTS, *(f"{name}-{node}" for node in range(1, nodes + 1) for name in NODE_PORTS)]


def choose_ports(place: Place, *, nodes: int, recorded: dict[str, int]) -> dict[str, int]:
    """A free port for each name; a recorded one stays what it is.

    Where the search begins follows from the directory, so that two checkouts hardly ever look at the same ports.
    """
    ports = {name: recorded[name] for name in port_names(nodes) if name in recorded}
    span = LAST_PORT - FIRST_PORT + 1
    begin = zlib.crc32(str(place.directory).encode()) % span
    candidates = (FIRST_PORT + (begin + step) % span for step in range(span))
    taken = set(ports.values())
    free = (port for port in candidates if port not in taken and is_free(port))
    for name in port_names(nodes):
        if name not in ports:
            try:
                ports[name] = next(free)
            except StopIteration:
                raise ClusterError(f"no port is free from {FIRST_PORT} to {LAST_PORT}; end what holds them") from None
    return ports


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Java's servers do: a connection that has just ended is no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))  # noqa: S104 - never listened on
        except OSError:
            return False
        return True


def _replace(path: Path, text: str) -> None:
    """Whole or not at all, whenever we are killed."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)
