"""One suite over every platform: the same weights, the same loss after the same updates, honest counters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.dataset import Dataset
from models.protocol import BUILT_IN, Epoch, Platform, platform
from models.spec import MINI_BATCH_SOLVERS, SOLVERS, Network, TrialSpec
from tests.models import reference
from tests.models.made import CLASSES, COLUMNS, packed, spec, surroundings

# How far a loss may be from the float64 reference, by precision.
TOLERANCE = {"float64": 1e-9, "float32": 1e-5, "bfloat16": 2e-2}
MARKS = {name: [pytest.mark.spark] for name in ("mllib", "mllib-logistic", "torch-spark", "torch-spark-async")}
PERCEPTRON = Network(sizes=(COLUMNS, CLASSES))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return packed(tmp_path_factory.mktemp("packed"))


@pytest.fixture(scope="module", params=[pytest.param(name, marks=MARKS.get(name, [])) for name in sorted(BUILT_IN)])
def trainer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = platform(request.param)(surroundings(tmp_path_factory.mktemp("session")))
    yield made
    made.close()


def train(trainer: Platform, trial: TrialSpec, data: Dataset) -> list[Epoch]:
    """Its epochs; a platform or solver that is not to be had here is a skip with the platform's own reason."""
    if why := trainer.unavailable(trial):
        pytest.skip(f"{trainer.name}: {why}")
    return list(trainer.train(trial, data))


def test_it_is_what_the_factory_calls_it(trainer: Platform) -> None:
    assert platform(trainer.name) is type(trainer)
    assert "solvers" in trainer.axes


@pytest.mark.parametrize("drawn", [None, "mllib"])
def test_full_batch_gradient_descent_is_the_reference(trainer: Platform, data: Dataset, drawn: str | None) -> None:
    trial = spec(trainer.name, initial_weights=drawn)
    epochs = train(trainer, trial, data)
    tolerance = TOLERANCE[trial.hyperparameters.precision]
    assert [epoch.loss for epoch in epochs] == pytest.approx(reference.losses(trial, data), rel=tolerance)


@pytest.mark.parametrize(
    "name", ["perceptron:12-3", "mlp:12-8-3:relu", "mlp:12-8-3:tanh,tanh", "mlp:12-6-5-3:tanh,relu"]
)
def test_any_network_by_its_name_is_the_reference(trainer: Platform, data: Dataset, name: str) -> None:
    trial = spec(trainer.name, network=Network.parse(name))
    epochs = train(trainer, trial, data)
    tolerance = TOLERANCE[trial.hyperparameters.precision]
    assert [epoch.loss for epoch in epochs] == pytest.approx(reference.losses(trial, data), rel=tolerance)


def test_softmax_regression_by_l_bfgs_finds_the_one_minimum(trainer: Platform, tmp_path: Path) -> None:
    data = packed(tmp_path, noise=150)  # classes that no plane divides: else the best weights are infinite
    trial = spec(trainer.name, data="made-noisy", network=PERCEPTRON, solver="l-bfgs", learning_rate=None, epochs=50)
    epochs = train(trainer, trial, data)
    assert epochs[-1].loss == pytest.approx(reference.minimum(trial, data), rel=1e-5)
    assert epochs[-1].test_accuracy is not None


def test_it_takes_a_network_as_wide_as_colour_images(trainer: Platform, tmp_path: Path) -> None:
    data = packed(tmp_path, columns=3072, classes=10, train_rows=60, test_rows=20)
    network = Network.parse("mlp:3072-1024-10")
    trial = spec(trainer.name, data="made-wide", network=network, learning_rate=0.01, epochs=2)
    epochs = train(trainer, trial, data)
    tolerance = 10 * TOLERANCE[trial.hyperparameters.precision]
    assert [epoch.loss for epoch in epochs] == pytest.approx(reference.losses(trial, data), rel=tolerance)


def test_a_module_of_torch_is_for_torch(trainer: Platform) -> None:
    trial = spec(trainer.name, network=Network.parse("torch:small_cnn:make", inputs=COLUMNS, classes=CLASSES))
    why = trainer.unavailable(trial)
    if trainer.name.startswith("torch"):
        assert why in (None, "no CUDA device")
    else:
        assert "torch:small_cnn:make is a module of torch" in (why or "")


def test_counters_are_honest(trainer: Platform, data: Dataset) -> None:
    epochs = train(trainer, spec(trainer.name), data)
    assert [epoch.epoch for epoch in epochs] == [1, 2, 3, 4]
    for epoch in epochs:
        assert (epoch.passes, epoch.updates, epoch.samples) == (1, 1, data.train_rows)
        assert epoch.seconds > 0
        assert epoch.cpu_seconds is not None
        assert epoch.cpu_seconds >= 0
        assert epoch.clock in ("measured", "eventlog")
        assert epoch.startup_seconds is not None
        assert epoch.load_seconds is not None
        assert epoch.load_seconds > 0
        assert epoch.bytes_read == data.train_bytes
        assert epoch.granted_cores
        assert epoch.note is None
        assert epoch.tainted is None


def test_the_end_says_how_good_it_is(trainer: Platform, data: Dataset) -> None:
    last = train(trainer, spec(trainer.name, learning_rate=1.0, epochs=60), data)[-1]
    assert last.train_accuracy is not None
    assert last.test_accuracy is not None
    assert 0.8 < last.train_accuracy <= 1
    assert 0.8 < last.test_accuracy <= 1


def test_a_fraction_is_the_same_rows_everywhere(trainer: Platform, data: Dataset) -> None:
    trial = spec(trainer.name, data_fraction=0.5)
    epochs = train(trainer, trial, data)
    assert [epoch.samples for epoch in epochs] == [data.train_rows // 2] * 4
    tolerance = TOLERANCE[trial.hyperparameters.precision]
    assert [epoch.loss for epoch in epochs] == pytest.approx(reference.losses(trial, data), rel=tolerance)


def test_the_seed_decides_the_weights(trainer: Platform, data: Dataset) -> None:
    once, again, other = (train(trainer, spec(trainer.name, seed=seed), data)[0].loss for seed in (1, 1, 2))
    assert once == again
    assert once != other


def test_l_bfgs_counts_the_passes_of_its_line_search(trainer: Platform, data: Dataset) -> None:
    epochs = train(trainer, spec(trainer.name, solver="l-bfgs", learning_rate=None, epochs=6), data)
    losses = [epoch.loss for epoch in epochs]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] == pytest.approx(reference.losses(spec(trainer.name, epochs=1), data)[0], rel=1e-5)
    assert epochs[0].passes >= 2, "the pass at the initial weights belongs to the first iteration"
    for epoch in epochs:
        assert epoch.passes >= 1
        assert (epoch.updates, epoch.samples) == (1, epoch.passes * data.train_rows)
    assert {epoch.clock for epoch in epochs} <= {"measured", "eventlog"}


@pytest.mark.parametrize("solver", SOLVERS)
def test_it_trains_by_a_solver_or_says_why_not(trainer: Platform, data: Dataset, solver: str) -> None:
    mini = solver in MINI_BATCH_SOLVERS
    rate = {"l-bfgs": None, "adam": 0.01}.get(solver, 0.1)
    trial = spec(trainer.name, solver=solver, learning_rate=rate, batch_size=64 if mini else None)
    epochs = train(trainer, trial, data)
    assert epochs[-1].loss is not None
    assert epochs[0].loss is not None
    assert epochs[-1].loss < epochs[0].loss
    if mini:
        assert {(epoch.passes, epoch.updates, epoch.samples) for epoch in epochs} == {(1, 7, data.train_rows)}


def test_a_step_too_large_is_seen_in_the_loss(trainer: Platform, data: Dataset) -> None:
    losses = [epoch.loss for epoch in train(trainer, spec(trainer.name, learning_rate=1e30, epochs=5), data)]
    assert any(loss is not None and (not math.isfinite(loss) or loss > 1e6) for loss in losses)


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
def test_torch_trains_at_every_precision(data: Dataset, tmp_path: Path, precision: str) -> None:
    trial = spec("torch-cpu", precision=precision)
    epochs = list(platform("torch-cpu")(surroundings(tmp_path)).train(trial, data))
    assert [epoch.loss for epoch in epochs] == pytest.approx(reference.losses(trial, data), rel=TOLERANCE[precision])


def test_torch_in_chunks_is_torch_in_one_piece(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.rows.CHUNK_ROWS", 33)
    trial = spec("torch-cpu", precision="float64")
    epochs = list(platform("torch-cpu")(surroundings(tmp_path)).train(trial, data))
    assert [epoch.loss for epoch in epochs] == pytest.approx(reference.losses(trial, data), rel=1e-12)


def test_a_mini_batch_larger_than_the_data_is_the_full_batch(data: Dataset, tmp_path: Path) -> None:
    trial = spec("torch-cpu", solver="sgd", batch_size=10_000, precision="float64")
    epochs = list(platform("torch-cpu")(surroundings(tmp_path)).train(trial, data))
    assert [epoch.loss for epoch in epochs] == pytest.approx(reference.losses(trial, data), rel=1e-9)


def test_a_gpu_that_is_not_there_is_a_sentence_and_never_a_cpu_run(tmp_path: Path) -> None:
    import torch

    why = platform("torch-cuda")(surroundings(tmp_path)).unavailable(spec("torch-cuda"))
    assert why == (None if torch.cuda.is_available() else "no CUDA device")
