"""Analysis of variance over the trials of several settings: Welch's where their variances differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from report.statistics import LEVEL, Floats

# Below three values a group's distances from its median are equal, and say nothing of its variance.
SPREAD_LEAST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance:
    """What an analysis of variance found; None where it can't be said."""

    name: str  # anova | welch_anova
    f: float | None
    between: float  # degrees of freedom
    within: float | None
    p: float | None
    eta_squared: float | None  # the settings' share of the variance of these trials
    omega_squared: float | None  # the same for all trials that might have been
    spread_p: float | None  # of Brown and Forsythe's test that the variances are equal


def variance(groups: Sequence[Sequence[float]]) -> Variance:
    """Of groups of trials, a group for each setting."""
    arrays = [np.asarray(group, np.float64) for group in groups]
    k, n = len(arrays), sum(map(len, arrays))
    eta, omega = _shares(arrays)
    if k < 2 or n <= k:
        return Variance(
            name="anova", f=None, between=k - 1, within=None, p=None, eta_squared=None, omega_squared=None,
            spread_p=None,
        )  # fmt: skip
    spreads = [float(np.ptp(each)) for each in arrays]
    if max(spreads) == 0:
        p = float(len({float(each[0]) for each in arrays}) == 1)
        return Variance(
            name="anova", f=None, between=k - 1, within=n - k, p=p, eta_squared=eta, omega_squared=omega, spread_p=None
        )
    spread_p = _equal_spread(arrays)
    # Welch's weighs a group by its variance, which must not be zero.
    differ = spread_p is not None and spread_p < LEVEL and min(spreads) > 0
    found = stats.f_oneway(*arrays, equal_var=not differ)
    within = _welch_degrees(arrays) if differ else float(n - k)
    return Variance(
        name="welch_anova" if differ else "anova",
        f=float(found.statistic),
        between=k - 1,
        within=within,
        p=float(found.pvalue),
        eta_squared=eta,
        omega_squared=omega,
        spread_p=spread_p,
    )


def _equal_spread(arrays: Sequence[Floats]) -> float | None:
    """Brown and Forsythe's p, which is Levene's about medians."""
    if min(map(len, arrays)) < SPREAD_LEAST:
        return None
    distances = [np.abs(each - np.median(each)) for each in arrays]
    if max(float(np.ptp(each)) for each in distances) == 0:
        return None
    return float(stats.levene(*arrays, center="median").pvalue)


def _welch_degrees(arrays: Sequence[Floats]) -> float:
    """Of the denominator (Welch 1951)."""
    sizes = np.array([len(each) for each in arrays], np.float64)
    weights = sizes / np.array([each.var(ddof=1) for each in arrays])
    rest = ((1 - weights / weights.sum()) ** 2 / (sizes - 1)).sum()
    return float((len(arrays) ** 2 - 1) / (3 * rest))


def _shares(arrays: Sequence[Floats]) -> tuple[float | None, float | None]:
    """Eta and omega squared, by sums of squares."""
    whole = np.concatenate(arrays) if arrays else np.empty(0)
    k, n = len(arrays), len(whole)
    if k < 2 or n <= k:
        return None, None
    total = float(((whole - whole.mean()) ** 2).sum())
    if total == 0:
        return None, None
    within = float(sum(((each - each.mean()) ** 2).sum() for each in arrays))
    mean_within = within / (n - k)
    eta = (total - within) / total
    omega = (total - within - (k - 1) * mean_within) / (total + mean_within)
    return eta, max(0.0, omega)
