"""Training in torch on one device, shared by every torch platform: full batch in chunks, or mini-batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from models.gradients import Forward, gradient
from models.spec import Hyperparameters, Network

# A full batch in one piece falls out of the processor's cache; the sum over chunks is the same gradient.
CHUNK_ROWS = 2048
MOMENTUM = 0.9
HISTORY = 10  # corrections that l-bfgs remembers: MLlib's number


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an epoch did."""

    loss: float
    passes: int
    updates: int


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
        values: torch.Tensor,
        labels: torch.Tensor,
        seed: int,
    ) -> None:
        self.parameters = parameters
        self._forward = forward
        self._gradients = gradient(hyperparameters.gradient, network=network, forward=forward)
        self._dtype = values.dtype
        self._values = values
        self._labels = labels
        self._batch_size = hyperparameters.batch_size
        self._optimizer = _optimizer(self.parameters, hyperparameters)
        self._shuffle = torch.Generator().manual_seed(seed)
        self._last: tuple[torch.Tensor, torch.Tensor] | None = None

    def prepare(self) -> None:
        """Find a gradient of each number of rows that an epoch will ask for, and drop it: that compiles it."""
        rows = len(self._labels)
        batch = min(self._batch_size or rows, rows)
        sizes = {chunk for size in (batch, rows % batch) for chunk in (min(CHUNK_ROWS, size), size % CHUNK_ROWS)}
        for size in sizes - {0}:
            self._gradient(self._values[:size], self._labels[:size])

    def epoch(self) -> Done:
        if self._batch_size is not None:
            return self._mini_batches(self._batch_size)
        if isinstance(self._optimizer, torch.optim.LBFGS):
            return self._l_bfgs(self._optimizer)
        loss = self._gradient(self._values, self._labels)
        self._optimizer.step()
        return Done(loss=loss.item(), passes=1, updates=1)

    def accuracy(self, values: torch.Tensor, labels: torch.Tensor) -> float:
        with torch.no_grad():
            weights = self._cast()
            right = sum(
                (self._forward(weights, some).argmax(1) == known).sum()
                for some, known in zip(values.split(CHUNK_ROWS), labels.split(CHUNK_ROWS), strict=True)
            )
        return float(right) / len(labels)

    def _cast(self) -> list[torch.Tensor]:
        """The weights at the precision of the values."""
        return [each.detach().to(self._dtype) for each in self.parameters]

    def _gradient(self, values: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Put the mean gradient over all rows into the parameters' `grad`; the mean loss."""
        weights = self._cast()
        sums = [torch.zeros_like(each) for each in self.parameters]
        total = torch.zeros((), device=values.device, dtype=sums[0].dtype)
        for some, known in zip(values.split(CHUNK_ROWS), labels.split(CHUNK_ROWS), strict=True):
            total += self._gradients.add(weights, some, known, sums=sums)
        for each, part in zip(self.parameters, sums, strict=True):
            each.grad = part.div_(len(labels))
        return total / len(labels)

    def _mini_batches(self, size: int) -> Done:
        order = torch.randperm(len(self._labels), generator=self._shuffle).to(self._labels.device)
        total = torch.zeros((), device=self._values.device, dtype=self.parameters[0].dtype)
        updates = 0
        for batch in order.split(size):
            total += self._gradient(self._values[batch], self._labels[batch]) * len(batch)
            self._optimizer.step()
            updates += 1
        return Done(loss=total.item() / len(order), passes=1, updates=updates)

    def _l_bfgs(self, optimizer: torch.optim.LBFGS) -> Done:
        """One iteration; its line search may take several passes."""
        passes = 0

        def closure() -> float:
            nonlocal passes
            at = torch.cat([each.detach().flatten() for each in self.parameters])
            if self._last is None or not torch.equal(at, self._last[0]):
                self._last = (at, self._gradient(self._values, self._labels))
                passes += 1
            # else the line search ended here, and the gradient is still there.
            return self._last[1].item()

        loss = optimizer.step(closure)
        return Done(loss=float(loss), passes=passes, updates=1)


def _optimizer(parameters: list[torch.Tensor], hyperparameters: Hyperparameters) -> torch.optim.Optimizer:
    rate = hyperparameters.learning_rate or 1.0
    make: dict[str, Callable[[], torch.optim.Optimizer]] = {
        "gd": lambda: torch.optim.SGD(parameters, lr=rate),
        "sgd": lambda: torch.optim.SGD(parameters, lr=rate),
        "momentum": lambda: torch.optim.SGD(parameters, lr=rate, momentum=MOMENTUM),
        "adam": lambda: torch.optim.Adam(parameters, lr=rate),
        "l-bfgs": lambda: torch.optim.LBFGS(
            parameters,
            max_iter=1,
            history_size=HISTORY,
            tolerance_grad=0,
            tolerance_change=0,
            line_search_fn="strong_wolfe",
        ),
    }
    return make[hyperparameters.solver]()
