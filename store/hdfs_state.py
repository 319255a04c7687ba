"""What an HDFS is like just now: safe mode, room, quotas of a place, and how its clock differs from ours."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import msgspec

from store.addresses import Place
from store.namenodes import Access, Attempt, NameNodes, Refusal
from store.refusals import AnsweredError

# The small bean: NameNodeInfo lists every DataNode.
STATE = {"qry": "Hadoop:service=NameNode,name=FSNamesystemState"}
VERSION = {"get": "Hadoop:service=NameNode,name=NameNodeInfo::SoftwareVersion"}
SAFE = "safeMode"
DATE = len("Wed, 18 Nov 2026 16:44:55 GMT")
TRUNCATED_SECONDS = 0.5  # a header tells whole seconds, so this is what it lacks on average
# Quotas are given to homes and projects; to count what lies below anything higher up may take a NameNode long.
LEAST_DEPTH = 2
NO_SUCH_OPERATION = "IllegalArgumentException"


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsState:
    namenode: str
    version: str  # empty where it does not tell
    is_safe: bool | None  # in safe mode, where nothing can be written; None: it does not tell
    datanodes: int | None  # that live
    free_bytes: int | None  # of all disks, for all copies
    replication: int | None
    ahead_seconds: float | None  # its clock before ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Of one directory at or above the store; None where there is none."""

    path: str
    names_left: int | None
    bytes_left: int | None  # each copy counts


class _Bean(msgspec.Struct):
    version: str = msgspec.field(default="", name="SoftwareVersion")
    state: str = msgspec.field(default="", name="FSState")
    free: int | None = msgspec.field(default=None, name="CapacityRemaining")
    datanodes: int | None = msgspec.field(default=None, name="NumLiveDataNodes")


class _Beans(msgspec.Struct):
    beans: list[_Bean] = []


class _Defaults(msgspec.Struct):
    replication: int | None = None


class _ServerDefaults(msgspec.Struct):
    FsServerDefaults: _Defaults


class _Usage(msgspec.Struct):
    names: int = msgspec.field(default=0, name="fileAndDirectoryCount")
    files: int = msgspec.field(default=0, name="fileCount")
    directories: int = msgspec.field(default=0, name="directoryCount")
    consumed: int = msgspec.field(default=0, name="spaceConsumed")
    names_quota: int = msgspec.field(default=-1, name="quota")
    space_quota: int = msgspec.field(default=-1, name="spaceQuota")


class _Counted(msgspec.Struct):
    usage: _Usage | None = msgspec.field(default=None, name="QuotaUsage")
    summary: _Usage | None = msgspec.field(default=None, name="ContentSummary")


def state_of(place: Place, access: Access) -> HdfsState:
    """Of the active NameNode; what a NameNode keeps to its administrators is left open."""

    def asked(attempt: Attempt) -> HdfsState:
        before = time.time()
        answer = attempt.client._get_file_status("/")
        ahead = _ahead(answer.headers.get("Date", ""), (before + time.time()) / 2)
        bean = _bean(attempt, STATE)
        return HdfsState(
            namenode=attempt.client.url,
            version=_bean(attempt, VERSION).version,
            is_safe=bean.state == SAFE if bean.state else None,
            datanodes=bean.datanodes,
            free_bytes=bean.free,
            replication=_replication(attempt),
            ahead_seconds=ahead,
        )

    return NameNodes(place.url, place.namenodes, access).call(asked, path="", what="asked")


def quotas_of(place: Place, access: Access) -> list[Quota]:
    """Those that hold for the store, whose directory need not be there yet."""
    namenodes = NameNodes(place.url, place.namenodes, access)
    segments = [each for each in place.root.split("/") if each]
    paths = ["/" + "/".join(segments[:depth]) for depth in range(LEAST_DEPTH, len(segments) + 1)]
    found = []
    for path in paths:
        # What is not there yet, or not ours to look into, has no quota that we could tell.
        with suppress(Refusal):
            usage = namenodes.call(lambda attempt, path=path: _usage(attempt, path), path="", what="asked")  # type: ignore[misc]
            found.append(_quota(path, usage))
    return [each for each in found if each.names_left is not None or each.bytes_left is not None]


def _quota(path: str, usage: _Usage) -> Quota:
    names = usage.names or usage.files + usage.directories
    return Quota(
        path=path,
        names_left=usage.names_quota - names if usage.names_quota >= 0 else None,
        bytes_left=usage.space_quota - usage.consumed if usage.space_quota >= 0 else None,
    )


def _usage(attempt: Attempt, path: str) -> _Usage:
    """By the operation that counts nothing where there is a quota; older servers have only the other one."""
    try:
        content = _get(attempt, path, "GETQUOTAUSAGE")
    except AnsweredError as error:
        if error.name != NO_SUCH_OPERATION:
            raise
        content = _get(attempt, path, "GETCONTENTSUMMARY")
    counted = msgspec.json.decode(content, type=_Counted, strict=False)
    return counted.usage or counted.summary or _Usage()


def _replication(attempt: Attempt) -> int | None:
    try:
        content = _get(attempt, "/", "GETSERVERDEFAULTS")
        return msgspec.json.decode(content, type=_ServerDefaults).FsServerDefaults.replication
    except (AnsweredError, msgspec.DecodeError):  # Hadoop 3.1 does not tell
        return None


def _bean(attempt: Attempt, query: dict[str, str]) -> _Bean:
    try:
        answer = attempt.client._request("GET", f"{attempt.client.url}/jmx", params=query)
        return next(iter(msgspec.json.decode(answer.content, type=_Beans, strict=False).beans), _Bean())
    except (AnsweredError, msgspec.DecodeError):
        return _Bean()


def _get(attempt: Attempt, path: str, operation: str) -> bytes:
    """What the hdfs package has no method for."""
    url = f"{attempt.client.url}/webhdfs/v1{quote(path)}"
    answer: Any = attempt.client._request("GET", url, params={"op": operation})
    content: bytes = answer.content
    return content


def _ahead(date: str, ours: float) -> float | None:
    with suppress(ValueError):
        return parsedate_to_datetime(date[:DATE]).timestamp() + TRUNCATED_SECONDS - ours
    return None
