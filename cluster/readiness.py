"""Whether a cluster is ready: each daemon answers, as the very process that was started, and knows the others."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from cluster.daemons import Daemon
from cluster.errors import ClusterError
from cluster.place import Place
from cluster.processes import Process

POLL_SECONDS = 0.2
ANSWER_SECONDS = 5
# Proxies of the environment have no business on loopback.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class NotYet(Exception):
    """Why a daemon is not ready."""


def wait(place: Place, running: Mapping[Daemon, Process], *, patience: float) -> None:
    """Until all are ready; a ClusterError where one died, or after so many seconds."""
    gives_up = time.monotonic() + patience
    by_name = {daemon.name: daemon for daemon in running}
    waiting = dict(running)
    while True:
        for daemon, process in running.items():
            if not process.is_alive():
                raise ClusterError(f"{daemon.name} died (process {process.pid}); {daemon.last_words(place)}")
        reasons = {}
        for daemon, process in waiting.items():
            try:
                _check(daemon, process, by_name)
            except NotYet as cause:
                reasons[daemon] = str(cause)
        waiting = {daemon: running[daemon] for daemon in reasons}
        if not waiting:
            return
        if time.monotonic() >= gives_up:
            daemon, reason = next(iter(reasons.items()))
            raise ClusterError(
                f"{daemon.name} was not ready after {patience:.0f} seconds: {reason}; {daemon.last_words(place)}"
            )
        time.sleep(POLL_SECONDS)


def _check(daemon: Daemon, process: Process, others: Mapping[str, Daemon]) -> None:
    # Started on a port that was taken, a daemon dies and the old one goes on answering in its place.
    name = _told(daemon, "java.lang:type=Runtime", "Name")
    if name.partition("@")[0] != str(process.pid):
        raise NotYet(f"process {name} answers on {daemon.web}, and not process {process.pid}, which was started")
    knows: dict[str, Callable[[Daemon, Mapping[str, Daemon]], None]] = {
        "namenode": _namenode,
        "datanode": _datanode,
        "resourcemanager": _resourcemanager,
        "jobhistory": _jobhistory,
    }
    if daemon.kind in knows:
        knows[daemon.kind](daemon, others)


def _namenode(daemon: Daemon, others: Mapping[str, Daemon]) -> None:
    bean = "Hadoop:service=NameNode,name=NameNodeInfo"
    if why := _told(daemon, bean, "Safemode"):
        raise NotYet(f"it is in safe mode: {why}")
    _all_known(
        {node["xferaddr"] for node in json.loads(_told(daemon, bean, "LiveNodes")).values()},
        {other.rpc for other in others.values() if other.kind == "datanode"},
    )


def _datanode(daemon: Daemon, others: Mapping[str, Daemon]) -> None:
    states = json.loads(_told(daemon, "Hadoop:service=DataNode,name=DataNodeInfo", "BPServiceActorInfo"))
    if not states or any(state["ActorState"] != "RUNNING" for state in states):
        raise NotYet(f"it has not registered with {others['namenode'].rpc}")


def _resourcemanager(daemon: Daemon, others: Mapping[str, Daemon]) -> None:
    nodes = (_answer(f"http://{daemon.web}/ws/v1/cluster/nodes")["nodes"] or {}).get("node", [])
    # A host is shown by its name where it has one, so its pages tell which node it is: ports are never shared.
    expected = {other.web.rpartition(":")[2] for other in others.values() if other.kind == "nodemanager"}
    _all_known({node["nodeHTTPAddress"].rpartition(":")[2] for node in nodes if node["state"] == "RUNNING"}, expected)


def _jobhistory(daemon: Daemon, others: Mapping[str, Daemon]) -> None:
    _answer(f"http://{daemon.web}/ws/v1/history/info")


def _all_known(known: set[str], expected: set[str]) -> None:
    if missing := expected - known:
        raise NotYet(f"{len(expected) - len(missing)} of {len(expected)} nodes have registered")


def _told(daemon: Daemon, bean: str, attribute: str) -> str:
    """What a daemon's JMX says; while it starts, beans are missing, and attributes of beans that are there."""
    beans = _answer(f"http://{daemon.web}/jmx?qry={bean}")["beans"]
    if not beans or attribute not in beans[0]:
        raise NotYet(f"its JMX has no {attribute} yet")
    return str(beans[0][attribute])


def _answer(url: str) -> Any:
    try:
        with OPENER.open(url, timeout=ANSWER_SECONDS) as response:
            return json.load(response)
    except (OSError, ValueError) as error:  # refused, reset, half an answer, or a page that is no JSON
        raise NotYet(f"{url} does not answer ({error})") from None


def put(url: str) -> None:
    """A request of WebHDFS that a NameNode which is ready does not refuse."""
    try:
        OPENER.open(urllib.request.Request(url, method="PUT"), timeout=ANSWER_SECONDS).close()  # noqa: S310 - http
    except OSError as error:
        raise ClusterError(f"{url} was refused ({error}); see the NameNode's log") from None
