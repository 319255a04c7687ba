"""Training in torch on one device: full batch in chunks, or mini-batches; alone, or each on a share of the rows."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch

from models.device import wait
from models.gradients import Forward, blocks, gradient
from models.optimizers import Optimizer, l_bfgs, optimizer
from models.rows import CHUNK_ROWS, Chunk, Rows
from models.spec import Hyperparameters, Network

EXCHANGES = 9
PROBES = 8
TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an epoch did."""

    loss: float
    passes: int
    updates: int


@dataclass(frozen=True, slots=True)
class Share:
    """Whose rows these are: from `start` to before `stop` of all that are trained on."""

    start: int
    stop: int
    of: int

    def own(self, which: torch.Tensor) -> torch.Tensor:
        """Those of some rows that are ours, counted from our first."""
        return which[(which >= self.start) & (which < self.stop)] - self.start


class Together(Protocol):
    """Those who train the same weights, each on its own share."""

    @property
    def size(self) -> int:
        """How many they are, we among them."""
        ...

    def sum(self, gradient: torch.Tensor) -> None:
        """Over all, in place: the same numbers everywhere. The last of them is the loss."""
        ...

    def start(self, part: torch.Tensor, *, has_loss: bool = False) -> None:
        """The same, for a part that is summed while others are still found; all start the same parts in one order."""
        ...

    def finish(self) -> None:
        """Until all parts that were started are summed."""
        ...


class Alone:
    size = 1

    def sum(self, gradient: torch.Tensor) -> None:
        """There is nobody else."""

    def start(self, part: torch.Tensor, *, has_loss: bool = False) -> None: ...

    def finish(self) -> None: ...


class Training:
    """Weights, their optimizer, and one `epoch()` after the other.

    Weights may be kept finer than the values are: they are cast once for every gradient.
    """

    def __init__(
        self,
        *,
        network: Network,
        parameters: list[torch.Tensor],
        forward: Forward,
        hyperparameters: Hyperparameters,
        rows: Rows,
        seed: int,
        share: Share | None = None,
        together: Together | None = None,
    ) -> None:
        self.parameters = parameters
        self._forward = forward
        self._gradients = gradient(
            hyperparameters.gradient, network=network, forward=forward, dtype=rows.dtype, device=parameters[0].device
        )
        self.library = self._gradients.library
        self._rows = rows
        self._share = share or Share(0, len(rows), len(rows))
        self._together = together or Alone()
        self.overlaps = False  # what is summed already goes to the others while the rest is found
        self._batch_size = hyperparameters.batch_size
        line_searches = hyperparameters.solver == "l-bfgs"
        self._optimizer = l_bfgs(parameters) if line_searches else optimizer(parameters, hyperparameters)
        self._shuffle = torch.Generator().manual_seed(seed)
        self._last: tuple[torch.Tensor, torch.Tensor] | None = None
        # One piece of memory for all gradients, and the loss behind them: what is summed with others is one message.
        self._sum = torch.zeros(sum(each.numel() for each in parameters) + 1, device=parameters[0].device)
        self._sum = self._sum.to(parameters[0].dtype)
        sizes = [*(each.numel() for each in parameters), 1]
        *parts, self._loss = self._sum.split(sizes)
        self._parts = [part.view_as(each) for part, each in zip(parts, parameters, strict=True)]

    def prepare(self) -> None:
        """Find a gradient of each number of rows that an epoch will ask for, and drop it: that compiles it."""
        rows = len(self._rows)
        batch = min(self._batch_size or rows, rows)
        sizes = {chunk for size in (batch, rows % batch) for chunk in (min(CHUNK_ROWS, size), size % CHUNK_ROWS)}
        weights = self._cast()
        for size in sizes - {0}:
            for some, known in self._rows.batch(torch.arange(size, device=self._sum.device)):
                self._gradients.add(weights, some, known, sums=self._parts)
        self._sum.zero_()

    def epoch(self) -> Done:
        if isinstance(self._optimizer, torch.optim.LBFGS):
            return self._l_bfgs(self._optimizer)
        if self._batch_size is not None:
            return self._mini_batches(self._optimizer, self._batch_size)
        loss = self._gradient(self._rows.chunks(), len(self._rows), self._share.of)
        self._optimizer.step()
        return Done(loss=loss.item(), passes=1, updates=1)

    def take(self, rows: Rows, share: Share) -> None:
        """Other rows from now on."""
        self._rows, self._share = rows, share

    def probe_seconds(self) -> float:
        """That the gradient of all own rows takes, judged by a chunk of them; changes nothing."""
        weights, took = self._cast(), []
        chunks = self._whole_chunk()
        if not chunks:
            return 0.0
        [(some, known)] = chunks
        for _ in range(PROBES):
            began = time.perf_counter()
            self._gradients.add(weights, some, known, sums=self._parts)
            wait(self._sum.device)
            took.append(time.perf_counter() - began)
        self._sum.zero_()
        return statistics.median(took[1:]) * len(self._rows) / len(known)

    def last_chunk_seconds(self, *, overlaps: bool) -> float:
        """That its gradient takes until it is summed, with parts sent early or not: the median of some."""
        own = len(self._rows) if self._batch_size is None else self._batch_size * len(self._rows) // self._share.of
        chunks = [(some[: max(1, own)], known[: max(1, own)]) for some, known in self._whole_chunk()]
        took: list[float] = []
        self.overlaps, before = overlaps, self.overlaps
        for _ in range(TRIES):
            began = time.perf_counter()
            self._gradient(chunks, sum(len(known) for _, known in chunks), 1)
            wait(self._sum.device)
            took.append(time.perf_counter() - began)
        self.overlaps = before
        self._sum.zero_()
        return statistics.median(took[1:])

    def exchange_seconds(self) -> float:
        """That a sum with the others takes: the median of some. Leaves no trace."""
        took: list[float] = []
        for _ in range(EXCHANGES):
            before = time.perf_counter()
            self._together.sum(self._sum)
            wait(self._sum.device)
            took.append(time.perf_counter() - before)
        self._sum.zero_()
        return statistics.median(took)

    def _whole_chunk(self) -> list[Chunk]:
        """Where there are rows: the first may be a small rest."""
        return list(itertools.islice(self._rows.chunks(), 2))[-1:]

    def right(self, rows: Rows) -> int:
        """How many of these the network knows."""
        with torch.no_grad():
            weights = self._cast()
            return int(sum((self._forward(weights, some).argmax(1) == known).sum() for some, known in rows.chunks()))

    def _cast(self) -> list[torch.Tensor]:
        """The weights at the precision of the values."""
        return [each.detach().to(self._rows.dtype) for each in self.parameters]

    def _gradient(self, chunks: Iterable[Chunk], own: int, count: int) -> torch.Tensor:
        """Put the mean gradient over `count` rows, of which these are our own, into `grad`; the mean loss."""
        weights = self._cast()
        self._sum.zero_()
        left = own
        # Many find their last chunk in blocks, sent early or not: what is faster here must not change a bit.
        in_blocks = self._together.size > 1
        for some, known in chunks:
            left -= len(known)
            done = (self._start if self.overlaps else _go_on) if in_blocks and not left else None
            self._loss += self._gradients.add(weights, some, known, sums=self._parts, done=done)
        if self.overlaps:
            if not own:  # others have rows, and wait for us
                for block in blocks(len(self._parts[0])):
                    self._start(block)
            self._together.start(self._sum[self._parts[0].numel() :], has_loss=True)
            self._together.finish()
        else:
            self._together.sum(self._sum)
        self._sum /= count
        for each, part in zip(self.parameters, self._parts, strict=True):
            each.grad = part
        return self._loss.clone()

    def _start(self, block: slice) -> None:
        self._together.start(self._parts[0][block])

    def _mini_batches(self, optimizer: Optimizer, size: int) -> Done:
        order = torch.randperm(self._share.of, generator=self._shuffle).to(self._sum.device)
        total = torch.zeros_like(self._loss)
        updates = 0
        for batch in order.split(size):
            own = self._share.own(batch)
            total += self._gradient(self._rows.batch(own), len(own), len(batch)) * len(batch)
            optimizer.step()
            updates += 1
        return Done(loss=total.item() / len(order), passes=1, updates=updates)

    def _l_bfgs(self, optimizer: torch.optim.LBFGS) -> Done:
        """One iteration; its line search may take several passes."""
        passes = 0

        def closure() -> float:
            nonlocal passes
            at = torch.cat([each.detach().flatten() for each in self.parameters])
            if self._last is None or not torch.equal(at, self._last[0]):
                self._last = (at, self._gradient(self._rows.chunks(), len(self._rows), self._share.of))
                passes += 1
            # else the line search ended here, and the gradient is still there.
            return self._last[1].item()

        loss = optimizer.step(closure)
        return Done(loss=float(loss), passes=passes, updates=1)


def _go_on(block: slice) -> None:
    """It goes out with all others."""
