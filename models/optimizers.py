"""What a gradient changes: torch's own arithmetic, called as functions.

The classes of torch.optim import torch.compile, with all that it needs, when the first one is made: that takes longer
than many a training. Only l-bfgs has to have its class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from models.spec import Hyperparameters

MOMENTUM = 0.9
FIRST_MOMENT, SECOND_MOMENT, EPSILON = 0.9, 0.999, 1e-8  # torch's own
HISTORY = 10  # corrections that l-bfgs remembers: MLlib's number
SEARCHES = 20  # gradients of one line search at most, as many as MLlib's takes to find bounds and between them


class Optimizer(Protocol):
    def step(self, *, of: float = 1.0) -> None:
        """By the gradients that parameters have, at this part of the learning rate."""
        ...


class Descent:
    def __init__(self, parameters: list[Tensor], rate: float, *, momentum: float = 0.0) -> None:
        self._parameters, self._rate, self._momentum = parameters, rate, momentum
        self._velocities: list[Tensor | None] = [None] * len(parameters)

    @torch.no_grad()
    def step(self, *, of: float = 1.0) -> None:
        sgd(
            self._parameters,
            gradients(self._parameters),
            self._velocities,
            weight_decay=0.0,
            momentum=self._momentum,
            lr=self._rate * of,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )


class Adam:
    def __init__(self, parameters: list[Tensor], rate: float) -> None:
        self._parameters, self._rate = parameters, rate
        self._means = [torch.zeros_like(each) for each in parameters]
        self._squares = [torch.zeros_like(each) for each in parameters]
        self._counts = [torch.tensor(0.0) for _ in parameters]

    @torch.no_grad()
    def step(self, *, of: float = 1.0) -> None:
        adam(
            self._parameters,
            gradients(self._parameters),
            self._means,
            self._squares,
            [],
            self._counts,
            amsgrad=False,
            beta1=FIRST_MOMENT,
            beta2=SECOND_MOMENT,
            lr=self._rate * of,
            weight_decay=0.0,
            eps=EPSILON,
            maximize=False,
        )


def gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [each.grad for each in parameters if each.grad is not None]


def optimizer(parameters: list[Tensor], hyperparameters: Hyperparameters) -> Optimizer:
    rate = hyperparameters.learning_rate or 1.0
    make: dict[str, Callable[[], Optimizer]] = {
        "gd": lambda: Descent(parameters, rate),
        "sgd": lambda: Descent(parameters, rate),
        "momentum": lambda: Descent(parameters, rate, momentum=MOMENTUM),
        "adam": lambda: Adam(parameters, rate),
    }
    return make[hyperparameters.solver]()


def l_bfgs(parameters: list[Tensor]) -> torch.optim.LBFGS:
    """One iteration a step.

    Torch takes what is left of `max_eval` for its line search, and by itself allows one iteration a single gradient:
    a step that is too long would then be no step, and so would all after it.
    """
    return torch.optim.LBFGS(
        parameters,
        max_iter=1,
        max_eval=1 + SEARCHES,
        history_size=HISTORY,
        tolerance_grad=0,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )
