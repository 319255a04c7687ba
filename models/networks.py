"""The networks: initial weights that every platform starts from, and the same network in torch and numpy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.spec import Network, TrialSpec

if TYPE_CHECKING:
    import torch

    from models.gradients import Forward
    from models.products import Products

Layer = tuple[NDArray[np.float64], NDArray[np.float64]]  # weights (outputs, inputs) and bias
Values = NDArray[np.floating]
EVALUATION_ROWS = 4096


def _sigmoid(values: Values) -> Values:
    with np.errstate(over="ignore"):  # of a large negative number, whose sigmoid is 0
        return 1 / (1 + np.exp(-values))


ACTIVATE: dict[str | None, Callable[[Values], Values]] = {
    None: lambda values: values,
    "sigmoid": _sigmoid,
    "relu": lambda values: np.maximum(values, 0),
    "tanh": np.tanh,
}


def initial_weights(network: Network, seed: int, *, drawn: str | None = None) -> list[Layer]:
    """The same for every platform that can be given its weights.

    Glorot's uniform weights and zero biases; or `mllib`: as MLlib draws them where nobody gives it any, biases too.
    """
    random = np.random.default_rng(seed)
    layers = []
    for inputs, outputs in zip(network.sizes, network.sizes[1:], strict=False):
        if drawn == "mllib":
            bound = 2.4 / np.sqrt(inputs)
            layers.append((random.uniform(-bound, bound, (outputs, inputs)), random.uniform(-bound, bound, outputs)))
        else:
            bound = np.sqrt(6 / (inputs + outputs))
            layers.append((random.uniform(-bound, bound, (outputs, inputs)), np.zeros(outputs)))
    return layers


def flatten(layers: list[Layer]) -> NDArray[np.float64]:
    """As MLlib keeps them: each layer's weights column by column, then its bias."""
    return np.concatenate([part for weights, bias in layers for part in (weights.ravel(order="F"), bias)])


def unflatten(network: Network, flat: NDArray[np.float64]) -> list[Layer]:
    layers, at = [], 0
    for inputs, outputs in zip(network.sizes, network.sizes[1:], strict=False):
        weights = flat[at : at + inputs * outputs].reshape((outputs, inputs), order="F")
        at += inputs * outputs
        layers.append((weights, flat[at : at + outputs]))
        at += outputs
    return layers


def accuracy(
    layers: list[Layer],
    features: NDArray[np.floating],
    labels: NDArray[np.int64],
    *,
    activations: tuple[str | None, ...],
) -> float:
    """The share of rows whose largest output is their label; softmax does not change which is largest."""
    right = 0
    for start in range(0, len(features), EVALUATION_ROWS):
        values = features[start : start + EVALUATION_ROWS]
        for (weights, bias), activation in zip(layers, activations, strict=True):
            values = ACTIVATE[activation](values @ weights.T + bias)
        right += int(np.count_nonzero(values.argmax(1) == labels[start : start + EVALUATION_ROWS]))
    return right / len(features)


def to_torch(layers: list[Layer], *, device: torch.device, dtype: torch.dtype) -> list[torch.Tensor]:
    """Weights and biases one after the other, as tensors that learn."""
    import torch

    return [
        torch.from_numpy(np.ascontiguousarray(part)).to(device, dtype).requires_grad_()
        for weights, bias in layers
        for part in (weights, bias)
    ]


def logits(
    parameters: list[torch.Tensor],
    values: torch.Tensor,
    activations: tuple[str | None, ...],
    *,
    unlearnt: Products | None = None,
) -> torch.Tensor:
    """What softmax is taken of; one activation a layer, None is the identity.

    Where no gradient is taken it is found with the products given, which need not know how to.
    """
    import torch
    from torch.nn.functional import linear

    affine = linear if unlearnt is None or torch.is_grad_enabled() else unlearnt.affine
    for weights, bias, activation in zip(parameters[::2], parameters[1::2], activations, strict=True):
        values = affine(values, weights, bias)
        if activation is not None:
            values = getattr(torch, activation)(values)
    return values


def trained_network(spec: TrialSpec, device: torch.device) -> tuple[list[torch.Tensor], Forward]:
    """Of a trial: its weights, and the way from values to what softmax is taken of."""
    import torch

    from models.products import fastest

    # bfloat16 has too few digits to add small steps to: its weights are kept in float32.
    precision = spec.hyperparameters.precision
    dtype, kept = getattr(torch, precision), torch.float32 if precision == "bfloat16" else getattr(torch, precision)
    if spec.network.source is not None:
        from models.own_network import own_network

        return own_network(spec.network, seed=spec.seed, device=device, dtype=dtype, kept=kept)
    layers = initial_weights(spec.network, spec.seed, drawn=spec.hyperparameters.initial_weights)
    parameters = to_torch(layers, device=device, dtype=kept)
    activations = spec.network.layer_activations
    products = fastest(dtype, device)
    return parameters, partial(logits, activations=activations, unlearnt=products)
