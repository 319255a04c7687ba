"""Changes in a series of runs: a planted one is found where it is, and where there is none next to none is found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import numpy as np
import pytest
from scipy import stats

from report.changes import (
    LEAST_CHANGE,
    changes,
    mann_whitney,
    newest_against,
    of_whole_runs,
    size_of,
    smallest_p,
)

SEEDS = 100
NOISE = 0.03


def runs(
    seed: int, levels: Sequence[float], *, trials: int = 5, noise: float = NOISE, mood: float = 0.0
) -> list[list[float]]:
    """`mood`: by how much whole runs differ by themselves."""
    generator = np.random.default_rng(seed)
    return [
        [float(level * math.exp(shift) * (1 + each)) for each in generator.normal(0, noise, trials)]
        for level, shift in zip(levels, generator.normal(0, mood, len(levels)), strict=True)
    ]


def places(series: Sequence[Sequence[float]]) -> list[int]:
    return [change.at for change in changes([series])[0]]


def test_a_planted_step_of_a_tenth_is_found_at_its_run() -> None:
    found = [places(runs(seed, [1.0] * 10 + [1.1] * 10)) for seed in range(SEEDS)]
    assert sum(each == [10] for each in found) >= 0.95 * SEEDS
    [change] = changes([runs(1, [1.0] * 10 + [1.1] * 10)])[0]
    assert change.size.ratio == pytest.approx(1.1, abs=0.02)
    assert change.size.low is not None
    assert change.size.low < 1.1 < (change.size.high or 0)
    assert change.p < 1e-6


@pytest.mark.parametrize("mood", [0.0, 0.05])
def test_in_an_unchanged_series_next_to_nothing_is_found(mood: float) -> None:
    """With 5 of 100 expected at most, 13 are beyond the 99.9 % bound; runs in a mood of their own are no change."""
    assert stats.binom(SEEDS, 0.05).sf(13) < 0.001
    series = [runs(seed, [1.0] * 20, noise=0.01, mood=mood) for seed in range(SEEDS)]
    assert sum(bool(places(each)) for each in series) <= 13
    newest = [newest_against(each[-11:-1], each[-1]) for each in series]
    assert sum(test.p < 0.05 and test.size.matters for test in newest) <= 13


def test_the_newest_run_alone_is_told_apart() -> None:
    found = [newest_against(each[:-1], each[-1]) for seed in range(SEEDS) for each in [runs(seed, [1.0] * 10 + [1.1])]]
    assert sum(test.p < 0.05 and test.size.ratio >= 1 + LEAST_CHANGE for test in found) >= 0.95 * SEEDS


def test_a_regression_that_returns_is_found_each_time() -> None:
    levels = [1.0] * 10 + [1.15] * 3 + [1.0] * 8 + [1.15] * 4
    found = changes([runs(3, levels)])[0]
    assert [(change.at, change.size.ratio > 1) for change in found] == [(10, True), (13, False), (21, True)]


def test_a_certain_difference_that_is_too_small_is_no_change() -> None:
    assert places(runs(0, [1.0] * 30 + [1.01] * 30, noise=0.002)) == []
    assert places(runs(0, [1.0] * 30 + [1.03] * 30, noise=0.002)) == [30]


def test_single_trials_are_pooled_over_runs() -> None:
    assert places(runs(0, [1.0] * 12 + [1.3] * 12, trials=1)) == [12]
    assert places(runs(0, [1.0] * 4 + [1.3] * 4, trials=1)) == [], "fewer than five values on a side"


def test_equal_values_and_few_runs_hold_no_change() -> None:
    assert changes([[], [[1.0]], [[1.0] * 5, [1.0] * 5], [[1.0], [2.0]]]) == [[], [], [], []]


def test_p_is_that_of_scipy_called_directly() -> None:
    earlier, newest = runs(5, [1.0] * 4), runs(6, [1.05])[0]
    pooled = [value for run in earlier for value in run]
    test = newest_against(earlier, newest)
    assert test.trials == stats.mannwhitneyu(newest, pooled, alternative="two-sided").pvalue
    means = np.log([np.mean(run) for run in earlier])
    expected = stats.ttest_ind(means, [np.log(np.mean(newest))]).pvalue
    assert test.runs == pytest.approx(expected, rel=1e-12)
    assert test.p == max(test.trials, test.runs)


def test_how_much_runs_differ_is_not_known_from_two() -> None:
    a, b, c, d = runs(1, [1.0] * 4)
    assert of_whole_runs([a], [b]) is None
    assert of_whole_runs([a, b], [c]) is None
    assert of_whole_runs([a, b, c], [d]) is not None
    assert of_whole_runs([[1.0], [1.0], [1.0]], [[1.0]]) == 1.0
    assert of_whole_runs([[1.0], [1.0], [1.0]], [[1.1]]) == 0.0


@pytest.mark.parametrize(("n", "m"), [(3, 3), (3, 15), (5, 5), (1, 39)])
def test_the_smallest_p_is_that_of_sides_that_do_not_meet(n: int, m: int) -> None:
    assert mann_whitney(list(range(m)), list(range(100, 100 + n))) == pytest.approx(smallest_p(m, n))


def test_too_few_trials_are_known_to_be_too_few() -> None:
    assert not newest_against([[1.0, 1.1, 1.2]], [2.0, 2.1, 2.2]).can_tell, "2 of 20 orders: p = 0.1"
    assert newest_against([[1.0, 1.1, 1.2, 1.3, 1.4]], [2.0, 2.1, 2.2, 2.3, 2.4]).can_tell, "2 of 252"


def test_the_size_is_the_median_of_all_ratios() -> None:
    """By hand: 2, 4, 1, 2, 2/3, 4/3 in order are 2/3, 1, 4/3, 2, 2, 4, whose middle is sqrt(4/3 x 2)."""
    size = size_of([1.0, 2.0, 3.0], [2.0, 4.0])
    assert size.ratio == pytest.approx(math.sqrt(8 / 3))
    assert (size.low, size.high) == (None, None), "six ratios are too few for 95 %"
    earlier, later = runs(1, [1.0])[0], runs(2, [1.1])[0]
    size = size_of(earlier, later)
    ratios = sorted(b / a for a in earlier for b in later)
    assert size.ratio == pytest.approx(median(ratios))
    assert (size.low, size.high) == (ratios[2], ratios[22]), "the third from each end: 12.5 - 1.96 x 4.79 = 3.1"


def test_the_interval_of_the_size_holds_the_truth_as_often_as_it_says() -> None:
    hit = 0
    for seed in range(400):
        earlier, later = runs(seed, [1.0, 1.1], trials=7)
        size = size_of(earlier, later)
        assert size.low is not None
        assert size.high is not None
        hit += size.low <= 1.1 <= size.high
    assert hit >= 0.93 * 400
