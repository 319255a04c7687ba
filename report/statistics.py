"""Means with their intervals, Welch's test, Holm's correction and ratios: defined for one trial and for zero variance.

All functions take arrays of the same length, one element a comparison, and give NaN where nothing can be said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

LEVEL = 0.05
LEAST_FASTER = 0.02  # a smaller difference is not worth a word, however certain it is
ALIKE = 0.1  # means that differ by no more are told as one, where no test tells them apart
# Modified z scores (Iglewicz and Hoaglin 1993); below five values a median tells too little of what is usual.
OUTLIER_SCORE, OUTLIER_LEAST, OUTLIER_SHARE = 3.5, 5, 0.02

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a test needs to know of the trials of a configuration."""

    mean: float
    deviation: float  # of the sample, n - 1; 0 for a single trial
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Sample:
        n = len(values)
        return cls(mean=float(np.mean(values)), deviation=float(np.std(values, ddof=1)) if n > 1 else 0.0, n=n)

    def interval(self) -> tuple[float, float]:
        """Of a single trial, the trial itself: what a figure draws."""
        if self.n < 2:
            return self.mean, self.mean
        low, high = interval(self.mean, self.deviation, self.n)
        return float(low), float(high)


def interval(mean: ArrayLike, deviation: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    """The 95 % t interval of a mean; NaN for a single value, of width zero where all are equal."""
    mean, deviation, n = (np.asarray(value, np.float64) for value in (mean, deviation, n))
    repeated = n >= 2
    degrees = np.where(repeated, n - 1, 1)
    half = stats.t.ppf(1 - LEVEL / 2, degrees) * deviation / np.sqrt(np.where(repeated, n, 1))
    half = np.where(repeated, half, np.nan)
    return mean - half, mean + half


def welch_less(left: Sequence[Sample], right: Sequence[Sample]) -> tuple[Floats, Floats, Floats]:
    """t, degrees of freedom and p of Welch's one-sided test that left's mean is the smaller; NaN without repeats.

    Without any variance the means are known: p is 0 or 1.
    """
    a, b, na, nb, va, vb = _moments(left, right)
    tested = (na >= 2) & (nb >= 2)
    error = va + vb
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (a - b) / np.sqrt(error)
        freedom = welch_degrees(va, na, vb, nb)
        p = np.where(error > 0, stats.t.cdf(t, freedom), (a >= b).astype(np.float64))
    return tuple(np.where(tested, value, np.nan) for value in (t, freedom, p))  # type: ignore[return-value]


def welch_degrees(a: ArrayLike, na: ArrayLike, b: ArrayLike, nb: ArrayLike) -> Floats:
    """Of freedom, of two means with variances a and b. By their shares: squares of very small ones are nothing."""
    a, na, b, nb = (np.asarray(value, np.float64) for value in (a, na, b, nb))
    share = a / (a + b)
    return np.asarray(1 / (share**2 / (na - 1) + (1 - share) ** 2 / (nb - 1)))


def holm(p: ArrayLike) -> Floats:
    """Holm's step-down correction over the values that are not NaN."""
    p = np.asarray(p, np.float64)
    corrected = np.full_like(p, np.nan)
    (tested,) = np.nonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


Call = Literal["beats", "does not", "too little", "plain faster", "plain slower"]


def call(left: Sample, right: Sample, p: float) -> Call:
    """What may be said of left against right, given the corrected p: NaN is a comparison without a test."""
    enough = left.mean <= (1 - LEAST_FASTER) * right.mean
    if np.isnan(p):
        return "plain faster" if enough else "plain slower"
    if p >= LEVEL:
        return "does not"
    return "beats" if enough else "too little"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Of two means; low and high are the 95 % interval, None where there is none."""

    value: float
    low: float | None
    high: float | None


def ratio(left: Sample, right: Sample) -> Ratio:
    """left over right with Fieller's interval, whose degrees of freedom are Welch's at the ratio (Hasler 2008)."""
    value = left.mean / right.mean
    if left.n < 2 or right.n < 2:
        return Ratio(value=value, low=None, high=None)
    va, vb = left.deviation**2 / left.n, right.deviation**2 / right.n
    if va + value**2 * vb == 0:
        return Ratio(value=value, low=value, high=value)
    t2 = float(stats.t.ppf(1 - LEVEL / 2, welch_degrees(va, left.n, value**2 * vb, right.n))) ** 2
    # The r with (a - r b)^2 <= t^2 (va + r^2 vb) lie between the roots, if b differs from zero at all.
    square = right.mean**2 - t2 * vb
    if square <= 0:
        return Ratio(value=value, low=None, high=None)
    middle = left.mean * right.mean
    # The root is of a non-negative number; rounding must not make it less.
    root = max(0.0, middle**2 - square * (left.mean**2 - t2 * va)) ** 0.5
    return Ratio(value=value, low=(middle - root) / square, high=(middle + root) / square)


def outliers(values: Sequence[float]) -> list[bool]:
    """Which values are far from the median of their kind. They are kept: this only names them."""
    array = np.asarray(values, np.float64)
    distance = np.abs(array - np.median(array)) if len(array) else array
    if len(array) < OUTLIER_LEAST:
        return [False] * len(array)
    usual = float(np.median(distance))
    return [
        bool(far) for far in (0.6745 * distance > OUTLIER_SCORE * usual) & (distance > OUTLIER_SHARE * np.median(array))
    ]


def _moments(left: Sequence[Sample], right: Sequence[Sample]) -> tuple[Floats, ...]:
    a, b = (np.array([each.mean for each in side], np.float64) for side in (left, right))
    na, nb = (np.array([each.n for each in side], np.float64) for side in (left, right))
    va, vb = (np.array([each.deviation**2 / each.n for each in side], np.float64) for side in (left, right))
    return a, b, na, nb, va, vb
