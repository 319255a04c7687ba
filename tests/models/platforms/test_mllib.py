"""What only MLlib has: executors that are granted, applications that are shared, rows in equal blocks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import SparkContext

from models import mllib_rehearsal
from models.fits import REHEARSAL
from models.java_doubles import doubles
from models.mllib_rehearsal import MOST_ITERATIONS
from models.networks import initial_weights, unflatten
from models.platforms.mllib import BLOCK_ROWS, MLlib, _rows, block_rows
from models.protocol import Epoch
from models.spark_application import SparkApplication
from models.spec import Network, Resources
from models.target import Target
from store.errors import TrialError
from tests.models import reference
from tests.models.made import packed, spec, surroundings

BLAS = {"VectorBLAS", "JNIBLAS", "ForeignLinkerBLAS", "Java11BLAS", "F2jBLAS"}


@given(st.integers(1, 100_000), st.integers(1, 64))
def test_blocks_are_equal_where_they_can_be(rows: int, partitions: int) -> None:
    size = block_rows(rows, partitions)
    assert 1 <= size <= BLOCK_ROWS
    if size < BLOCK_ROWS:
        assert rows % partitions == 0
        assert (rows // partitions) % size == 0


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MLlib]:
    made = MLlib(surroundings(tmp_path_factory.mktemp("session")))
    yield made
    made.close()


@pytest.mark.spark
def test_executors_and_cores_are_granted_as_asked_and_the_sum_does_not_change(tmp_path: Path, trainer: MLlib) -> None:
    data = packed(tmp_path)
    found: dict[tuple[int, int], list[Epoch]] = {}
    for executors, cores in ((2, 1), (1, 2)):
        resources = Resources(executors=executors, cores=cores, memory_mib=1024, partitions=2, deploy_mode="client")
        found[executors, cores] = list(trainer.train(spec("mllib", resources=resources), data))
    for (executors, cores), epochs in found.items():
        assert {epoch.granted_executors for epoch in epochs} == {executors}
        assert {epoch.granted_cores for epoch in epochs} == {executors * cores}
        assert {epoch.blas for epoch in epochs} <= BLAS
    losses = [[epoch.loss for epoch in epochs] for epochs in found.values()]
    assert losses[0] == pytest.approx(losses[1], rel=1e-12), "partitions are fixed, so the work is the same"


@pytest.mark.spark
def test_trials_of_one_session_share_an_application(tmp_path: Path, trainer: MLlib) -> None:
    data = packed(tmp_path)
    once = list(trainer.train(spec("mllib"), data))
    again = list(trainer.train(spec("mllib", seed=12), data))
    assert once[0].startup_seconds == again[0].startup_seconds
    assert {epoch.exchange_seconds for epoch in once} == {again[0].exchange_seconds}, "measured once"
    assert again[0].exchange_seconds is not None
    assert sum(epoch.seconds for epoch in again) < math.inf


@pytest.mark.spark
def test_trials_that_share_an_application_are_rehearsed_once_and_no_epoch_knows_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mllib_rehearsal, "LEAST_FLOP", 1.0)
    data = packed(tmp_path / "data")
    SparkApplication.end_shared()  # of the tests before: it is no new one
    made = MLlib(surroundings(tmp_path / "session", shares_applications=True))
    try:
        once = list(made.train(spec("mllib"), data))
        again = list(made.train(spec("mllib", seed=12), data))
        application = SparkApplication._shared
        assert application is not None
        passes = Counter(job.group for job in application.log().read().jobs.values() if job.is_pass)
    finally:
        made.close()
    assert [epoch.loss for epoch in once] == pytest.approx(reference.losses(spec("mllib"), data), rel=1e-9)
    assert [epoch.epoch for epoch in again] == [1, 2, 3, 4]
    assert passes[REHEARSAL] == MOST_ITERATIONS + 1
    assert passes[spec("mllib").slug] == 2 * (4 + 1), "a slug has no seed in it"


@pytest.mark.spark
@pytest.mark.parametrize("solver", ["gd", "l-bfgs"])
def test_a_fit_to_fewer_iterations_is_where_the_trial_was_then(tmp_path: Path, solver: str) -> None:
    """Its accuracy is that of a trial of as many epochs, and the trial's own times do not know of it."""
    data = packed(tmp_path / "data", noise=90)
    made = MLlib(surroundings(tmp_path / "session", targets=(Target(dataset="made", network=None, accuracy=1.0),)))
    try:
        whole = list(made.train(spec("mllib", solver=solver, epochs=5), data))
        shorter = list(made.train(spec("mllib", solver=solver, epochs=4), data))
    finally:
        made.close()
    assert [epoch.test_accuracy is not None for epoch in whole] == [True, True, False, True, True]
    assert whole[3].test_accuracy == shorter[-1].test_accuracy
    assert len(whole) == 5
    assert [epoch.loss for epoch in whole[:4]] == pytest.approx([epoch.loss for epoch in shorter], rel=1e-9)
    assert {epoch.clock for epoch in whole} == {"eventlog"}


@pytest.mark.spark
def test_rows_arrive_as_they_are_whether_dense_or_sparse(tmp_path: Path, trainer: MLlib) -> None:
    data = packed(tmp_path, has_zeros=True)
    asked = spec("mllib")
    application = SparkApplication.shared(asked.resources, surroundings(tmp_path / "session"))
    rows = _rows(application, application.master.rows(asked, data)).collect()
    assert {type(row.features).__name__ for row in rows} == {"DenseVector", "SparseVector"}
    features, labels = data.read_train(1.0)
    assert np.array_equal([row.features.toArray() for row in rows], data.values(features, "float64"))
    assert [row.label for row in rows] == labels.tolist()


@pytest.mark.spark
def test_weights_as_mllib_draws_them_are_as_large_as_its_own(tmp_path: Path, trainer: MLlib) -> None:
    """Where it is given none: it moves them by next to nothing here, and they stay within the same bounds."""
    from pyspark.ml.classification import MultilayerPerceptronClassifier

    network = Network(sizes=(12, 40, 3))
    asked = spec("mllib", network=network)
    application = SparkApplication.shared(asked.resources, surroundings(tmp_path / "session"))
    rows = _rows(application, application.master.rows(asked, packed(tmp_path)))
    its_own = MultilayerPerceptronClassifier(layers=[12, 40, 3], solver="gd", maxIter=1, stepSize=1e-9, seed=5)
    found = unflatten(network, its_own.fit(rows).weights.toArray())
    for ours, theirs in zip(initial_weights(network, 5, drawn="mllib"), found, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            bound = 2.4 / np.sqrt(ours[0].shape[1])
            assert np.abs(other).max() <= bound * (1 + 1e-6)
            assert np.abs(one).max() <= bound
    first, theirs_first = initial_weights(network, 5, drawn="mllib")[0][0], found[0][0]
    assert theirs_first.std() == pytest.approx(first.std(), rel=0.15), "480 of each"


@pytest.mark.spark
def test_rows_that_do_not_divide_lose_none(tmp_path: Path, trainer: MLlib) -> None:
    data = packed(tmp_path, train_rows=401)
    resources = replace(spec("mllib").resources, partitions=3)
    epochs = list(trainer.train(spec("mllib", resources=resources), data))
    assert {epoch.samples for epoch in epochs} == {401}


@pytest.mark.spark
@pytest.mark.parametrize(
    "failures",
    [
        pytest.param("1", id="at once"),  # Spark would try four executors
        pytest.param("1000", id="at last"),  # as where some of its tasks are done before the next executor is gone
    ],
)
def test_a_heap_that_is_too_small_is_one_sentence_with_an_amount_to_try(tmp_path: Path, failures: str) -> None:
    """FAULTS 26. The least heap that Spark takes, and rows that do not fit into it."""
    data = packed(tmp_path / "data", train_rows=60_000, test_rows=10, columns=784, row_group_rows=8_000)
    resources = Resources(executors=1, cores=2, memory_mib=450, partitions=2, deploy_mode="client")
    trial = spec("mllib", resources=resources, network=Network(sizes=(784, 64, 3)), epochs=2)
    made = MLlib(surroundings(tmp_path / "session", spark_conf={"spark.task.maxFailures": failures}))
    with pytest.raises(TrialError, match=r"executor \d ran out of memory: memory_mib = 450 .* try memory_mib = 768"):
        list(made.train(trial, data))
    assert SparkApplication._shared is None


@pytest.mark.spark
def test_weights_come_by_a_file_as_they_are_in_the_jvm(tmp_path: Path, trainer: MLlib) -> None:
    list(trainer.train(spec("mllib"), packed(tmp_path)))
    values = [0.1, -0.0, math.inf, math.nan, 5e-324, -1.7976931348623157e308]
    context = SparkContext._active_spark_context
    assert context is not None
    array = context._gateway.new_array(context._jvm.double, len(values))  # type: ignore[union-attr]
    for place, value in enumerate(values):
        array[place] = value
    (tmp_path / "folder").mkdir()
    found = doubles(array, jvm=context._jvm, folder=tmp_path / "folder")
    assert found.tobytes() == np.array(values).tobytes()
    assert not list((tmp_path / "folder").iterdir())
