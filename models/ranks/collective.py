"""Ranks as PyTorch connects them: NCCL between GPUs, whose memory it reaches by itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, TCPStore

from models.ranks.meeting import Meeting, interface


class Collective:
    """One rank's view of all. Errors are RuntimeErrors."""

    def __init__(self, meeting: Meeting, *, device: torch.device, seconds: float, stall_seconds: float) -> None:
        """Rank 0 keeps what ranks have to know of each other."""
        place, every = meeting.place, meeting.met()
        self.rank, self.size = place.rank, place.size
        self._device = device
        deadline = timedelta(seconds=seconds)
        host, port = every[0].host, every[0].ports[0]
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
            "nccl" if device.type == "cuda" else "gloo",
            store=PrefixStore("yarnstick", store),
            rank=self.rank,
            world_size=self.size,
            timeout=deadline,
        )
        dist.barrier()
        # What the sums wait for is another deadline than that of finding each other.
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=stall_seconds))

    def sum(self, numbers: Tensor, *, sent_as: torch.dtype | None = None) -> None:
        """In place, the same bits on all ranks; with `sent_as` addends and sum are rounded, and no partial sum."""
        if sent_as is None:
            dist.all_reduce(numbers)
            return
        piece = -(-len(numbers) // self.size)
        sent = torch.zeros(piece * self.size, dtype=sent_as, device=self._device)
        sent[: len(numbers)] = numbers
        pieces = torch.empty_like(sent)
        dist.all_to_all_single(pieces.view(torch.uint8), sent.view(torch.uint8))
        own = pieces.view(self.size, piece).to(numbers.dtype).sum(0).to(sent_as)
        dist.all_gather_into_tensor(sent.view(torch.uint8), own.view(torch.uint8))
        numbers.copy_(sent[: len(numbers)])

    def start(self, numbers: Tensor, *, sent_as: torch.dtype | None = None) -> Callable[[], object]:
        """A sum while the caller goes on; what it answers waits for it."""
        if sent_as is not None:
            self.sum(numbers, sent_as=sent_as)  # a GPU does all that in its own time
            return lambda: None
        work = dist.all_reduce(numbers, async_op=True)
        return lambda: work.wait()

    def gather(self, own: Tensor) -> list[Tensor]:
        """Everybody's, by rank; nobody goes on before all have come."""
        every = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(every, own)
        return every

    def close(self) -> None:
        dist.destroy_process_group()
