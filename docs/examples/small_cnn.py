"""A small convolutional network: an example of one's own network, see docs/own-network.md."""

from __future__ import annotations

from math import isqrt

from torch import nn


def make(inputs: int, classes: int) -> nn.Module:
    """For square images, grey or in three colours, whose rows are channel, row, column."""
    channels = 3 if isqrt(inputs // 3) ** 2 * 3 == inputs else 1
    side = isqrt(inputs // channels)
    if channels * side * side != inputs:
        raise ValueError(f"{inputs} values are no square image in one or three colours")
    return nn.Sequential(
        nn.Unflatten(1, (channels, side, side)),
        nn.Conv2d(channels, 16, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(classes),
    )
