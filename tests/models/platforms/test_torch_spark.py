"""torch on Spark's executors: the reference's numbers, whatever way rows are kept, shared and summed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

import pytest

from models.dataset import Dataset
from models.platforms.torch_spark import TorchSpark
from models.protocol import Epoch
from models.spark_application import SparkApplication
from models.spec import Resources
from tests.models import reference
from tests.models.made import RESOURCES, packed, spec, surroundings

pytestmark = pytest.mark.spark
TWO = RESOURCES["torch-spark"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return packed(tmp_path_factory.mktemp("packed"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("session")


@pytest.fixture(scope="module")
def trainer(folder: Path) -> Iterator[TorchSpark]:
    made = TorchSpark(surroundings(folder))
    yield made
    made.close()


def train(trainer: TorchSpark, data: Dataset, *, resources: Resources = TWO, **changes: object) -> list[Epoch]:
    trial = spec("torch-spark", resources=resources, **changes)
    assert trainer.unavailable(trial) is None
    epochs = list(trainer.train(trial, data))
    tolerance = {"float64": 1e-9, "float32": 1e-5, "bfloat16": 2e-2}[trial.hyperparameters.precision]
    if trial.hyperparameters.batch_size is None:
        assert [each.loss for each in epochs] == pytest.approx(reference.losses(trial, data), rel=tolerance)
    return epochs


@pytest.mark.parametrize("module", ["pyspark.worker", "py4j.protocol", "models.ranks.rank"])
def test_executors_import_nothing_from_a_zip(trainer: TorchSpark, folder: Path, module: str) -> None:
    """Python keeps what it has compiled beside a file, and of a zip it compiles all anew."""
    context = SparkApplication.shared(TWO, surroundings(folder)).session.sparkContext
    [there] = context.parallelize([module], 1).map(find_spec).map(attrgetter("origin")).collect()
    assert Path(there).is_file()


def test_what_jvms_leave_when_they_are_killed_goes_with_the_session(trainer: TorchSpark, folder: Path) -> None:
    session = SparkApplication.shared(TWO, surroundings(folder)).session
    asked = "java_method('java.lang.System', 'getProperty', 'java.io.tmpdir')"
    [executors] = session.sql(f"SELECT {asked} AS folder FROM range(1)").collect()  # noqa: S608
    drivers = session.sparkContext._jvm.System.getProperty("java.io.tmpdir")  # type: ignore[union-attr]
    assert {executors.folder, drivers} == {str(folder / "tmp")}
    assert list((folder / "tmp").glob("spark-*"))


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("gradient", ["manual", "autograd"])
def test_every_precision_and_gradient(trainer: TorchSpark, data: Dataset, precision: str, gradient: str) -> None:
    train(trainer, data, precision=precision, gradient=gradient)


def test_a_seed_is_one_training_to_the_last_digit(trainer: TorchSpark, data: Dataset) -> None:
    how = {"solver": "momentum", "learning_rate": 0.1, "batch_size": 64, "epochs": 3}
    first, again = (train(trainer, data, **how) for _ in range(2))
    assert [(each.loss, each.test_accuracy) for each in first] == [(each.loss, each.test_accuracy) for each in again]
    other = train(trainer, data, seed=12, **how)
    assert [each.loss for each in other] != [each.loss for each in first]


def test_the_ledger_is_the_seconds(trainer: TorchSpark, data: Dataset) -> None:
    for epoch in train(trainer, data):
        assert sum(epoch.ledger.values()) == pytest.approx(epoch.seconds)
        assert epoch.ledger["compute"] > 0
        assert epoch.ledger["comm"] > 0
        assert epoch.exchange_seconds is not None
        assert epoch.exchange_seconds > 0
        assert (epoch.peak_memory_mib or 0) > 100
        assert (epoch.granted_executors, epoch.granted_cores) == (2, 2)


def test_mini_batches_are_those_of_one_process(trainer: TorchSpark, data: Dataset, tmp_path: Path) -> None:
    from models.platforms.torch_cpu import TorchCpu

    how = {"solver": "momentum", "learning_rate": 0.1, "batch_size": 64, "precision": "float64"}
    alone = list(TorchCpu(surroundings(tmp_path)).train(spec("torch-cpu", **how), data))
    ours = train(trainer, data, **how)
    assert [each.loss for each in ours] == pytest.approx([each.loss for each in alone], rel=1e-9)
    assert [each.test_accuracy for each in ours] == [each.test_accuracy for each in alone]


def test_a_compiled_gradient_is_for_the_full_batch(trainer: TorchSpark, data: Dataset) -> None:
    train(trainer, data, gradient="compile")
    why = trainer.unavailable(spec("torch-spark", gradient="compile", solver="sgd", batch_size=64))
    assert why is not None
    assert why.startswith("torch.compile makes a program for each number of rows")
    moving = replace(TWO, balance="speed")
    why = trainer.unavailable(spec("torch-spark", gradient="compile", resources=moving))
    assert why is not None
    assert why.endswith("these change from epoch to epoch; gradients = autograd or manual, or balances = even")
    assert trainer.unavailable(spec("torch-spark", gradient="manual", resources=moving)) is None


def test_rows_that_memory_does_not_hold_stream(folder: Path, trainer: TorchSpark, data: Dataset) -> None:
    small = TorchSpark(surroundings(folder, overhead_mib=0))  # in the same application
    train(small, data)
    train(small, data, solver="l-bfgs", learning_rate=None, epochs=1)


@pytest.mark.parametrize("balance", ["speed", "7:1"])
def test_shares_need_not_be_equal(trainer: TorchSpark, data: Dataset, balance: str) -> None:
    train(trainer, data, resources=replace(TWO, balance=balance), precision="float64")


def test_gradients_in_half_precision_lose_little(trainer: TorchSpark, data: Dataset) -> None:
    trial = spec("torch-spark", precision="float64", compression="bfloat16")
    losses = [each.loss for each in trainer.train(trial, data)]
    exact = reference.losses(trial, data)
    assert losses[0] == pytest.approx(exact[0], rel=1e-9), "the loss itself is not sent in half"
    assert losses == pytest.approx(exact, rel=5e-3)
    assert losses != pytest.approx(exact, rel=1e-9)


def test_shares_must_be_one_for_each_executor(trainer: TorchSpark) -> None:
    why = trainer.unavailable(spec("torch-spark", resources=replace(TWO, balance="7:1:1")))
    assert why == "balances = 7:1:1 shares rows among 3 executors, and there are 2"


def test_a_gpu_that_is_not_there_is_a_sentence_and_never_a_cpu_run(trainer: TorchSpark) -> None:
    import torch

    if torch.cuda.device_count() >= 2:
        pytest.skip("this machine has a CUDA device for each executor")
    why = trainer.unavailable(spec("torch-spark", resources=replace(TWO, device="cuda")))
    assert why is not None
    assert why.startswith("2 executors need a GPU each, and this machine has ")


def test_an_executor_trains_with_all_of_its_cores(data: Dataset, folder: Path, trainer: TorchSpark) -> None:
    one = Resources(executors=1, cores=2, memory_mib=1024, deploy_mode="client")
    epochs = train(trainer, data, resources=one)
    assert (epochs[0].granted_executors, epochs[0].granted_cores) == (1, 2)
    assert epochs[0].exchange_seconds is None
    assert {epoch.ledger["comm"] for epoch in epochs} == {0.0}
