"""A parameter server on Spark's executors: in step as `torch-spark` is, ahead by a bound, and what breaks is told."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from models.dataset import Dataset
from models.platforms.torch_spark import TorchSpark
from models.platforms.torch_spark_async import TorchSparkAsync
from models.protocol import Epoch, Surroundings, TaintedError
from models.spec import Resources
from store.errors import TrialError
from tests.models import reference
from tests.models.made import RESOURCES, packed, spec, surroundings
from tests.models.ranks.test_torch_spark_faults import executors, ranks
from tests.pipeline.place import eventually

pytestmark = pytest.mark.spark
TWO = RESOURCES["torch-spark-async"]
SGD: dict[str, Any] = {"solver": "sgd", "batch_size": 64, "learning_rate": 0.1, "epochs": 6}
ENDLESS = 1_000_000
STALL_SECONDS = 3.0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return packed(tmp_path_factory.mktemp("packed"))


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Surroundings:
    return surroundings(tmp_path_factory.mktemp("session"))


@pytest.fixture(scope="module")
def trainer(around: Surroundings) -> Iterator[TorchSparkAsync]:
    made = TorchSparkAsync(around)
    yield made
    made.close()


def train(trainer: TorchSpark, data: Dataset, *, resources: Resources = TWO, **changes: Any) -> list[Epoch]:
    return list(trainer.train(spec(trainer.name, resources=resources, **changes), data))


@pytest.mark.parametrize("solver", ["sgd", "momentum", "adam"])
def test_with_staleness_0_it_is_the_one_in_step(
    trainer: TorchSparkAsync, around: Surroundings, data: Dataset, solver: str
) -> None:
    changes = SGD | {"solver": solver, "learning_rate": 0.01, "gradient": "manual"}
    asynchronous = train(trainer, data, staleness=0, **changes)
    in_step = train(TorchSpark(around), data, resources=replace(TWO, shards=None), **changes)
    assert [each.loss for each in asynchronous] == pytest.approx([each.loss for each in in_step], rel=1e-5)
    for one, other in zip(asynchronous, in_step, strict=True):
        assert (one.updates, one.samples, one.test_accuracy) == (other.updates, other.samples, other.test_accuracy)
        assert (one.mean_staleness, one.largest_staleness, one.divergence) == (0, 0, 0)
        assert (other.mean_staleness, other.largest_staleness, other.divergence) == (None, None, None)


def test_ranks_that_run_ahead(trainer: TorchSparkAsync, data: Dataset) -> None:
    epochs = train(trainer, data, resources=replace(TWO, shards=3), staleness=2, **SGD)
    assert [each.epoch for each in epochs] == list(range(1, 7))
    assert epochs[-1].loss is not None
    assert epochs[0].loss is not None
    assert epochs[-1].loss < epochs[0].loss
    for each in epochs:
        assert each.updates == 2 * 7
        assert each.largest_staleness is not None
        assert each.largest_staleness <= 2 * 2 + 1
        assert each.divergence is not None
        assert 0 <= each.divergence < 1
        assert sum(each.ledger.values()) == pytest.approx(each.seconds)
    assert epochs[0].exchange_seconds is not None
    assert epochs[0].exchange_seconds > 0


def test_a_stranger_at_every_port_of_the_executors_changes_nothing(trainer: TorchSparkAsync, tmp_path: Path) -> None:
    data = packed(tmp_path, train_rows=40_000, row_group_rows=4_000)
    trial = spec(trainer.name, epochs=400)  # they are still at it when the second epoch is heard of
    losses = []
    answered: list[bytes] = []
    for epoch in trainer.train(trial, data):
        losses.append(epoch.loss)
        if epoch.epoch == 2:
            ports = {each.laddr for rank in ranks() for each in rank.net_connections("tcp") if each.status == "LISTEN"}
            assert len(ports) >= 2, "a shard in each executor"
            answered += [_say(at, said) for at in ports for said in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(300))]
    assert losses == pytest.approx(reference.losses(trial, data), rel=1e-4)
    assert set(answered) == {b""}


def _say(at: tuple[str, int], said: bytes) -> bytes:
    with suppress(OSError), socket.create_connection(at, timeout=5) as stranger:
        stranger.sendall(said)
        stranger.shutdown(socket.SHUT_WR)
        return stranger.recv(1)
    return b""


def train_until(trainer: TorchSparkAsync, data: Dataset, *, fault: Callable[[], object], staleness: int) -> None:
    """Epochs without end; the fault happens after the third."""
    for epoch in trainer.train(spec(trainer.name, epochs=ENDLESS, staleness=staleness), data):
        if epoch.epoch == 3:
            fault()


def test_a_rank_that_stands_still_is_ended(trainer: TorchSparkAsync, around: Surroundings, data: Dataset) -> None:
    train(trainer, data)  # processes that have not loaded torch yet may be silent for longer
    impatient = TorchSparkAsync(replace(around, stall_seconds=STALL_SECONDS))
    stopped: list[psutil.Process] = []

    def stop() -> None:
        stopped.append(ranks()[0])
        stopped[0].suspend()

    with pytest.raises(TrialError, match=r"3 s \(yarnstick.spark.stall_seconds\)") as told:
        train_until(impatient, data, fault=stop, staleness=3)
    assert "\n" not in str(told.value)
    eventually(lambda: not stopped[0].is_running())


def test_a_killed_executor_taints(trainer: TorchSparkAsync, data: Dataset) -> None:
    with pytest.raises(TaintedError, match=r"^executor \d was lost$"):
        train_until(trainer, data, fault=lambda: executors()[0].kill(), staleness=1)
