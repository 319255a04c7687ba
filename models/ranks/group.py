"""Processes that train one network together, and sum what each of them found: Gloo and NCCL do that."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, TCPStore

from models.device import wait
from models.ranks.meeting import Meeting, PeerError, first_line, interface

RENDEZVOUS_SECONDS = 60.0


class Group:
    """One rank's view of all."""

    def __init__(
        self, meeting: Meeting, *, device: torch.device, stall_seconds: float, compresses: bool = False
    ) -> None:
        place = meeting.place
        self.rank, self.size, self.host = place.rank, place.size, place.host
        self.seconds = 0.0  # spent with the others since it was last set to 0
        self._stall_seconds = stall_seconds
        self._compresses = compresses
        self._started: list[Any] = []
        self._device = device
        if self.size > 1:
            self._join(meeting)

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
            with self._clocked(waits=False):
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
    def _clocked(self, *, waits: bool = True) -> Iterator[None]:
        """Until a GPU has summed, after it has found what is to be summed; who goes on meanwhile waits for neither."""
        if waits:
            wait(self._device)
        began = time.perf_counter()
        try:
            yield
            if waits:
                wait(self._device)
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

    def _join(self, meeting: Meeting) -> None:
        """Rank 0 keeps what ranks have to know of each other."""
        every = meeting.met()
        deadline = timedelta(seconds=RENDEZVOUS_SECONDS)
        host, [port] = every[0].host, every[0].ports
        try:
            if self.rank == 0:
                [listener] = meeting.listeners()
                store = TCPStore(
                    host, port, self.size, is_master=True, timeout=deadline, wait_for_workers=False,
                    master_listen_fd=listener.detach(),
                )  # fmt: skip
            else:
                store = TCPStore(host, port, self.size, is_master=False, timeout=deadline)
            os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = interface(every[self.rank].host)
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
