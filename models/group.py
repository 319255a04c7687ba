"""Processes that train one network together: how they find each other, and how they sum what each of them found.

Gloo and NCCL do the sums. Nobody is known beforehand: the ranks of a barrier stage hand their addresses round.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

import psutil
import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, TCPStore

from store.errors import TrialError

if TYPE_CHECKING:
    from pyspark import BarrierTaskContext

RENDEZVOUS_SECONDS = 60.0
LOOPBACK = "127.0.0.1"


class PeerError(TrialError):
    """Another rank is gone or stalls: why that is, it knows itself or nobody."""


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


class Group:
    """One rank's view of all."""

    def __init__(
        self, context: BarrierTaskContext, *, device: torch.device, stall_seconds: float, compresses: bool = False
    ) -> None:
        place = Place.of(context)
        self.rank, self.size, self.host = place.rank, place.size, place.host
        self.seconds = 0.0  # spent with the others since it was last set to 0
        self._stall_seconds = stall_seconds
        self._compresses = compresses
        self._started: list[Any] = []
        self._device = device
        if self.size > 1:
            self._join(context, place.others)

    def sum(self, gradient: Tensor) -> None:
        if self.size == 1:
            return
        with self._clocked():
            if self._compresses:
                dist.all_reduce(gradient[-1:])
                self._sum_in_half(gradient[:-1])
            else:
                dist.all_reduce(gradient)

    def start(self, part: Tensor) -> None:
        if self.size > 1:
            with self._clocked():
                self._started.append(dist.all_reduce(part, async_op=True))

    def finish(self) -> None:
        with self._clocked():
            for each in self._started:
                each.wait()
        self._started.clear()

    def _sum_in_half(self, gradient: Tensor) -> None:
        """In bfloat16 on the way, in full precision where it is summed: each rank sums a piece for all."""
        piece = -(-len(gradient) // self.size)
        half = torch.zeros(piece * self.size, dtype=torch.bfloat16, device=self._device)
        half[: len(gradient)] = gradient
        pieces = torch.empty_like(half)
        dist.all_to_all_single(pieces.view(torch.uint8), half.view(torch.uint8))
        own = pieces.view(self.size, piece).to(gradient.dtype).sum(0).to(torch.bfloat16)
        dist.all_gather_into_tensor(half.view(torch.uint8), own.view(torch.uint8))
        gradient.copy_(half[: len(gradient)])

    @contextmanager
    def _clocked(self) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        except RuntimeError as error:
            raise self._lost(error) from None
        self.seconds += time.perf_counter() - began

    def gather(self, numbers: list[float]) -> list[list[float]]:
        """Everybody's, by rank; nobody goes on before all have come."""
        if self.size == 1:
            return [numbers]
        own = torch.tensor(numbers, dtype=torch.float64, device=self._device)
        every = [torch.empty_like(own) for _ in range(self.size)]
        try:
            dist.all_gather(every, own)
        except RuntimeError as error:
            raise self._lost(error) from None
        return [each.tolist() for each in every]

    def close(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()

    def _join(self, context: BarrierTaskContext, others: tuple[str, ...]) -> None:
        """Rank 0 keeps what ranks have to know of each other, on a port that the system chose."""
        deadline = timedelta(seconds=RENDEZVOUS_SECONDS)
        own = address = own_address(self.host, others=others)
        try:
            if self.rank == 0:
                listener = socket.create_server((address, 0), backlog=max(128, self.size))
                port = listener.getsockname()[1]
                store = TCPStore(
                    address, port, self.size, is_master=True, timeout=deadline, wait_for_workers=False,
                    master_listen_fd=listener.detach(),
                )  # fmt: skip
                gathered(context, f"{address}:{port}")
            else:
                address, _, port = "".join(gathered(context, "")).rpartition(":")  # the one word is that of rank 0
                store = TCPStore(address, int(port), self.size, is_master=False, timeout=deadline)
            os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = interface(own)
            dist.init_process_group(
                "nccl" if self._device.type == "cuda" else "gloo",
                store=PrefixStore("yarnstick", store),
                rank=self.rank,
                world_size=self.size,
                timeout=deadline,
            )
            dist.barrier()
        except (RuntimeError, OSError) as error:
            raise PeerError(
                f"executor on {self.host}: the executors did not find each other within {RENDEZVOUS_SECONDS:.0f} s "
                f"({first_line(error)}); nodes must reach each other on all ports"
            ) from None
        # What the sums wait for is another deadline than that of finding each other.
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=self._stall_seconds))

    def _lost(self, error: RuntimeError) -> PeerError:
        return PeerError(
            f"executor on {self.host} lost the others, or waited for one of them longer than "
            f"{self._stall_seconds:g} s (yarnstick.spark.stall_seconds): {first_line(error)}"
        )


def own_address(host: str, *, others: Sequence[str]) -> str:
    """By which other nodes reach this one: that of the name that Spark knows it by, else the one that leads to them.

    Many a node calls itself 127.0.1.1, and some are known by an address that none of their interfaces has.
    """
    if not others:
        return LOOPBACK  # all are on this node
    own = _resolved(host)
    elsewhere = [address for each in others if (address := _resolved(each)) is not None]
    if own is not None and (all(each.is_loopback for each in elsewhere) if own.is_loopback else own in _interfaces()):
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


def gathered(context: BarrierTaskContext, word: str) -> list[str]:
    """The words of all tasks of the stage, of those too that do not train."""
    try:
        return list(context.allGather(word))
    except Exception as error:  # of whatever kind: Spark ends a stage of which one task failed
        raise PeerError(f"another executor ended before all had begun ({first_line(error)})") from None


def _host(address: str) -> str:
    """Of Spark's host:port, where it has a port."""
    return address.rpartition(":")[0] or address


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
