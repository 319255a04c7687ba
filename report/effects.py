"""How large a difference is, beside how sure: standardized, in percent, in points; and a test in both directions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from report.statistics import LEVEL, Sample, ratio, welch_degrees

ROUNDING = 1e-12  # the mean of equal values need not be exactly that value


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Of two means, with its 95 % interval; None where there is none."""

    value: float
    low: float | None
    high: float | None
    unit: str  # percent: of the right one | points: of percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Welch:
    """Welch's t-test in both directions; None where it can't be made."""

    t: float | None
    degrees: float | None
    p: float | None


def hedges(left: Sample, right: Sample) -> float | None:
    """Hedges' g: the difference over the pooled deviation, without the bias of small samples (exact, by gamma)."""
    if left.n < 2 or right.n < 2:
        return None
    degrees = left.n + right.n - 2
    pooled = (((left.n - 1) * left.deviation**2 + (right.n - 1) * right.deviation**2) / degrees) ** 0.5
    if pooled <= ROUNDING * max(abs(left.mean), abs(right.mean)):
        return None
    unbiased = np.exp(special.gammaln(degrees / 2) - special.gammaln((degrees - 1) / 2)) / np.sqrt(degrees / 2)
    return float(unbiased * (left.mean - right.mean) / pooled)


def in_percent(left: Sample, right: Sample) -> Difference | None:
    """How much more left is than right, with Fieller's interval."""
    if right.mean == 0:
        return None
    found = ratio(left, right)
    low, high = (None if end is None else 100 * (end - 1) for end in (found.low, found.high))
    return Difference(value=100 * (found.value - 1), low=low, high=high, unit="percent")


def in_points(left: Sample, right: Sample) -> Difference:
    """How many points of percent left is above right, with Welch's interval."""
    value = 100 * (left.mean - right.mean)
    error, degrees = _error(left, right)
    if degrees is None:
        return Difference(value=value, low=None, high=None, unit="points")
    half = 100 * float(stats.t.ppf(1 - LEVEL / 2, degrees)) * error if error > 0 else 0.0
    return Difference(value=value, low=value - half, high=value + half, unit="points")


def welch(left: Sample, right: Sample) -> Welch:
    """Without any variance the means are known: p is 0, or 1 where they are equal."""
    error, degrees = _error(left, right)
    if degrees is None:
        return Welch(t=None, degrees=None, p=None)
    if error == 0:
        return Welch(t=None, degrees=None, p=float(math.isclose(left.mean, right.mean, rel_tol=ROUNDING)))
    t = (left.mean - right.mean) / error
    return Welch(t=t, degrees=degrees, p=float(2 * stats.t.sf(abs(t), degrees)))


def _error(left: Sample, right: Sample) -> tuple[float, float | None]:
    """The standard error of the difference, and Welch's degrees of freedom; infinite where nothing varies."""
    if left.n < 2 or right.n < 2:
        return 0.0, None
    a, b = left.deviation**2 / left.n, right.deviation**2 / right.n
    if (a + b) ** 0.5 <= ROUNDING * max(abs(left.mean), abs(right.mean)):
        return 0.0, float("inf")
    return float((a + b) ** 0.5), float(welch_degrees(a, left.n, b, right.n))
