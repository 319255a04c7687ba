"""Shares by speed: rows leave an executor that is slow for real."""

from __future__ import annotations

import statistics
from contextlib import closing
from dataclasses import replace
from itertools import islice
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
SETTLED, EPOCHS = 24, 400  # until what was probed before the first epoch no longer counts; until rows must have moved
MOVED = 0.15  # of all rows: much less than stand to be moved, and much more than one epoch's noise


def test_rows_move_away_from_an_executor_that_is_slow(tmp_path: Path) -> None:
    """First from one, then from the other."""
    data = packed(tmp_path / "packed", train_rows=ROWS, row_group_rows=4_000, columns=NETWORK.inputs)
    trial = spec("torch-spark", epochs=EPOCHS, precision="float64", network=NETWORK)
    trial = replace(trial, resources=replace(trial.resources, balance="speed"))
    epochs: list[Told] = []
    try:
        application = SparkApplication.shared(trial.resources, surroundings(tmp_path / "session"))
        with application.listener() as listener:
            given, _ = errand(data, listener)
            with closing(run(staged(application), (replace(given, spec=trial), listener))) as stage:
                assert [next(stage).kind, next(stage).kind] == ["ready", "ready"]
                one, other = ranks()
                with slowed(lambda: [one], stopped=0.01, running=0.005):
                    epochs += islice(stage, SETTLED)
                before = share(epochs[-SETTLED // 2 :])
                with slowed(lambda: [other], stopped=0.01, running=0.005):
                    for told in stage:
                        epochs.append(told)
                        if abs(share(epochs[-3:]) - before) > MOVED:
                            break
    finally:
        SparkApplication.end_shared()
    rows = [[clocks.rows for clocks in each.clocks] for each in epochs]
    assert {sum(each) for each in rows} == {ROWS}
    assert len(epochs) < EPOCHS, rows
    # Who had less was slower.
    fewer, more = sorted(range(2), key=lambda rank: rows[SETTLED - 1][rank])
    assert speed(epochs[SETTLED // 2 : SETTLED], fewer) < speed(epochs[SETTLED // 2 : SETTLED], more)
    assert [each.loss for each in epochs] == pytest.approx(reference.losses(trial, data)[: len(epochs)], rel=1e-9)


def share(epochs: list[Told]) -> float:
    """Of the first rank, of all rows."""
    return statistics.median(each.clocks[0].rows for each in epochs) / ROWS


def speed(epochs: list[Told], rank: int) -> float:
    """Rows a second."""
    return statistics.median(each.clocks[rank].rows / each.clocks[rank].compute for each in epochs)
