"""Processes that train one network together: how they find each other, and how they sum what each of them found.

Gloo and NCCL do the sums. Nobody is known beforehand: the ranks of a barrier stage hand their addresses round.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import psutil
import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, TCPStore

from store.errors import TrialError

if TYPE_CHECKING:
    from pyspark import BarrierTaskContext

RENDEZVOUS_SECONDS = 60.0


class PeerError(TrialError):
    """Another rank is gone or stalls: why that is, it knows itself or nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Of a task among all of its stage, which fills every slot of every executor: one of an executor's tasks trains."""

    rank: int  # of its executor
    size: int  # how many executors there are
    host: str
    trains: bool

    @classmethod
    def of(cls, context: BarrierTaskContext) -> Place:
        executors = [info.address for info in context.getTaskInfos()]  # host:port, by which Spark tells them apart
        own = executors[context.partitionId()]
        ranked = list(dict.fromkeys(executors))
        return cls(
            rank=ranked.index(own),
            size=len(ranked),
            host=own.rpartition(":")[0] or own,
            trains=executors.index(own) == context.partitionId(),
        )


class Group:
    """One rank's view of all."""

    def __init__(self, context: BarrierTaskContext, *, device: torch.device, stall_seconds: float) -> None:
        place = Place.of(context)
        self.rank, self.size, self.host = place.rank, place.size, place.host
        self.seconds = 0.0  # spent with the others since it was last set to 0
        self._stall_seconds = stall_seconds
        self._device = device
        if self.size > 1:
            self._join(context)

    def sum(self, gradient: Tensor) -> None:
        if self.size == 1:
            return
        began = time.perf_counter()
        try:
            dist.all_reduce(gradient)
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

    def _join(self, context: BarrierTaskContext) -> None:
        """Rank 0 keeps what ranks have to know of each other, on a port that the system chose."""
        deadline = timedelta(seconds=RENDEZVOUS_SECONDS)
        try:
            if self.rank == 0:
                address = socket.gethostbyname(self.host)
                listener = socket.create_server((address, 0), backlog=max(128, self.size))
                port = listener.getsockname()[1]
                store = TCPStore(
                    address, port, self.size, is_master=True, timeout=deadline, wait_for_workers=False,
                    master_listen_fd=listener.detach(),
                )  # fmt: skip
                context.allGather(f"{address}:{port}")
            else:
                address, _, port = context.allGather("")[0].rpartition(":")
                store = TCPStore(address, int(port), self.size, is_master=False, timeout=deadline)
            os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = interface(self.host, towards=address)
            dist.init_process_group(
                "nccl" if self._device.type == "cuda" else "gloo",
                store=PrefixStore("yarnstick", store),
                rank=self.rank,
                world_size=self.size,
                timeout=deadline,
            )
            dist.barrier()
        except (RuntimeError, OSError) as error:
            raise TrialError(
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


def interface(host: str, *, towards: str) -> str:
    """The network interface with the address that Spark knows this node by; else the one that leads to another."""
    named: dict[str, str] = {str(each.address): name for name, every in psutil.net_if_addrs().items() for each in every}
    try:
        own = ipaddress.ip_address(socket.gethostbyname(host))
    except OSError:
        own = None
    if own is not None and own.is_loopback:
        return named["127.0.0.1"]
    if own is not None and str(own) in named:
        return named[str(own)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # nothing is sent
        probe.connect((towards, 9))
        return named[probe.getsockname()[0]]


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
