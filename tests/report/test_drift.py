"""A drift over the run is found, told from chance, and is that of least squares with a level for each configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from models.outcome import Outcome
from report.drift import drift, sentence
from report.merge import records_table
from report.page import summary
from report.trials import trials
from tests.report.made import BASELINE, QUICK, RUN, Made, outcomes, torch, with_records


def attempts(found: Sequence[Outcome]) -> pl.DataFrame:
    return trials(pl.DataFrame(records_table(found)))


def growing(found: Sequence[Outcome], share: float) -> list[Outcome]:
    """The last trial takes so much longer than it would have as the first."""
    last = len(found) - 1
    return [
        replace(
            each,
            records=tuple(
                replace(record, seconds=record.seconds and record.seconds * (1 + share * each.position / last))
                for record in each.records
            ),
        )
        for each in found
    ]


def test_it_is_least_squares_with_a_level_for_each_configuration() -> None:
    frame = attempts(growing(outcomes(trials=5, noise=0.03), 0.05)).filter(pl.col("seconds").is_not_null())
    found = drift(frame)
    configurations = frame["configuration"].to_numpy()
    levels = (configurations[:, None] == np.unique(configurations)[None, :]).astype(float)
    seconds = frame["seconds"].to_numpy()
    relative = seconds / (levels @ (levels.T @ seconds / levels.sum(axis=0))) - 1
    columns = np.column_stack([np.arange(len(seconds)), levels])
    coefficients, rest, *_ = np.linalg.lstsq(columns, relative, rcond=None)
    degrees = len(seconds) - columns.shape[1]
    error = np.sqrt(rest[0] / degrees * np.linalg.inv(columns.T @ columns)[0, 0])
    assert found is not None
    assert found.per_trial == pytest.approx(coefficients[0])
    assert found.p == pytest.approx(2 * stats.t.sf(abs(coefficients[0]) / error, degrees))
    half = stats.t.ppf(0.975, degrees) * error * (len(seconds) - 1)
    assert (found.low, found.high) == pytest.approx((found.whole - half, found.whole + half))


def test_of_one_configuration_it_is_scipys_line() -> None:
    frame = attempts(outcomes([torch(1, 0.5)], trials=9, noise=0.03))
    seconds = frame["seconds"].to_numpy()
    found, expected = drift(frame), stats.linregress(np.arange(9), seconds / seconds.mean())
    assert found is not None
    assert (found.per_trial, found.p) == pytest.approx((expected.slope, expected.pvalue))


def test_later_trials_that_are_slower_are_said_to_be() -> None:
    found = summary(records_table(growing(outcomes(trials=7), 0.2)), run=RUN, baseline=BASELINE)["drift"]
    assert found["whole"] == pytest.approx(0.2, abs=0.04)
    assert found["p"] < 1e-6
    assert sentence(drift(attempts(growing(outcomes(trials=7), 0.2)))).endswith("p < 0.0001: later trials are slower.")
    assert "later trials are faster." in sentence(drift(attempts(growing(outcomes(trials=7), -0.2))))


def test_no_drift_is_called_one_no_more_often_than_stated() -> None:
    ps = [drift(attempts(outcomes(trials=4, epochs=2, seed=seed))) for seed in range(200)]
    assert sum(each is not None and each.p < 0.05 for each in ps) <= 21
    assert "no drift can be told from chance" in sentence(max((p for p in ps if p), key=lambda each: each.p))


@pytest.mark.parametrize("made", [QUICK, [torch(1, 0.5)]])
def test_one_trial_each_says_nothing(made: Sequence[Made]) -> None:
    assert drift(attempts(outcomes(made, trials=1))) is None
    assert sentence(None) == "Whether they drifted cannot be said: that takes more repeats."


def test_without_any_variance_it_is_flat() -> None:
    found = drift(attempts(outcomes(noise=0.0)))
    assert found is not None
    assert (found.whole, found.p) == (0.0, 1.0)


def test_what_has_no_place_in_the_order_is_left_out() -> None:
    assert drift(attempts([with_records(each, started_at=None) for each in outcomes(trials=5)])) is None
