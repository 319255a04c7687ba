"""The gradient is the same however it is found."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.gradient_check import unavailable
from models.gradients import Gradient, Manual, gradient
from models.networks import initial_weights, logits, to_torch
from models.products import OneDnn, has_one_dnn
from models.rows import CHUNK_ROWS, Values
from models.spec import ACTIVATIONS, Hyperparameters, Network
from models.training import Training

OWN = Network(sizes=(5, 3), source="nets:make")


def found(
    name: str | Gradient, network: Network, rows: int, dtype: torch.dtype = torch.float64
) -> tuple[float, list[torch.Tensor]]:
    """Summed loss and gradient over two calls, as over two chunks of different size."""
    random = torch.Generator().manual_seed(1)
    values = torch.randn(rows, network.inputs, generator=random, dtype=torch.float64).to(dtype)
    labels = torch.randint(network.classes, (rows,), generator=random)
    weights = to_torch(initial_weights(network, 3), device=torch.device("cpu"), dtype=dtype)
    sums = [
        torch.zeros_like(each, dtype=torch.float64 if dtype == torch.float64 else torch.float32) for each in weights
    ]
    way = _by_name(name, network, dtype) if isinstance(name, str) else name
    split = max(1, rows // 3)
    loss = sum(
        float(way.add(weights, some, known, sums=sums))
        for some, known in zip(values.split(split), labels.split(split), strict=True)
    )
    return loss, [each.detach() for each in sums]


def _by_name(name: str, network: Network, dtype: torch.dtype) -> Gradient:
    return gradient(
        name,
        network=network,
        forward=lambda w, x: logits(w, x, network.layer_activations),
        dtype=dtype,
        device=torch.device("cpu"),
    )


networks = st.lists(st.integers(1, 7), min_size=0, max_size=3).flatmap(
    lambda hidden: st.lists(st.sampled_from(ACTIVATIONS), min_size=len(hidden), max_size=len(hidden) + 1).map(
        lambda named: Network(sizes=(5, *hidden, 3), activations=tuple(named))
    )
)


@settings(deadline=None)
@given(networks, st.integers(1, 20))
def test_by_hand_is_autograds(network: Network, rows: int) -> None:
    loss, sums = found("autograd", network, rows)
    by_hand, sums_by_hand = found("manual", network, rows)
    assert by_hand == pytest.approx(loss, rel=1e-12)
    for one, other in zip(sums, sums_by_hand, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.skipif(not has_one_dnn(), reason="this torch comes without oneDNN's product")
@settings(deadline=None)
@given(networks, st.integers(1, 20))
def test_by_one_dnns_products_it_is_autograds(network: Network, rows: int) -> None:
    loss, sums = found("autograd", network, rows, torch.float32)
    by_hand, sums_by_hand = found(Manual(network.layer_activations, OneDnn()), network, rows, torch.float32)
    assert by_hand == pytest.approx(loss, rel=1e-5)
    for one, other in zip(sums, sums_by_hand, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(bool(unavailable("compile", Network(sizes=(2, 2)))), reason="torch.compile needs a C++ compiler")
def test_compiled_is_autograds() -> None:
    network = Network(sizes=(5, 4, 3), activations=("relu", "tanh"))
    loss, sums = found("autograd", network, 9)
    compiled, sums_compiled = found("compile", network, 9)
    assert compiled == pytest.approx(loss, rel=1e-12)
    for one, other in zip(sums, sums_compiled, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["autograd", "manual"])
def test_bfloat16_is_near(name: str) -> None:
    network = Network(sizes=(20, 16, 3))
    loss, sums = found("autograd", network, 300)
    coarse, sums_coarse = found(name, network, 300, torch.bfloat16)
    assert coarse == pytest.approx(loss, rel=1e-2)
    for one, other in zip(sums, sums_coarse, strict=True):
        assert float((one - other).norm() / one.norm()) < 2e-2


def test_what_cannot_be_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unavailable("autograd", OWN) is None
    assert "that of an mlp" in (unavailable("manual", OWN) or "")
    assert "with an mlp only" in (unavailable("compile", OWN) or "")
    monkeypatch.setenv("PATH", "")
    assert "C++ compiler" in (unavailable("compile", Network(sizes=(4, 3, 2))) or "")


@pytest.mark.parametrize("batch", [None, 64, 10_000])
def test_preparing_meets_every_size_and_changes_no_weight(batch: int | None) -> None:
    network = Network(sizes=(4, 3, 2))
    rows = 2 * CHUNK_ROWS + 100
    parameters = to_torch(initial_weights(network, 1), device=torch.device("cpu"), dtype=torch.float32)
    before = [each.detach().clone() for each in parameters]
    sizes: list[int] = []

    def forward(weights: list[torch.Tensor], values: torch.Tensor) -> torch.Tensor:
        sizes.append(len(values))
        return logits(weights, values, network.layer_activations)

    training = Training(
        network=network,
        parameters=parameters,
        forward=forward,
        hyperparameters=Hyperparameters(
            solver="sgd" if batch else "gd",
            learning_rate=0.1,
            precision="float32",
            gradient="autograd",
            batch_size=batch,
            epochs=1,
        ),
        rows=Values(torch.rand(rows, 4), torch.randint(2, (rows,))),
        seed=1,
    )
    training.prepare()
    prepared = set(sizes)
    assert all(torch.equal(one, other) for one, other in zip(before, parameters, strict=True))
    sizes.clear()
    training.epoch()
    assert set(sizes) == prepared
