"""The network in plain numpy and float64: slow, short, and right. What the platforms are held against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.dataset import Dataset
from models.networks import Layer, initial_weights
from models.spec import TrialSpec


def losses(spec: TrialSpec, data: Dataset) -> list[float]:
    """Of full-batch gradient descent: the loss before each update."""
    features, labels = data.read_train(spec.data_fraction)
    values = data.values(features, "float64")
    layers = initial_weights(spec.network, spec.seed)
    found = []
    for _ in range(spec.hyperparameters.epochs):
        loss, gradient = loss_and_gradient(layers, values, labels)
        found.append(loss)
        rate = spec.hyperparameters.learning_rate or 1.0
        layers = [
            (weights - rate * by_weights, bias - rate * by_bias)
            for (weights, bias), (by_weights, by_bias) in zip(layers, gradient, strict=True)
        ]
    return found


def loss_and_gradient(
    layers: list[Layer], values: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[float, list[Layer]]:
    outputs = [values]
    for weights, bias in layers[:-1]:
        outputs.append(1 / (1 + np.exp(-(outputs[-1] @ weights.T + bias))))
    weights, bias = layers[-1]
    scores = outputs[-1] @ weights.T + bias
    scores -= scores.max(1, keepdims=True)
    chances = np.exp(scores)
    chances /= chances.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(chances[rows, labels]).mean()
    delta = chances
    delta[rows, labels] -= 1
    delta /= len(labels)
    gradient: list[Layer] = []
    for index in range(len(layers) - 1, -1, -1):
        gradient.append((delta.T @ outputs[index], delta.sum(0)))
        delta = delta @ layers[index][0] * outputs[index] * (1 - outputs[index])
    return float(loss), gradient[::-1]
