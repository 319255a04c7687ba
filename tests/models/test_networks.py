"""The weights that all start from, in the order that MLlib keeps them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from models.networks import Layer, accuracy, flatten, initial_weights, logits, to_torch, unflatten
from models.spec import Network
from tests.models import reference

NAMES = [
    "mlp:5-4-3",
    "mlp:5-4-3:relu",
    "mlp:5-4-3:tanh",
    "mlp:5-4-6-3:relu,sigmoid",
    "mlp:5-4-6-3:tanh,relu,tanh",
    "mlp:5-4-3:sigmoid,sigmoid",
    "mlp:5-4-3:tanh,relu",
    "perceptron:5-3",
]

sizes = st.lists(st.integers(1, 6), min_size=2, max_size=4).map(lambda found: Network(sizes=tuple(found)))


@given(sizes, st.integers(0, 5))
def test_flat_weights_come_back(network: Network, seed: int) -> None:
    layers = initial_weights(network, seed)
    flat = flatten(layers)
    assert len(flat) == network.parameters
    for (weights, bias), (again, bias_again) in zip(layers, unflatten(network, flat), strict=True):
        assert (weights == again).all()
        assert (bias == bias_again).all()


def test_the_seed_decides() -> None:
    network = Network(sizes=(5, 4, 3))
    assert (flatten(initial_weights(network, 1)) == flatten(initial_weights(network, 1))).all()
    assert (flatten(initial_weights(network, 1)) != flatten(initial_weights(network, 2))).any()


@pytest.mark.parametrize("name", NAMES)
def test_accuracy_is_what_torch_counts(name: str) -> None:
    import torch

    network = Network.parse(name)
    random = np.random.default_rng(0)
    values, labels = random.normal(size=(5000, network.inputs)), random.integers(0, 3, 5000)
    layers = initial_weights(network, 3)
    parameters = to_torch(layers, device=torch.device("cpu"), dtype=torch.float64)
    activations = network.layer_activations
    best = logits(parameters, torch.from_numpy(values), activations).argmax(1).numpy()
    assert accuracy(layers, values, labels, activations=activations) == (best == labels).mean()


@pytest.mark.parametrize("name", NAMES)
def test_without_a_gradient_the_products_given_are_taken(name: str) -> None:
    """They are faster where oneDNN's are, and know of no gradient: one would be without the matrices' part."""
    import torch

    from models.products import Own

    network = Network.parse(name)
    products = Own()
    asked: list[int] = []

    def counted(inputs: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        asked.append(len(inputs))
        return Own.affine(products, inputs, matrix, bias)

    products.affine = counted  # type: ignore[method-assign,assignment]
    parameters = to_torch(initial_weights(network, 3), device=torch.device("cpu"), dtype=torch.float64)
    values = torch.rand(7, network.inputs, dtype=torch.float64)
    learnt = logits(parameters, values, network.layer_activations, unlearnt=products)
    assert learnt.requires_grad
    assert not asked
    with torch.no_grad():
        judged = logits(parameters, values, network.layer_activations, unlearnt=products)
    assert asked == [7] * (len(network.sizes) - 1)
    assert torch.allclose(learnt, judged)


def test_a_large_negative_sum_is_no_warning() -> None:
    network = Network(sizes=(1, 1, 2))
    layers = [(np.full((1, 1), -1e3), np.zeros(1)), (np.ones((2, 1)), np.array([0.0, 1.0]))]
    assert accuracy(layers, np.ones((3, 1)), np.ones(3, np.int64), activations=network.layer_activations) == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_is_right_by_finite_differences(name: str) -> None:
    network = Network.parse(name)
    random = np.random.default_rng(0)
    values, labels = random.normal(size=(20, network.inputs)), random.integers(0, 3, 20)
    flat = flatten(initial_weights(network, 1))

    def found(at: NDArray[np.float64]) -> tuple[float, list[Layer]]:
        return reference.loss_and_gradient(
            unflatten(network, at), values, labels, activations=network.layer_activations
        )

    _, gradient = found(flat)
    step = 1e-6
    for place, expected in enumerate(flatten(gradient)):
        moved = np.zeros_like(flat)
        moved[place] = step
        (up, _), (down, _) = found(flat + moved), found(flat - moved)
        assert (up - down) / (2 * step) == pytest.approx(expected, abs=1e-8)
