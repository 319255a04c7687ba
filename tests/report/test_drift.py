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
from report.figure_order import slope
from report.merge import records_table
from report.page import summary
from report.trials import trials
from tests.report.made import BASELINE, QUICK, RUN, Made, outcomes, torch, with_records


def attempts(found: Sequence[Outcome]) -> pl.DataFrame:
    return trials(pl.DataFrame(records_table(found)))


def attempts_of(*runs: Sequence[Outcome]) -> pl.DataFrame:
    """As a merge has them, one run behind the other."""
    parts = [[with_records(each, run_id=f"run {n}") for each in run] for n, run in enumerate(runs)]
    return trials(pl.concat([pl.DataFrame(records_table(part)) for part in parts]))


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


def test_of_merged_runs_the_length_is_that_of_the_longest() -> None:
    one = growing(outcomes(trials=5, noise=0.0), 0.2)
    short = growing(outcomes(trials=3, noise=0.0), 0.1)
    alone, merged = drift(attempts(one)), drift(attempts_of(one, one, one))
    assert alone is not None
    assert merged is not None
    assert (merged.per_trial, merged.whole) == pytest.approx((alone.per_trial, alone.whole))
    assert (merged.high - merged.low) < (alone.high - alone.low), "of three times as many trials"
    mixed = drift(attempts_of(short, one))
    assert mixed is not None
    assert mixed.whole / mixed.per_trial == pytest.approx(alone.whole / alone.per_trial)


def test_the_line_of_the_figure_begins_anew_with_each_run() -> None:
    made = growing(outcomes([torch(1, 0.5)], trials=5, noise=0.001), 0.2)
    frame = attempts_of(made, made)
    found, positions = drift(frame), frame.select("run_id", position=pl.int_range(1, pl.len() + 1))
    assert found is not None
    ends = slope(found, positions)
    assert [(end["run"], end["position"]) for end in ends] == [("run 0", 1), ("run 0", 5), ("run 1", 6), ("run 1", 10)]
    assert [ends[0]["deviation"], ends[1]["deviation"]] == pytest.approx([-50 * found.whole, 50 * found.whole])
    assert [end["deviation"] for end in ends[:2]] == pytest.approx([end["deviation"] for end in ends[2:]])


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
