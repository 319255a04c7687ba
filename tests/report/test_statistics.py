"""The report's statistics against scipy called directly, and against examples worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from report.effects import welch
from report.statistics import Sample, call, holm, interval, outliers, ratio, welch_less

A, B = [1.0, 1.1, 1.2], [2.0, 2.3, 2.1, 2.2]
values = st.lists(st.floats(0.1, 100), min_size=2, max_size=9)


def test_the_interval_is_students() -> None:
    low, high = interval(np.mean(B), np.std(B, ddof=1), len(B))
    expected = stats.t.interval(0.95, len(B) - 1, loc=np.mean(B), scale=stats.sem(B))
    assert (float(low), float(high)) == pytest.approx(expected)


def test_the_interval_by_hand() -> None:
    """Three trials of 1.0, 1.1, 1.2: deviation 0.1, t of two degrees 4.3027, so 4.3027 x 0.1 / sqrt(3) = 0.2484."""
    sample = Sample.of(A)
    low, high = interval(sample.mean, sample.deviation, sample.n)
    assert float(high) - 1.1 == pytest.approx(0.2484, abs=1e-4)
    assert 1.1 - float(low) == pytest.approx(0.2484, abs=1e-4)


def test_one_value_has_no_interval_and_equal_ones_have_one_of_width_zero() -> None:
    low, high = interval([2.0, 2.0], [0.0, 0.0], [1, 3])
    assert np.isnan([low[0], high[0]]).all()
    assert (low[1], high[1]) == (2.0, 2.0)


@given(values, values)
def test_welch_is_scipys_for_unequal_numbers_of_trials(left: list[float], right: list[float]) -> None:
    if np.std(left) < 1e-3 or np.std(right) < 1e-3:
        return
    t, degrees, p = welch_less([Sample.of(left)], [Sample.of(right)])
    expected = stats.ttest_ind(left, right, equal_var=False, alternative="less")
    assert t[0] == pytest.approx(expected.statistic, rel=1e-6, abs=1e-9)
    assert degrees[0] == pytest.approx(expected.df, rel=1e-6)
    assert p[0] == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)


def test_welch_without_variance_and_without_repeats() -> None:
    known, other = Sample.of([1.0, 1.0]), Sample.of([2.0, 2.0, 2.0])
    _, _, p = welch_less([known, other, known, Sample.of([1.0])], [other, known, known, other])
    assert list(p[:3]) == [0.0, 1.0, 1.0]
    assert math.isnan(p[3])


def test_welch_where_one_side_has_no_variance() -> None:
    _, _, p = welch_less([Sample.of([1.0, 1.0, 1.0])], [Sample.of(B)])
    mean, deviation = np.mean(B), np.std(B, ddof=1)
    expected = stats.ttest_ind_from_stats(1.0, 0.0, 3, mean, deviation, 4, equal_var=False, alternative="less")
    assert p[0] == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e60])
def test_the_size_of_values_is_none_of_a_tests_matter(scale: float) -> None:
    """Squares of the least of these variances are nothing."""
    left, right = Sample.of([scale * each for each in A]), Sample.of([scale * each for each in B])
    plain_left, plain_right = Sample.of(A), Sample.of(B)
    _, freedom, p = welch_less([left], [right])
    _, wanted, plain_p = welch_less([plain_left], [plain_right])
    assert (freedom[0], p[0]) == pytest.approx((wanted[0], plain_p[0]))
    found, plain = ratio(left, right), ratio(plain_left, plain_right)
    assert found.value == pytest.approx(plain.value)
    assert welch(left, right).degrees == pytest.approx(wanted[0])


def test_holm_by_hand() -> None:
    """0.01 x 3, 0.02 x 2, 0.04 x 1, each at least the one before."""
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, 0.6]) == pytest.approx([1.0, 1.0])
    assert len(holm([])) == 0


def test_holm_leaves_out_what_was_not_tested() -> None:
    corrected = holm([0.01, float("nan"), 0.04])
    assert corrected[[0, 2]] == pytest.approx([0.02, 0.04])
    assert math.isnan(corrected[1])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_makes_a_p_smaller_and_keeps_their_order(p: list[float]) -> None:
    corrected = holm(p)
    assert (corrected >= np.array(p) - 1e-15).all()
    assert (corrected <= 1).all()
    assert (np.diff(corrected[np.argsort(p, kind="stable")]) >= 0).all()


@pytest.mark.parametrize(
    ("left", "right", "p", "said"),
    [
        (1.0, 2.0, 0.01, "beats"),
        (1.0, 2.0, 0.05, "does not"),
        (1.99, 2.0, 0.001, "too little"),
        (2.0, 1.0, 1.0, "does not"),
        (1.0, 2.0, float("nan"), "plain faster"),
        (1.99, 2.0, float("nan"), "plain slower"),
    ],
)
def test_what_may_be_said(left: float, right: float, p: float, said: str) -> None:
    sample = [Sample(mean=mean, deviation=0.1, n=3) for mean in (left, right)]
    assert call(*sample, p) == said


def test_fiellers_limits_are_where_the_test_of_the_ratio_turns() -> None:
    """At each limit r, a - r b is exactly t standard errors from zero."""
    left, right = Sample.of(B), Sample.of(A)
    found = ratio(left, right)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high
    va, vb = np.var(B, ddof=1) / 4, np.var(A, ddof=1) / 3
    degrees = (va + found.value**2 * vb) ** 2 / (va**2 / 3 + (found.value**2 * vb) ** 2 / 2)
    for limit in (found.low, found.high):
        distance = abs(np.mean(B) - limit * np.mean(A)) / math.sqrt(va + limit**2 * vb)
        assert distance == pytest.approx(stats.t.ppf(0.975, degrees))


def test_fieller_covers_the_true_ratio_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    covered = 0
    for _ in range(1000):
        found = ratio(Sample.of(generator.normal(6, 0.3, 3)), Sample.of(generator.normal(1, 0.03, 3)))
        covered += found.low is not None and found.high is not None and found.low <= 6 <= found.high
    assert 925 <= covered <= 985


def test_a_ratio_without_an_interval() -> None:
    assert ratio(Sample.of([2.0]), Sample.of(A)).low is None
    exact = ratio(Sample.of([2.0, 2.0]), Sample.of([1.0, 1.0]))
    assert (exact.value, exact.low, exact.high) == (2.0, 2.0, 2.0)
    # A denominator that may be zero bounds nothing.
    assert ratio(Sample.of(A), Sample.of([0.1, 3.0])).high is None


def test_an_outlier_is_named_from_five_trials_on() -> None:
    assert outliers([1.0, 1.01, 0.99, 1.02, 3.0]) == [False] * 4 + [True]
    assert outliers([1.0, 1.01, 0.99, 3.0]) == [False] * 4
    assert outliers([1.0] * 6) == [False] * 6
    assert outliers([]) == []


def test_the_chance_of_a_false_claim_is_the_one_stated() -> None:
    """4,000 comparisons of equals: a one-sided 5 % test errs in 200, give or take 3.5 deviations of 14."""
    generator = np.random.default_rng(0)
    left, right = ([Sample.of(row) for row in generator.normal(1, 0.05, (4000, 5))] for _ in range(2))
    _, _, p = welch_less(left, right)
    assert 151 <= int((p < 0.05).sum()) <= 249
