"""The network from scratch against torch's autograd and finite differences, and that it comes in chunks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from models.dataset import Dataset
from models.networks import flatten, initial_weights, logits, to_torch, unflatten
from models.platforms.scratch import Perceptron, Scratch, _batches
from models.spec import Network
from tests.models import reference
from tests.models.made import packed, spec, surroundings
from tests.models.test_networks import NAMES

ROWS = 50


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    return packed(tmp_path / "packed")


def rows(network: Network) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    random = np.random.default_rng(3)
    return random.normal(size=(ROWS, network.inputs)), random.integers(0, network.classes, ROWS)


def scratch(network: Network, dtype: str = "float64", *, seed: int = 5) -> Perceptron:
    return Perceptron(initial_weights(network, seed), activations=network.layer_activations, dtype=dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("name", NAMES)
def test_its_gradient_is_that_of_torchs_autograd(name: str, dtype: str, tolerance: float) -> None:
    import torch
    from torch.nn.functional import cross_entropy

    network = Network.parse(name)
    values, labels = rows(network)
    values = values.astype(dtype)
    ours = scratch(network, dtype)
    loss = ours.find_gradient(values, labels) / ROWS
    weights = to_torch(initial_weights(network, 5), device=torch.device("cpu"), dtype=getattr(torch, dtype))
    outputs = logits(weights, torch.from_numpy(values), network.layer_activations)
    theirs = cross_entropy(outputs, torch.from_numpy(labels))
    assert loss == pytest.approx(theirs.item(), rel=tolerance)
    found = [part for layer in ours.gradient for part in layer]
    for mine, autograd in zip(found, torch.autograd.grad(theirs, weights), strict=True):
        assert mine.dtype == dtype
        np.testing.assert_allclose(mine, autograd.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_its_gradient_is_that_of_finite_differences(name: str) -> None:
    network = Network.parse(name)
    values, labels = rows(network)
    flat, step = flatten(initial_weights(network, 5)), 1e-6

    def loss(at: NDArray[np.float64]) -> float:
        moved = Perceptron(unflatten(network, at), activations=network.layer_activations, dtype="float64")
        return moved.find_gradient(values, labels) / ROWS

    ours = scratch(network)
    ours.find_gradient(values, labels)
    differences = [(loss(flat + moved) - loss(flat - moved)) / (2 * step) for moved in np.eye(len(flat)) * step]
    assert flatten(ours.gradient) == pytest.approx(differences, abs=1e-8)


def test_the_sum_over_chunks_is_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network.parse("mlp:5-4-6-3:relu,tanh")
    values, labels = rows(network)
    whole = scratch(network)
    loss = whole.find_gradient(values, labels)
    monkeypatch.setattr("models.platforms.scratch.CHUNK_ROWS", 7)
    chunked = scratch(network)
    assert chunked.find_gradient(values, labels) == pytest.approx(loss, rel=1e-12)
    assert flatten(chunked.gradient) == pytest.approx(flatten(whole.gradient), rel=1e-12)


def test_it_trains_at_both_precisions(data: Dataset, tmp_path: Path) -> None:
    trainer = Scratch(surroundings(tmp_path))
    for precision, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        trial = spec("numpy", precision=precision)
        losses = [epoch.loss for epoch in trainer.train(trial, data)]
        assert losses == pytest.approx(reference.losses(trial, data), rel=tolerance)
    assert trainer.unavailable(spec("numpy", precision="bfloat16")) == "numpy has no bfloat16"


def test_batches_are_shuffled_by_the_seed_and_miss_no_row(data: Dataset, tmp_path: Path) -> None:
    trainer = Scratch(surroundings(tmp_path))

    def losses(seed: int, batch_size: int) -> list[float | None]:
        trial = spec("numpy", solver="sgd", batch_size=batch_size, precision="float64", seed=seed)
        return [epoch.loss for epoch in trainer.train(trial, data)]

    assert losses(1, 64) == losses(1, 64)
    assert losses(1, 64) != losses(2, 64)
    whole = spec("numpy", precision="float64", seed=1)
    assert losses(1, 10_000) == pytest.approx(reference.losses(whole, data), rel=1e-12)


def test_each_epoch_has_an_order_of_its_own() -> None:
    shuffle = np.random.default_rng(1)
    epochs = [[np.asarray(batch) for batch in _batches(10, 4, shuffle)] for _ in range(2)]
    orders = [np.concatenate(batches).tolist() for batches in epochs]
    assert [sorted(order) for order in orders] == [list(range(10))] * 2
    assert len({tuple(order) for order in [*orders, list(range(10))]}) == 3
    assert [len(batch) for batch in epochs[0]] == [4, 4, 2]
    assert list(_batches(10, None, shuffle)) == [slice(0, 10)]


@pytest.mark.parametrize("threads", [1, 2])
def test_it_takes_the_threads_it_is_given(data: Dataset, tmp_path: Path, threads: int) -> None:
    from threadpoolctl import threadpool_info

    from models.probes import usable_cores
    from models.spec import Resources

    if threads > usable_cores():
        pytest.skip(f"this machine has {usable_cores()} core for {threads} threads")
    before = threadpool_info()
    epochs = list(Scratch(surroundings(tmp_path)).train(spec("numpy", resources=Resources(threads=threads)), data))
    assert {epoch.granted_cores for epoch in epochs} == {threads}
    assert [each["num_threads"] for each in threadpool_info()] == [each["num_threads"] for each in before]
