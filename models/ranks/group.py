"""Processes that train one network together, and sum what each of them found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor

from models.device import wait
from models.ranks.connections import connected
from models.ranks.meeting import Meeting, PeerError, StallError, first_line
from models.ranks.mesh import Mesh, StalledError

RENDEZVOUS_SECONDS = 60.0
ERRORS = (OSError, RuntimeError)  # of sockets, and of torch's own


class Others(Protocol):
    """All ranks but this one, however they are reached."""

    def sum(self, numbers: Tensor, *, sent_as: torch.dtype | None = None) -> None:
        """In place, the same bits on all ranks; with `sent_as` addends and sum are rounded, and no partial sum."""
        ...

    def start(self, numbers: Tensor, *, sent_as: torch.dtype | None = None) -> Callable[[], object]:
        """A sum while the caller goes on; what it answers waits for it."""
        ...

    def gather(self, own: Tensor) -> list[Tensor]:
        """Everybody's, by rank; nobody goes on before all have come."""
        ...

    def close(self) -> None: ...


class Group:
    """One rank's view of all."""

    def __init__(
        self, meeting: Meeting, *, token: str, device: torch.device, stall_seconds: float, compresses: bool = False
    ) -> None:
        place = meeting.place
        self.rank, self.size, self.host = place.rank, place.size, place.host
        self.seconds = 0.0  # spent with the others since it was last set to 0
        self._token = token
        self._stall_seconds = stall_seconds
        self._sent_as = torch.bfloat16 if compresses else None
        self._started: list[Callable[[], object]] = []
        self._device = device
        self._others = self._joined(meeting) if self.size > 1 else None
        self._nodes = [each.node for each in meeting.met()]

    def sum(self, gradient: Tensor) -> None:
        if self._others is None:
            return
        with self._clocked():
            for part, sent_as in self._sent(gradient, has_loss=True):
                self._others.sum(part, sent_as=sent_as)

    def start(self, part: Tensor, *, has_loss: bool = False) -> None:
        if self._others is None:
            return
        with self._clocked(waits=False):
            for some, sent_as in self._sent(part, has_loss=has_loss):
                self._started.append(self._others.start(some, sent_as=sent_as))

    def finish(self) -> None:
        with self._clocked():
            for finished in self._started:
                finished()
        self._started.clear()

    def gather(self, numbers: list[float]) -> list[list[float]]:
        """Everybody's, by rank; nobody goes on before all have come."""
        if self._others is None:
            return [numbers]
        try:
            every = self._others.gather(torch.tensor(numbers, dtype=torch.float64, device=self._device))
        except ERRORS as error:
            raise self._lost(error) from None
        return [each.tolist() for each in every]

    def close(self) -> None:
        if self._others is not None:
            self._others.close()

    def _sent(self, part: Tensor, *, has_loss: bool) -> list[tuple[Tensor, torch.dtype | None]]:
        """What goes out as what: the loss, the last number, is never rounded."""
        if self._sent_as is None or not has_loss:
            return [(part, self._sent_as)]
        return [(part[-1:], None), (part[:-1], self._sent_as)]

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
        except ERRORS as error:
            raise self._lost(error) from None
        self.seconds += time.perf_counter() - began

    def _joined(self, meeting: Meeting) -> Others:
        try:
            if self._device.type == "cuda":
                from models.ranks.collective import Collective

                return Collective(
                    meeting, device=self._device, seconds=RENDEZVOUS_SECONDS, stall_seconds=self._stall_seconds
                )
            peers = connected(meeting, token=self._token, seconds=RENDEZVOUS_SECONDS)
            return Mesh(peers, rank=self.rank, stall_seconds=self._stall_seconds)
        except ERRORS as error:
            raise PeerError(
                f"executor on {self.host}: the executors did not find each other within {RENDEZVOUS_SECONDS:.0f} s "
                f"({first_line(error)}); nodes must reach each other on all ports"
            ) from None

    def _lost(self, error: Exception) -> PeerError:
        if isinstance(error, StalledError):
            late = " and on ".join(sorted({self._nodes[rank] for rank in error.ranks}))
            return StallError(
                f"executor on {self.host} waited {self._stall_seconds:g} s for the one on {late} "
                f"(yarnstick.spark.stall_seconds): look at that node, or raise the setting"
            )
        return PeerError(
            f"executor on {self.host} lost the others, or waited for one of them longer than "
            f"{self._stall_seconds:g} s (yarnstick.spark.stall_seconds): {first_line(error)}"
        )
