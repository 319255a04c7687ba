"""Training in torch on one device, shared by every torch platform: full batch in chunks, or mini-batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from models.networks import Layer, logits, to_torch
from models.spec import Hyperparameters

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

    bfloat16 keeps its weights in float32 and casts them once for every gradient.
    """

    def __init__(
        self,
        *,
        initial: list[Layer],
        hyperparameters: Hyperparameters,
        values: torch.Tensor,
        labels: torch.Tensor,
        seed: int,
    ) -> None:
        self._dtype = values.dtype
        self._values = values
        self._labels = labels
        self._batch_size = hyperparameters.batch_size
        master = torch.float32 if self._dtype == torch.bfloat16 else self._dtype
        self.parameters = to_torch(initial, device=values.device, dtype=master)
        self._optimizer = _optimizer(self.parameters, hyperparameters)
        self._shuffle = torch.Generator().manual_seed(seed)
        self._last: tuple[torch.Tensor, torch.Tensor] | None = None

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
                (logits(weights, some).argmax(1) == known).sum()
                for some, known in zip(values.split(CHUNK_ROWS), labels.split(CHUNK_ROWS), strict=True)
            )
        return float(right) / len(labels)

    def _cast(self) -> list[torch.Tensor]:
        return [each.detach().to(self._dtype).requires_grad_() for each in self.parameters]

    def _gradient(self, values: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Put the mean gradient over all rows into the parameters' `grad`; the mean loss."""
        weights = self._cast()
        sums = [torch.zeros_like(each) for each in self.parameters]
        total = torch.zeros((), device=values.device, dtype=sums[0].dtype)
        for some, known in zip(values.split(CHUNK_ROWS), labels.split(CHUNK_ROWS), strict=True):
            loss = cross_entropy(logits(weights, some).to(sums[0].dtype), known, reduction="sum")
            for part, gradient in zip(sums, torch.autograd.grad(loss, weights), strict=True):
                part += gradient
            total += loss.detach()
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
