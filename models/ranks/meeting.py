"""How the ranks of a barrier stage find each other: each hands round by what address it is reached.

Nobody is known beforehand. Spark takes a second to hand words round; without torch, so that it is loaded meanwhile.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

import msgspec
import psutil

from store.errors import TrialError

if TYPE_CHECKING:
    from pyspark import BarrierTaskContext

LOOPBACK = "127.0.0.1"
RANKS_AT_ONCE = 128
MEETING_SECONDS = 240.0


class PeerError(TrialError):
    """Another rank is gone or stalls: why that is, it knows itself or nobody."""


class StallError(PeerError):
    """Another rank stands still, and it is known on which node."""


class StandstillError(TrialError):
    """A task of the stage stands still, and keeps its slot. Executors that Spark then loses are not why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Of a task among all of its stage, which fills every slot of every executor: one of an executor's tasks trains."""

    rank: int  # of its executor
    size: int  # how many executors there are
    host: str
    others: tuple[str, ...]  # hosts of the other executors that are not this one
    trains: bool

    @classmethod
    def of(cls, context: BarrierTaskContext) -> Place:
        executors = [info.address for info in context.getTaskInfos()]  # host:port, by which Spark tells them apart
        own = executors[context.partitionId()]
        ranked = sorted(set(executors))  # the same rank for the same executor in every stage
        hosts = [_host(each) for each in ranked]
        return cls(
            rank=ranked.index(own),
            size=len(ranked),
            host=_host(own),
            others=tuple(each for each in dict.fromkeys(hosts) if each != _host(own)),
            trains=executors.index(own) == context.partitionId(),
        )


@dataclass(frozen=True, slots=True)
class Announced:
    """What a rank says of itself to all."""

    rank: int
    node: str  # as Spark knows it
    host: str  # the address by which others reach it
    ports: list[int]  # on which it listens


class Meeting:
    """One rank's part in it. Tasks that do not train say nothing, but must be there: see `skipped`."""

    def __init__(
        self, context: BarrierTaskContext, place: Place, *, listeners: int, seconds: float = MEETING_SECONDS
    ) -> None:
        self.place = place
        self._seconds = seconds
        self._began = time.monotonic()
        self._context = context
        self._wanted = listeners
        self._ends = ExitStack()
        self._listeners: list[socket.socket] = []
        self._every: list[Announced] = []
        self._error: TrialError | None = None
        self._thread = threading.Thread(target=self._meet, daemon=True, name="meeting")
        self._thread.start()

    def met(self) -> list[Announced]:
        """All ranks, in order."""
        self._join()
        if self._thread.is_alive():
            raise _not_all(self._context, self.place, self._seconds)
        if self._error is not None:
            raise self._error
        return self._every

    def listeners(self) -> list[socket.socket]:
        """Those of this rank; who takes one over detaches it."""
        self._join()
        return self._listeners

    def close(self) -> None:
        self._join()
        self._ends.close()

    def _join(self) -> None:
        """Not for longer than all have to meet: Spark's own patience is no setting of ours, and says less."""
        self._thread.join(max(0.0, self._began + self._seconds - time.monotonic()))

    def _meet(self) -> None:
        try:
            self._every = self._announced()
        except TrialError as error:
            self._error = error

    def _announced(self) -> list[Announced]:
        place = self.place
        host = own_address(place.host, others=place.others)
        self._listeners += [self._ends.enter_context(_listener(place, host)) for _ in range(self._wanted)]
        own = Announced(place.rank, place.host, host, [each.getsockname()[1] for each in self._listeners])
        if place.size == 1:
            return [own]
        word = msgspec.json.encode(own).decode()
        words = _gathered(self._context, place, word, seconds=self._seconds)
        every = [msgspec.json.decode(each, type=Announced) for each in words if each]
        return sorted(every, key=lambda announced: announced.rank)


def skipped(context: BarrierTaskContext, place: Place, *, seconds: float = MEETING_SECONDS) -> None:
    """What a task does that does not train: all have to be part of what is handed round."""
    if place.size > 1:
        _gathered(context, place, "", seconds=seconds)


def _listener(place: Place, host: str) -> socket.socket:
    try:
        return socket.create_server((host, 0), backlog=max(RANKS_AT_ONCE, place.size))
    except OSError as error:
        raise TrialError(
            f"executor on {place.host} cannot listen on the address that Spark knows it by ({first_line(error)}); does "
            f"its name lead to it there?"
        ) from None


def own_address(host: str, *, others: Sequence[str]) -> str:
    """By which other nodes reach this one: that of the name that Spark knows it by, else the one that leads to them.

    Many a node calls itself 127.0.1.1, and some are known by an address that none of their interfaces has.
    """
    if not others:
        return LOOPBACK  # all are on this node
    own = _resolved(host)
    elsewhere = [address for each in others if (address := _resolved(each)) is not None]
    are_here = bool(elsewhere) and all(each.is_loopback for each in elsewhere)  # of names not known nobody knows it
    if own is not None and (are_here if own.is_loopback else own in _interfaces()):
        return str(own)
    for each in elsewhere:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):  # nothing is sent
            probe.connect((str(each), 9))
            return str(probe.getsockname()[0])
    raise PeerError(
        f"executor on {host}: no interface of this node has the address of {host} ({own or 'not known'}), and no way "
        f"leads to {' or '.join(others)}; give nodes names that they all resolve to their addresses"
    )


def interface(address: str) -> str:
    """The name of the one that has it; all of 127.0.0.0/8 is the loopback."""
    asked = IPv4Address(address)
    return _interfaces()[IPv4Address(LOOPBACK) if asked.is_loopback else asked]


def _interfaces() -> dict[IPv4Address, str]:
    return {
        IPv4Address(each.address): name
        for name, every in psutil.net_if_addrs().items()
        for each in every
        if each.family == socket.AF_INET
    }


def _resolved(host: str) -> IPv4Address | None:
    with suppress(OSError):
        return IPv4Address(socket.gethostbyname(host))
    return None


def _gathered(context: BarrierTaskContext, place: Place, word: str, *, seconds: float) -> list[str]:
    """The words of all tasks of the stage, of those too that do not train."""
    began = time.monotonic()
    try:
        return list(context.allGather(word))
    except Exception as error:  # of whatever kind: Spark ends a stage of which one task failed, and says no more of it
        if time.monotonic() - began > seconds:
            raise _not_all(context, place, seconds) from None
        raise PeerError(f"another executor ended before all had begun ({first_line(error)})") from None


def _not_all(context: BarrierTaskContext, place: Place, seconds: float) -> StandstillError:
    """Which of them is missing, Spark tells nobody."""
    return StandstillError(
        f"not all {len(context.getTaskInfos())} tasks of the executors met within {seconds:.0f} s: one of them stands "
        f"still; look at {' and '.join(sorted({place.host, *place.others}))} for a Python process that is stopped or "
        f"has no processor or memory left, then run again"
    )


def _host(address: str) -> str:
    """Of Spark's host:port, where it has a port."""
    return address.rpartition(":")[0] or address


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
