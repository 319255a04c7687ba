"""Predictions against a sweep that ran: how far off the models are on what they have not seen.

tests/data/sweep/epochs.parquet has the records of the run that docs/findings.md names.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import polars as pl
import pytest

from report.predictions import Series, all_series
from report.trials import trials

SWEEP = Path(__file__).parent.parent / "data" / "sweep" / "epochs.parquet"
MOST = 0.15


@pytest.fixture(scope="module")
def recorded() -> list[Series]:
    return all_series(trials(pl.read_parquet(SWEEP)))


def test_each_platform_of_it_has_a_model(recorded: list[Series]) -> None:
    assert {series.of["platform"] for series in recorded} == {"torch-cpu", "mllib", "torch-spark"}
    for series in recorded:
        assert series.model is not None, series.refusal
        assert len(series.held_out) == len(series.points)


def test_half_of_what_is_held_out_is_met_within_15_percent(recorded: list[Series]) -> None:
    assert median(each.error for series in recorded for each in series.held_out) <= MOST
    for series in recorded:
        assert series.error <= MOST, series.of["platform"]
