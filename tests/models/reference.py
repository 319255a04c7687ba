"""The network in plain numpy and float64: slow, short, and right. What the platforms are held against."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from models.dataset import Dataset
from models.networks import Layer, flatten, initial_weights, unflatten
from models.spec import TrialSpec

Values = NDArray[np.float64]
ACTIVATE: dict[str | None, Callable[[Values], Values]] = {
    None: lambda sums: sums,
    "sigmoid": lambda sums: 1 / (1 + np.exp(-sums)),
    "relu": lambda sums: np.where(sums > 0, sums, 0.0),
    "tanh": np.tanh,
}
DERIVE: dict[str | None, Callable[[Values], Values]] = {  # by what the activation gave
    None: np.ones_like,
    "sigmoid": lambda outputs: outputs * (1 - outputs),
    "relu": lambda outputs: (outputs > 0).astype(np.float64),
    "tanh": lambda outputs: 1 - outputs**2,
}


def losses(spec: TrialSpec, data: Dataset) -> list[float]:
    """Of full-batch gradient descent: the loss before each update."""
    features, labels = data.read_train(spec.data_fraction)
    values = data.values(features, "float64")
    layers = initial_weights(spec.network, spec.seed, drawn=spec.hyperparameters.initial_weights)
    found = []
    for _ in range(spec.hyperparameters.epochs):
        loss, gradient = loss_and_gradient(layers, values, labels, activations=spec.network.layer_activations)
        found.append(loss)
        rate = spec.hyperparameters.learning_rate or 1.0
        layers = [
            (weights - rate * by_weights, bias - rate * by_bias)
            for (weights, bias), (by_weights, by_bias) in zip(layers, gradient, strict=True)
        ]
    return found


def minimum(spec: TrialSpec, data: Dataset) -> float:
    """The smallest loss that a network without hidden layers can have: it is convex, so there is one."""
    from scipy.optimize import minimize

    features, labels = data.read_train(spec.data_fraction)
    values = data.values(features, "float64")

    def found(flat: Values) -> tuple[float, Values]:
        layers = unflatten(spec.network, flat)
        loss, gradient = loss_and_gradient(layers, values, labels, activations=spec.network.layer_activations)
        return loss, flatten(gradient)

    start = flatten(initial_weights(spec.network, spec.seed, drawn=spec.hyperparameters.initial_weights))
    return float(minimize(found, start, jac=True, method="BFGS", options={"gtol": 1e-9}).fun)


def loss_and_gradient(
    layers: list[Layer],
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    *,
    activations: tuple[str | None, ...],
) -> tuple[float, list[Layer]]:
    outputs = [values]
    for (weights, bias), activation in zip(layers, activations, strict=True):
        outputs.append(ACTIVATE[activation](outputs[-1] @ weights.T + bias))
    scores = outputs[-1] - outputs[-1].max(1, keepdims=True)
    chances = np.exp(scores)
    chances /= chances.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(chances[rows, labels]).mean()
    delta = chances
    delta[rows, labels] -= 1
    delta /= len(labels)
    gradient: list[Layer] = []
    for index in range(len(layers) - 1, -1, -1):
        delta = delta * DERIVE[activations[index]](outputs[index + 1])
        gradient.append((delta.T @ outputs[index], delta.sum(0)))
        delta = delta @ layers[index][0]
    return float(loss), gradient[::-1]
