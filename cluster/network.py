"""Machines on a switch, each a network namespace of this one, with links as slow as one likes.

Needs root and iproute2. Nothing of the machine's own network is touched: all links have both ends in namespaces.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from cluster.errors import ClusterError
from cluster.processes import Process, end, started

# Only these namespaces know the range, so that it may be in use elsewhere.
NETWORK = "10.77.0"
MOST_HOSTS = 250
SWITCH, BRIDGE, UPLINK = "switch", "bridge", "uplink"
NAMESPACES = Path("/run/netns")
# Whose it is stands in its name, a process by id and start: so leftovers of one that was killed are told from others.
NAME = re.compile(r"yarnstick-(?P<pid>\d+)-(?P<ticks>\d+)-\d+-[a-z0-9-]+")
HOST = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST_HOST = 12  # the kernel's 15 for a port's name, less what we put before it
BURST_SECONDS, LEAST_BURST_BYTES = 0.001, 16_384  # what a link lets pass at once
QUEUE_SECONDS = 0.05  # how long a packet may wait in a port of the switch before it is dropped
PATIENCE_SECONDS = 5.0
_numbers = itertools.count(1)


class Network:
    """Up when it is entered; all that runs in it is ended when it is left."""

    def __init__(self, *hosts: str) -> None:
        if not 0 < len(hosts) <= MOST_HOSTS:
            raise ClusterError(f"a network of {len(hosts)} hosts; it may have 1 to {MOST_HOSTS}")
        for host in hosts:
            if not HOST.fullmatch(host) or len(host) > LONGEST_HOST or host == SWITCH or hosts.count(host) > 1:
                raise ClusterError(
                    f"a host called {host!r}; write lower-case letters, digits and hyphens, at most {LONGEST_HOST}, "
                    f"each host another name, none of them {SWITCH}"
                )
        self.hosts = hosts
        self._owner = f"yarnstick-{os.getpid()}-{_ticks(os.getpid())}-{next(_numbers)}"

    def __enter__(self) -> Network:
        remove_leftovers()
        try:
            self._up()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def address(self, host: str) -> str:
        return f"{NETWORK}.{self.hosts.index(host) + 1}"

    def command(self, host: str, command: Sequence[str]) -> list[str]:
        """The same command, on that host. The process is the command's own: nothing stands between."""
        return ["ip", "netns", "exec", self.namespace(host), *command]

    def namespace(self, host: str) -> str:
        return f"{self._owner}-{host}"

    def limit(self, megabits: float | None) -> None:
        """Of every link, in each direction, from now on; None: as fast as the machine is."""
        for host in self.hosts:
            for end_of_link in ((host, UPLINK), (SWITCH, _port(host))):
                self._limit(*end_of_link, megabits)

    def close(self) -> None:
        _remove([self.namespace(host) for host in (*self.hosts, SWITCH)])

    def _up(self) -> None:
        for host in (SWITCH, *self.hosts):
            _do("ip", "netns", "add", self.namespace(host))
            self._ip(host, "link", "set", "lo", "up")
        self._ip(SWITCH, "link", "add", BRIDGE, "type", "bridge")
        self._ip(SWITCH, "link", "set", BRIDGE, "up")
        for host in self.hosts:
            # Made within the namespaces: it never is among the machine's own links.
            peer = ("peer", "name", UPLINK, "netns", self.namespace(host))
            self._ip(SWITCH, "link", "add", _port(host), "type", "veth", *peer)
            self._ip(SWITCH, "link", "set", _port(host), "master", BRIDGE, "up")
            self._ip(host, "address", "add", f"{self.address(host)}/24", "dev", UPLINK)
            self._ip(host, "link", "set", UPLINK, "up")

    def _ip(self, host: str, *arguments: str) -> None:
        _do("ip", "-netns", self.namespace(host), *arguments)

    def _limit(self, host: str, link: str, megabits: float | None) -> None:
        """A token bucket. Of one that is there already the queue would be lost; it is made anew."""
        qdisc = ("tc", "-netns", self.namespace(host), "qdisc")
        with suppress(ClusterError):  # there is none
            _do(*qdisc, "delete", "dev", link, "root")
        if megabits is not None:
            bytes_a_second = megabits * 1e6 / 8
            burst = max(LEAST_BURST_BYTES, round(bytes_a_second * BURST_SECONDS))
            queue = burst + round(bytes_a_second * QUEUE_SECONDS)
            bucket = ("rate", f"{megabits:g}mbit", "burst", str(burst), "limit", str(queue))
            _do(*qdisc, "add", "dev", link, "root", "tbf", *bucket)


def why_not() -> str | None:
    """Why there can be no such network here, found by making one; None: there can."""
    if os.geteuid() != 0:
        return f"network namespaces need root, and this is user {os.geteuid()}"
    for command in ("ip", "tc"):
        if shutil.which(command) is None:
            return f"no {command} on PATH (on Debian: apt-get install iproute2)"
    try:
        with Network("tried") as network:
            network.limit(100)
    except ClusterError as error:
        return str(error)
    return None


def namespaces() -> list[str]:
    """Those of all our networks, whoever's they are."""
    with suppress(FileNotFoundError):
        return sorted(path.name for path in NAMESPACES.iterdir() if NAME.fullmatch(path.name))
    return []


def remove_leftovers() -> list[str]:
    """Networks whose process is gone, with all that runs in them; their names."""
    dead = [name for name in namespaces() if not _has_owner(name)]
    _remove(dead)
    return dead


def _has_owner(name: str) -> bool:
    told = NAME.fullmatch(name)
    return told is not None and _ticks(int(told["pid"])) == told["ticks"]


def _ticks(pid: int) -> str | None:
    """When it started. Namespaces end with the system, so the boot need not be told."""
    since = started(pid)
    return since and since.partition("@")[0]


def _remove(names: Sequence[str]) -> None:
    """A process in a namespace of ours is ours: nobody else knows of it."""
    there = {name: which for name in names if (which := _which(NAMESPACES / name)) is not None}
    end(_inhabitants(there.values()), patience=PATIENCE_SECONDS)
    for name in there:
        try:
            _do("ip", "netns", "delete", name)
        except ClusterError:
            if (NAMESPACES / name).exists():  # else another process found the same leftovers
                raise
    # Those that came in meanwhile: nobody does any more, as there is no name to come in by.
    end(_inhabitants(there.values()), patience=PATIENCE_SECONDS)


def _inhabitants(namespaces: Iterable[tuple[int, int]]) -> list[Process]:
    asked = set(namespaces)
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    found = [(pid, started(pid)) for pid in pids if _which(Path(f"/proc/{pid}/ns/net")) in asked]
    return [Process(pid=pid, started=since) for pid, since in found if since is not None]


def _which(namespace: Path) -> tuple[int, int] | None:
    """What tells a namespace from all others, by whatever path; None where there is none."""
    try:
        found = namespace.stat()
    except OSError:  # gone, or a process that is not for us to look into
        return None
    return found.st_dev, found.st_ino


def _port(host: str) -> str:
    return f"to-{host}"


def _do(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[0]
        raise ClusterError(f"{' '.join(command)} failed: {said}")
    return done.stdout
