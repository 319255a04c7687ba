"""Analyses of variance against published worked examples, and against scipy called directly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from report.variance import variance

# Dried weight of plants (Dobson 1983), as R ships it; R's documentation and textbooks give what oneway.test says of it.
CONTROL = [4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14]
FIRST = [4.81, 4.17, 4.41, 3.59, 5.87, 3.83, 6.03, 4.89, 4.32, 4.69]
SECOND = [6.31, 5.12, 5.54, 5.50, 5.37, 5.29, 4.92, 6.15, 5.80, 5.26]
PLANTS = [CONTROL, FIRST, SECOND]
# Groups of unequal sizes and spreads.
UNEQUAL = [[1.0, 1.01, 0.99, 1.02, 1.0, 0.98], [1.1, 1.5, 0.7, 1.9, 0.3], [1.2, 1.25, 1.15, 1.21, 1.3, 1.1, 1.22]]


def by_the_formula(groups: list[list[float]]) -> tuple[float, float, float]:
    """Welch 1951, On the comparison of several mean values: F, the degrees of its denominator, and p."""
    k, n = len(groups), np.array([len(each) for each in groups])
    means, weights = np.array([np.mean(each) for each in groups]), n / np.array([np.var(g, ddof=1) for g in groups])
    centre = (weights * means).sum() / weights.sum()
    rest = ((1 - weights / weights.sum()) ** 2 / (n - 1)).sum()
    f = (weights * (means - centre) ** 2).sum() / (k - 1) / (1 + 2 * (k - 2) / (k**2 - 1) * rest)
    degrees = (k**2 - 1) / (3 * rest)
    return f, degrees, float(stats.f.sf(f, k - 1, degrees))


def test_the_published_plain_example() -> None:
    """aov(weight ~ group): F 4.846 with 2 and 27 degrees, p 0.0159, sums of squares 3.766 and 10.492."""
    found = variance(PLANTS)
    assert (found.name, found.between, found.within) == ("anova", 2, 27)
    assert found.f == pytest.approx(4.846, abs=5e-4)
    assert found.p == pytest.approx(0.0159, abs=5e-5)
    assert found.eta_squared == pytest.approx(3.76634 / (3.76634 + 10.49209), abs=1e-5)
    assert found.omega_squared == pytest.approx((3.76634 - 2 * 0.3886) / (14.25843 + 0.3886), abs=1e-4)
    assert found.spread_p == pytest.approx(stats.levene(*PLANTS, center="median").pvalue)


def test_the_published_example_of_welchs(monkeypatch: pytest.MonkeyPatch) -> None:
    """oneway.test(weight ~ group): F 5.181 with 2 and 17.128 degrees, p 0.01739. Spreads are alike, so ask."""
    monkeypatch.setattr("report.variance.LEVEL", 1.0)
    found = variance(PLANTS)
    assert (found.name, found.between) == ("welch_anova", 2)
    assert found.f == pytest.approx(5.181, abs=5e-4)
    assert found.within == pytest.approx(17.128, abs=5e-4)
    assert found.p == pytest.approx(0.01739, abs=5e-6)


def test_where_spreads_differ_it_is_welchs_by_his_formula() -> None:
    found = variance(UNEQUAL)
    assert found.name == "welch_anova"
    assert found.spread_p is not None
    assert found.spread_p < 0.05
    assert (found.f, found.within, found.p) == pytest.approx(by_the_formula(UNEQUAL))


def test_of_two_groups_f_is_the_square_of_t() -> None:
    for groups, equal in ((UNEQUAL[:2], False), (PLANTS[:2], True)):
        found, expected = variance(groups), stats.ttest_ind(*groups, equal_var=equal)
        assert found.name == ("anova" if equal else "welch_anova")
        assert found.f == pytest.approx(expected.statistic**2)
        assert found.p == pytest.approx(expected.pvalue)
        assert found.within == pytest.approx(expected.df)


def test_where_spreads_do_not_differ_it_is_scipys_plain_one() -> None:
    found, expected = variance(PLANTS), stats.f_oneway(*PLANTS)
    assert (found.f, found.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_two_trials_each_say_nothing_of_their_spread() -> None:
    groups = [[1.0, 1.2], [2.0, 2.1], [3.0, 3.4]]
    found = variance(groups)
    assert (found.name, found.spread_p) == ("anova", None)
    assert found.p == pytest.approx(stats.f_oneway(*groups).pvalue)


def test_one_trial_each_is_no_test() -> None:
    found = variance([[1.0], [2.0], [3.0]])
    assert (found.p, found.f, found.eta_squared, found.omega_squared) == (None, None, None, None)
    assert variance([[1.0, 2.0]]).p is None


def test_without_any_variance_the_means_are_known() -> None:
    assert variance([[1.0] * 3, [1.0] * 4]).p == 1.0
    differ = variance([[1.0] * 3, [2.0] * 4])
    assert (differ.p, differ.eta_squared) == (0.0, 1.0)


def test_a_group_without_variance_among_others_does_not_break_it() -> None:
    groups = [[1.0] * 5, [1.0, 1.5, 0.7, 1.9, 0.3], [2.0, 2.1, 2.2, 2.1, 2.0]]
    found = variance(groups)
    assert found.name == "anova"
    assert found.p == pytest.approx(stats.f_oneway(*groups).pvalue)


def test_less_than_chance_is_a_share_of_nothing() -> None:
    found = variance([[1.0, 2.0, 3.0], [1.1, 2.0, 2.9]])
    assert found.omega_squared == 0.0
    assert found.p is not None
    assert found.p > 0.9
