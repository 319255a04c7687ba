"""Where a series of runs changed: Mann-Whitney's test on trials, beyond what whole runs differ by, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb

import numpy as np
from scipy import stats

from report.statistics import LEAST_FASTER, LEVEL, holm

LEAST_VALUES = 5  # trials on each side of a change that is searched for
LEAST_CHANGE = LEAST_FASTER  # a smaller one is not worth a word, however certain it is
WINDOW = 10  # earlier runs that the newest is held against, and runs at each side of a change that give its size
LONGEST_ISLAND = 10  # runs of a level that lies between two others
SPREAD_KNOWN = 2  # degrees of freedom from which on it is known how much whole runs differ by themselves

Values = Sequence[float]  # the trials of one run, in seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The later values over the earlier: the median of all ratios of one to one (Hodges and Lehmann, on logarithms)."""

    ratio: float
    low: float | None  # of the 95 % interval, by the order of these ratios; None where there are too few of them
    high: float | None

    @property
    def matters(self) -> bool:
        return self.ratio >= 1 + LEAST_CHANGE or self.ratio <= 1 - LEAST_CHANGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """From the run at `at` on, times are others."""

    at: int
    size: Size
    p: float  # corrected for all that was looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """The newest values against a window of earlier ones."""

    size: Size
    trials: float  # p of Mann-Whitney's two-sided test
    runs: float | None  # p of Student's t on the means of whole runs; None where their spread is not known yet
    can_tell: bool  # enough values that the smallest p there is would do by itself

    @property
    def p(self) -> float:
        """Both must agree that there is a difference: trials of one run share its hour, its machine's mood."""
        return self.trials if self.runs is None else max(self.trials, self.runs)


def size_of(earlier: Values, later: Values) -> Size:
    ratios = np.sort(np.divide.outer(np.asarray(later, np.float64), np.asarray(earlier, np.float64)).ravel())
    n, m = len(later), len(earlier)
    rank = int(n * m / 2 - stats.norm.ppf(1 - LEVEL / 2) * np.sqrt(n * m * (n + m + 1) / 12))
    inside = rank >= 1
    return Size(
        ratio=float(np.exp(np.median(np.log(ratios)))),
        low=float(ratios[rank - 1]) if inside else None,
        high=float(ratios[len(ratios) - rank]) if inside else None,
    )


def mann_whitney(earlier: Values, later: Values) -> float:
    """p of the two-sided test; 1 where all values are equal."""
    if not len(earlier) or not len(later) or min(*earlier, *later) == max(*earlier, *later):
        return 1.0
    return float(stats.mannwhitneyu(later, earlier, alternative="two-sided").pvalue)


def smallest_p(n: int, m: int) -> float:
    """What that test gives where every value of one side is above all of the other."""
    return min(1.0, 2 / comb(n + m, n)) if n and m else 1.0


def of_whole_runs(earlier: Sequence[Values], later: Sequence[Values]) -> float | None:
    """p of Student's two-sided t of the logarithms of the runs' means; None where their spread is not known yet."""
    left, right = (np.log([np.mean(run) for run in side]) for side in (earlier, later))
    degrees = len(left) + len(right) - 2
    if degrees < SPREAD_KNOWN:
        return None
    squares = float(((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum())
    difference = abs(float(left.mean() - right.mean()))
    if squares == 0:
        return 0.0 if difference else 1.0
    error = np.sqrt(squares / degrees * (1 / len(left) + 1 / len(right)))
    return float(2 * stats.t.sf(difference / error, degrees))


def newest_against(earlier: Sequence[Values], newest: Values) -> Test:
    """One comparison, planned before anything was looked at. `earlier`: the window, oldest first."""
    pooled = _pooled(earlier)
    return Test(
        size=size_of(pooled, newest),
        trials=mann_whitney(pooled, newest),
        runs=of_whole_runs(earlier, [newest]),
        can_tell=smallest_p(len(pooled), len(newest)) < LEVEL,
    )


@dataclass(frozen=True, slots=True)
class _Best:
    """Of a stretch of runs the part that differs most from the rest of it."""

    begin: int
    end: int
    p: float  # by Bonferroni over all parts that were looked at


def changes(series: Sequence[Sequence[Values]]) -> list[list[Change]]:
    """The changes of each series, by halving: the stretch's most different part is cut out, then its pieces.

    In each round Holm's correction is over the stretches of all series.
    """
    cuts: list[set[int]] = [set() for _ in series]
    found: list[dict[int, float]] = [{} for _ in series]
    stretches = [(number, 0, len(runs)) for number, runs in enumerate(series)]
    while stretches:
        bests = [_most_different(series[number], begin, end) for number, begin, end in stretches]
        corrected = holm([np.nan if best is None else best.p for best in bests])
        following = []
        for (number, begin, end), best, p in zip(stretches, bests, corrected, strict=True):
            if best is None or not p < LEVEL:
                continue
            edges = sorted({begin, best.begin, best.end, end})
            for edge in edges[1:-1]:
                cuts[number].add(edge)
                found[number][edge] = float(p)
            following += [(number, left, right) for left, right in pairwise(edges)]
        stretches = following
    return [_kept(runs, sorted(edges), chances) for runs, edges, chances in zip(series, cuts, found, strict=True)]


def _most_different(runs: Sequence[Values], begin: int, end: int) -> _Best | None:
    """By ranks over the whole stretch; the p is of the most different part, times all parts that it could have been."""
    counts = np.array([len(run) for run in runs[begin:end]])
    values = np.array([value for run in runs[begin:end] for value in run], np.float64)
    if len(values) < 2 * LEAST_VALUES or values.min() == values.max():
        return None
    owner = np.repeat(np.arange(len(counts)), counts)
    ranks = np.bincount(owner, stats.rankdata(values), minlength=len(counts))
    at = np.concatenate([[0], np.cumsum(counts)]).astype(np.float64)
    below = np.concatenate([[0.0], np.cumsum(ranks)])
    parts = np.array(list(_parts(len(counts))), np.int64).reshape(-1, 2)
    inside = at[parts[:, 1]] - at[parts[:, 0]]
    outside = len(values) - inside
    parts = parts[enough := (inside >= LEAST_VALUES) & (outside >= LEAST_VALUES)]
    if not len(parts):
        return None
    inside, outside = inside[enough], outside[enough]
    u = below[parts[:, 1]] - below[parts[:, 0]] - inside * (inside + 1) / 2
    z = np.abs(u - inside * outside / 2) / np.sqrt(inside * outside * (len(values) + 1) / 12)
    first, last = (int(each) + begin for each in parts[int(np.argmax(z))])
    part, rest = runs[first:last], [*runs[begin:first], *runs[last:end]]
    return _Best(first, last, min(1.0, len(parts) * _chance(rest, part)))


def _parts(count: int) -> Iterator[tuple[int, int]]:
    """All ends of a stretch, and all short parts within it."""
    yield from ((begin, count) for begin in range(1, count))
    for begin in range(1, count - 1):
        yield from ((begin, end) for end in range(begin + 1, min(begin + LONGEST_ISLAND, count - 1) + 1))


def _kept(runs: Sequence[Values], edges: list[int], chances: dict[int, float]) -> list[Change]:
    """Those at which the levels beside them differ, and by enough to matter; the least sure goes first."""
    while edges:
        ends = [0, *edges, len(runs)]
        found = [
            _change(runs[max(before, at - WINDOW) : at], runs[at : min(after, at + WINDOW)], at, chances[at])
            for before, at, after in zip(ends, edges, ends[2:], strict=False)
        ]
        least = max(found, key=lambda change: (not change.size.matters, change.p))
        if least.size.matters and least.p < LEVEL:
            return found
        edges.remove(least.at)
    return []


def _change(earlier: Sequence[Values], later: Sequence[Values], at: int, searched: float) -> Change:
    size = size_of(_pooled(earlier), _pooled(later))
    return Change(at=at, size=size, p=max(searched, _chance(earlier, later)))


def _chance(earlier: Sequence[Values], later: Sequence[Values]) -> float:
    """The larger p of trials and of whole runs."""
    whole = of_whole_runs(earlier, later)
    return max(mann_whitney(_pooled(earlier), _pooled(later)), whole or 0.0)


def _pooled(runs: Sequence[Values]) -> list[float]:
    return [value for run in runs for value in run]
