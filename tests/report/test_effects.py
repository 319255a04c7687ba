"""Sizes of differences against scipy called directly, and defined where nothing varies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from report.effects import hedges, in_percent, in_points, welch
from report.statistics import Sample, ratio

A, B = [0.90, 0.92, 0.91], [0.93, 0.96, 0.94, 0.97]
EQUAL, OTHER = [0.3] * 3, [0.4] * 4
values = st.lists(st.floats(0.1, 100), min_size=2, max_size=9)


@given(values, values)
def test_welch_in_both_directions_is_scipys(left: list[float], right: list[float]) -> None:
    if np.std(left) < 1e-3 or np.std(right) < 1e-3:
        return
    found = welch(Sample.of(left), Sample.of(right))
    expected = stats.ttest_ind(left, right, equal_var=False)
    assert found.t == pytest.approx(expected.statistic, rel=1e-6, abs=1e-9)
    assert found.degrees == pytest.approx(expected.df, rel=1e-6)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)


def test_welch_where_nothing_varies_or_repeats() -> None:
    """Three times 0.3 has a mean that is not quite 0.3."""
    assert welch(Sample.of(EQUAL), Sample.of([0.3] * 7)).p == 1.0
    assert welch(Sample.of(EQUAL), Sample.of(OTHER)).p == 0.0
    assert welch(Sample.of([0.3]), Sample.of(OTHER)).p is None


def test_hedges_g_is_students_t_freed_of_its_sizes_and_its_bias() -> None:
    """Cohen's d is t sqrt(1/a + 1/b); the correction is 1 - 3 / (4 degrees - 1), but for 0.2 %."""
    t = stats.ttest_ind(A, B).statistic
    d = t * np.sqrt(1 / 3 + 1 / 4)
    found = hedges(Sample.of(A), Sample.of(B))
    assert found == pytest.approx(d * special.gamma(2.5) / (np.sqrt(2.5) * special.gamma(2)))
    assert found == pytest.approx(d * (1 - 3 / (4 * 5 - 1)), rel=2e-3)


def test_hedges_g_by_hand() -> None:
    """Means 2 and 4, deviations 1: d is -2, and with 4 degrees the exact correction is 0.7979."""
    assert hedges(Sample.of([1.0, 2.0, 3.0]), Sample.of([3.0, 4.0, 5.0])) == pytest.approx(-2 * 0.7979, abs=1e-4)


def test_without_a_deviation_there_is_no_standard() -> None:
    assert hedges(Sample.of(EQUAL), Sample.of(OTHER)) is None
    assert hedges(Sample.of([0.3]), Sample.of(B)) is None


def test_a_difference_in_percent_has_fiellers_interval() -> None:
    found, whole = in_percent(Sample.of(A), Sample.of(B)), ratio(Sample.of(A), Sample.of(B))
    assert found is not None
    assert found.value == pytest.approx(100 * (np.mean(A) / np.mean(B) - 1))
    assert found.low == pytest.approx(100 * ((whole.low or 0) - 1))
    assert found.high == pytest.approx(100 * ((whole.high or 0) - 1))
    assert in_percent(Sample.of(A), Sample.of([0.0, 0.0])) is None


def test_a_difference_in_points_has_welchs_interval() -> None:
    found = in_points(Sample.of(A), Sample.of(B))
    expected = stats.ttest_ind(A, B, equal_var=False).confidence_interval()
    assert (found.low, found.high) == pytest.approx((100 * expected.low, 100 * expected.high))
    exact = in_points(Sample.of(EQUAL), Sample.of(OTHER))
    assert (exact.low, exact.high) == pytest.approx((-10.0, -10.0))
    assert in_points(Sample.of([0.3]), Sample.of(B)).low is None
