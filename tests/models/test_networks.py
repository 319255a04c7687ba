"""The weights that all start from, in the order that MLlib keeps them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.networks import accuracy, flatten, initial_weights, logits, to_torch, unflatten
from models.spec import Network
from tests.models import reference

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


def test_accuracy_is_what_torch_counts() -> None:
    import torch

    network = Network(sizes=(5, 4, 3))
    random = np.random.default_rng(0)
    values, labels = random.normal(size=(5000, 5)), random.integers(0, 3, 5000)
    layers = initial_weights(network, 3)
    parameters = to_torch(layers, device=torch.device("cpu"), dtype=torch.float64)
    best = logits(parameters, torch.from_numpy(values)).argmax(1).numpy()
    assert accuracy(layers, values, labels) == (best == labels).mean()


def test_the_reference_is_right_by_finite_differences() -> None:
    network = Network(sizes=(4, 3, 3))
    random = np.random.default_rng(0)
    values, labels = random.normal(size=(20, 4)), random.integers(0, 3, 20)
    flat = flatten(initial_weights(network, 1))
    _, gradient = reference.loss_and_gradient(unflatten(network, flat), values, labels)
    step = 1e-6
    for place, expected in enumerate(flatten(gradient)):
        moved = np.zeros_like(flat)
        moved[place] = step
        up, _ = reference.loss_and_gradient(unflatten(network, flat + moved), values, labels)
        down, _ = reference.loss_and_gradient(unflatten(network, flat - moved), values, labels)
        assert (up - down) / (2 * step) == pytest.approx(expected, abs=1e-8)
