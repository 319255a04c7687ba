"""The HDFS that a store lies on: its NameNode, room and quotas, and its clock."""

from __future__ import annotations

from pipeline.checks.check import Check, bad, fine
from pipeline.checks.places import needed_bytes
from pipeline.cleaning import size
from pipeline.opening import reach
from pipeline.settings import Settings
from report.words import counted, listed
from store.addresses import Place, place_of
from store.hdfs_state import HdfsState, Quota, quotas_of, state_of

COPIES = 3  # that HDFS keeps, where it does not tell
LEAST_NAMES = 1000  # files and directories of a run
SKEW_SECONDS = 5.0  # worth knowing: records of two machines would not fit together
KERBEROS_SECONDS = 300.0  # beyond which Kerberos refuses, as shipped


def namenode(settings: Settings) -> Check:
    state = _state(settings)
    nodes = "" if state.datanodes is None else f", {counted(state.datanodes, 'live DataNode')}"
    said = f"{state.namenode}{f', Hadoop {state.version}' if state.version else ''}{nodes}"
    if state.is_safe:
        return bad(
            f"{said}: it is in safe mode, nothing can be written",
            advice="wait until it has left it, or ask whoever runs HDFS why (hdfs dfsadmin -safemode get)",
        )
    if state.datanodes == 0:
        return bad(f"{said}, so nothing can be written", advice="ask whoever runs HDFS to start its DataNodes")
    return fine(said if state.is_safe is not None else f"{said}; whether it is in safe mode it does not tell")


def room(settings: Settings) -> Check:
    """Of the whole, and what quotas leave of it to this store."""
    state, quotas = _state(settings), quotas_of(_place(settings), reach(settings).access)
    needed, copies = needed_bytes(settings), state.replication or COPIES
    told = [] if state.free_bytes is None else [f"{size(state.free_bytes)} free"]
    told += [_left(each) for each in quotas]
    said = (
        f"{listed(told) or 'it does not tell what is free'}; at most {size(needed * copies)} are needed, {size(needed)}"
        f" in {counted(copies, 'copy')}"
    )
    short = [each for each in quotas if each.bytes_left is not None and each.bytes_left < needed * copies]
    few = [each for each in quotas if each.names_left is not None and each.names_left < LEAST_NAMES]
    if short or few:
        return bad(said, advice=f"make room below {(short or few)[0].path}, or have its quota raised")
    if state.free_bytes is not None and state.free_bytes < needed * copies:
        return bad(said, advice="make room on HDFS")
    return fine(said)


def clock(settings: Settings) -> Check:
    """A NameNode tells whole seconds only."""
    ahead = _state(settings).ahead_seconds
    if ahead is None:
        return fine("the NameNode does not tell its time")
    said = f"the NameNode's is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} ours"
    if abs(ahead) < SKEW_SECONDS:
        return fine(f"the NameNode's and ours are within {SKEW_SECONDS:.0f} s")
    if settings.store.security == "kerberos" and abs(ahead) >= KERBEROS_SECONDS:
        return bad(f"{said}, and Kerberos refuses from {KERBEROS_SECONDS:.0f} s on", advice="set this clock by NTP")
    return fine(said, advice="set both by NTP: times in records and in logs do not fit together")


def _left(quota: Quota) -> str:
    parts = [] if quota.bytes_left is None else [size(max(0, quota.bytes_left))]
    parts += [] if quota.names_left is None else [counted(max(0, quota.names_left), "file")]
    return f"{listed(parts)} within the quota of {quota.path}"


def _place(settings: Settings) -> Place:
    return place_of(settings.store.url, namenodes=settings.store.namenodes)


def _state(settings: Settings) -> HdfsState:
    return state_of(_place(settings), reach(settings).access)
