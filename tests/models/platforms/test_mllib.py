"""What only MLlib has: epochs read from Spark's event log, held against its objective history and both clocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.ledger import Job
from models.platforms.mllib import BLOCK_ROWS, Fit, MLlib, _disagreement, _epochs, block_rows
from models.protocol import Epoch
from models.spec import Resources
from store.errors import TrialError
from tests.models.made import packed, spec, surroundings

PASS = "treeAggregate at LBFGS.scala:261"
BLAS = {"VectorBLAS", "JNIBLAS", "ForeignLinkerBLAS", "Java11BLAS", "F2jBLAS"}


def passes(*spans: tuple[float, float]) -> list[Job]:
    """Gradient passes by when they began and ended."""
    return [
        Job(number=number, name=PASS, group="g", began=began, ended=ended, cpu_seconds=1.0)
        for number, (began, ended) in enumerate(spans)
    ]


def fit(losses: int, *, began: float = 0.0, ended: float = 10.0, seconds: float = 10.0) -> Fit:
    return Fit(seconds=seconds, began=began, ended=ended, losses=[1.0] * losses, weights=np.zeros(1))


GD = spec("mllib")
L_BFGS = spec("mllib", solver="l-bfgs", learning_rate=None)


def test_a_gd_epoch_ends_where_the_next_pass_begins() -> None:
    spans = list(_epochs(GD, passes((1, 2), (2.5, 3), (3.25, 4)), fit(3), told=[]))
    assert [(span.seconds, span.passes, span.clock) for span in spans] == [(1.5, 1, "eventlog"), (0.75, 1, "eventlog")]


def test_gd_with_another_number_of_passes_is_refused() -> None:
    with pytest.raises(TrialError, match="2 gradient passes for 2 updates"):
        list(_epochs(GD, passes((1, 2), (2.5, 3)), fit(3), told=[]))


def test_an_l_bfgs_iteration_has_the_passes_that_it_told_of() -> None:
    jobs = passes((1, 2), (2, 3), (3.5, 4), (4, 5), (5.5, 6))
    spans = list(_epochs(L_BFGS, jobs, fit(3), told=[3.1, 6.1]))
    assert [(span.seconds, span.passes, span.clock) for span in spans] == [(2.5, 2, "eventlog"), (2.5, 3, "eventlog")]
    assert sum(span.cpu_seconds for span in spans) == 5.0


def test_without_its_word_an_l_bfgs_epoch_is_amortized_and_says_so() -> None:
    jobs = passes((1, 2), (2, 3), (3.5, 4), (4, 5), (5.5, 6))
    spans = list(_epochs(L_BFGS, jobs, fit(3), told=[]))
    assert [(span.seconds, span.passes, span.clock) for span in spans] == [(2.5, 3, "amortized"), (2.5, 2, "amortized")]


def test_two_clocks_that_disagree_are_told() -> None:
    jobs = passes((1, 2), (2, 9))
    assert _disagreement(jobs, fit(2)) is None
    assert "disagree: 10.000 s against 7.000 s" in (_disagreement(jobs, fit(2, seconds=7.0)) or "")
    assert "jobs from" in (_disagreement(passes((1, 2), (2, 11)), fit(2)) or "")


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
    assert sum(epoch.seconds for epoch in again) < math.inf


@pytest.mark.spark
def test_rows_that_do_not_divide_lose_none(tmp_path: Path, trainer: MLlib) -> None:
    data = packed(tmp_path, train_rows=401)
    resources = replace(spec("mllib").resources, partitions=3)
    epochs = list(trainer.train(spec("mllib", resources=resources), data))
    assert {epoch.samples for epoch in epochs} == {401}
