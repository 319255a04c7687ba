"""Shares by speed: rows leave an executor that is slow for real."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from bench.slowed import slowed
from models.ranks.worker import Told
from models.spark_application import SparkApplication
from models.spec import Network
from tests.models import reference
from tests.models.made import packed, spec, surroundings
from tests.models.ranks.test_torch_spark_faults import errand, ranks, run, staged

pytestmark = pytest.mark.spark

ROWS = 40_000
NETWORK = Network(sizes=(200, 64, 3))  # an epoch takes some turns of the slow one
EPOCHS = 24


def test_rows_move_away_from_an_executor_that_is_slow(tmp_path: Path) -> None:
    data = packed(tmp_path / "packed", train_rows=ROWS, row_group_rows=4_000, columns=NETWORK.inputs)
    trial = spec("torch-spark", epochs=EPOCHS, precision="float64", network=NETWORK)
    trial = replace(trial, resources=replace(trial.resources, balance="speed"))
    told: list[Told] = []
    try:
        application = SparkApplication.shared(trial.resources, surroundings(tmp_path / "session"))
        with application.listener() as listener:
            given, _ = errand(data, listener)
            stage = run(staged(application), (replace(given, spec=trial), listener))
            told += [next(stage), next(stage)]  # both are ready
            slow = ranks()[:1]
            with slowed(lambda: slow, stopped=0.01, running=0.005):
                told += stage
    finally:
        SparkApplication.end_shared()
    epochs = [each for each in told if each.kind == "epoch"]
    rows = [[clocks.rows for clocks in each.clocks] for each in epochs]
    assert {sum(each) for each in rows} == {ROWS}
    later = [statistics.median(each[rank] for each in rows[EPOCHS // 2 :]) for rank in range(2)]
    slow = later.index(min(later))
    assert later[slow] < 0.45 * ROWS, rows
    assert later[slow] < rows[0][slow] - 0.03 * ROWS, "not only by what was probed before the first epoch"
    assert [each.loss for each in epochs] == pytest.approx(reference.losses(trial, data), rel=1e-9)
