"""A shard of a parameter server: a piece of the weights, and how far ahead of the slowest a rank may train on them.

Ranks send gradients by step. With a lead of 0 a step is taken when all of its gradients have come, summed by rows, as
ranks in step would; else each is taken as it comes, and how stale it was is told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from models.optimizers import optimizer
from models.spec import Hyperparameters
from models.training import EXCHANGES

FIRST_STEP = 1 - EXCHANGES  # up to step 0 weights come and go without rows, all in step; training begins with step 1
LOOKS = 10  # in stall_seconds, at whether somebody stalls


class Refused(Exception):
    """A rank cannot go on, because of another; the sentence goes to it."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a gradient; in the order in which it is sent."""

    staleness: int = 0  # updates of the weights since they went to the rank, until this one
    closed: int = 0  # epochs that all ranks have ended
    seconds: float = 0.0  # of the shard's clock, when it was taken
    # At the end of an epoch: how far the rank's copy was from the weights, and how long these are, both squared.
    distance: float = 0.0
    length: float = 0.0


class Shard:
    """Each rank has a thread of its own here; `stop` ends the waiting of all."""

    def __init__(
        self,
        weights: Tensor,
        *,
        hyperparameters: Hyperparameters,
        hosts: Sequence[str],  # of the ranks
        steps: int,  # of an epoch
        stall_seconds: float,
    ) -> None:
        self.weights = weights.detach().clone()
        self._optimizer = optimizer([self.weights], hyperparameters)
        self._lead = hyperparameters.staleness or 0
        self._hosts = hosts
        self._steps = steps
        self._stall_seconds = stall_seconds
        self._changed = threading.Condition()
        self._version = 0
        self._together_at = 0.0  # when the last step was taken that all have a part in
        self._waiting: dict[int, tuple[Tensor, int]] = {}  # gradients of a step that is taken as a whole
        self._come = [FIRST_STEP - 1] * len(hosts)  # the last step of each rank
        self._sent = [0] * len(hosts)  # the version that each rank has
        self._closed: dict[int, Tensor] = {}  # weights at the ends of epochs, until all have looked
        self._looked: dict[int, int] = {}
        self._there: set[int] = set()
        self._left: set[int] = set()
        self._end: str | None = None
        self._moved_at = 0.0  # when the slowest did something last

    def greet(self, rank: int) -> bool:
        """Whether this is a rank that is not there yet."""
        with self._changed:
            if rank in self._there or not 0 <= rank < len(self._hosts):
                return False
            self._there.add(rank)
            return True

    def take(
        self, rank: int, step: int, gradient: Tensor, *, rows: int, of: int, copy: Tensor, still: Callable[[], None]
    ) -> Taken:
        """A gradient summed over `rows` of the `of` rows of its batch.

        `copy` is what the rank was sent last; it becomes what it is sent next, as soon as it may go on. Until then
        `still` is called now and then.
        """
        with self._changed:
            if step != self._come[rank] + 1:
                raise Refused(f"executor on {self._hosts[rank]} sent step {step} after step {self._come[rank]}")
            staleness = self._version - self._sent[rank]
            distance, length = self._apart(copy) if step > 0 and step % self._steps == 0 else (0.0, 0.0)
            lead = self._lead if step > 0 else 0
            taken_at = None
            if lead:
                self._step(gradient, rows, of)
                taken_at = time.perf_counter()
            else:
                self._waiting[rank] = (gradient, rows)
                if len(self._waiting) == len(self._hosts):
                    self._step_together(of)
                    self._together_at = time.perf_counter()
            slowest = min(self._come)
            self._come[rank] = step
            self._close()
            self._moved(when=min(self._come) > slowest)
            self._wait(lambda: min(self._come) >= step - lead, behind=step - lead, still=still)
            copy.copy_(self.weights)
            self._sent[rank] = self._version
            return Taken(
                staleness=staleness,
                closed=min(self._come) // self._steps,
                seconds=taken_at or self._together_at,
                distance=distance,
                length=length,
            )

    def look(self, epoch: int, *, still: Callable[[], None]) -> Tensor:
        """The weights when the last rank had ended an epoch; each rank looks once."""
        with self._changed:
            self._wait(lambda: epoch in self._closed, behind=epoch * self._steps, still=still)
            self._looked[epoch] += 1
            self._moved()
            whole = self._looked[epoch] == len(self._hosts)
            return self._closed.pop(epoch) if whole else self._closed[epoch]

    def leave(self, rank: int) -> None:
        with self._changed:
            self._left.add(rank)
            self._moved()

    def lose(self, rank: int) -> None:
        """Its connection has ended: a rank that did not leave is gone, and nobody can go on without it."""
        with self._changed:
            if rank not in self._left:
                self._stop(f"executor on {self._hosts[rank]} (rank {rank}) is gone")

    def wait_until_left(self) -> None:
        """All that want something of this shard have had it."""
        with suppress(Refused), self._changed:
            self._wait(lambda: len(self._left) == len(self._hosts), behind=None, still=lambda: None)

    def stop(self) -> None:
        with self._changed:
            self._stop("the shard has ended")

    def _stop(self, why: str) -> None:
        """The first reason is the one."""
        self._end = self._end or why
        self._changed.notify_all()

    def _moved(self, *, when: bool = True) -> None:
        if when:
            self._moved_at = time.monotonic()
        self._changed.notify_all()

    def _wait(self, ready: Callable[[], bool], *, behind: int | None, still: Callable[[], None]) -> None:
        """Until it is ready, or nobody who is behind this step did anything for too long."""
        began = time.monotonic()
        while not self._changed.wait_for(lambda: self._end is not None or ready(), self._stall_seconds / LOOKS):
            if time.monotonic() - max(began, self._moved_at) < self._stall_seconds:
                still()
                continue
            slow = [
                f"{host} (rank {rank})"
                for rank, host in enumerate(self._hosts)
                if behind is not None and self._come[rank] < behind
            ]
            self._stop(
                f"the executor on {' and on '.join(slow) or 'another node'} was waited for longer than "
                f"{self._stall_seconds:g} s (yarnstick.spark.stall_seconds): look at that node, or raise the setting"
            )
        if self._end is not None and not ready():
            raise Refused(self._end)

    def _step_together(self, of: int) -> None:
        """In the order of the ranks, so that the sum is the same every time."""
        total, rows = self._waiting[0]
        for rank in range(1, len(self._hosts)):
            gradient, some = self._waiting[rank]
            total += gradient
            rows += some
        self._waiting.clear()
        self._step(total, rows, of)

    def _step(self, gradient: Tensor, rows: int, of: int) -> None:
        """By the mean over its rows, at a learning rate in proportion to their share of the batch."""
        if rows:
            gradient /= rows
            self.weights.grad = gradient
            self._optimizer.step(of=rows / of)
            self._version += 1

    def _close(self) -> None:
        ended = min(self._come)
        if ended > 0 and ended % self._steps == 0 and (epoch := ended // self._steps) not in self._looked:
            self._looked[epoch] = 0
            self._closed[epoch] = self.weights.clone()

    def _apart(self, copy: Tensor) -> tuple[float, float]:
        away = (self.weights - copy).double()
        return float(away.dot(away)), float(torch.linalg.vector_norm(self.weights, dtype=torch.float64)) ** 2


def pieces(parameters: int, shards: int) -> list[tuple[int, int]]:
    """From where to where each shard has the weights."""
    return list(pairwise(parameters * shard // shards for shard in range(shards + 1)))
