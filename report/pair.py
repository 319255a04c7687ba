"""Two runs side by side: the same configurations matched, and whether their times differ. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from models.record import IDENTITY
from report.comparison import compared
from report.facts import BaselineSpec
from report.statistics import LEAST_FASTER, LEVEL, Sample, holm, ratio, welch_less
from report.words import chance, label, percent, period, seconds, seconds_between, solver, times_between, varying

# A run and the machine it was on are what differs; everything else has to be the same for times to be compared.
OF_A_RUN = ("run_id", "machine", "machine_memory_gb")
EQUAL = 5e-4  # a smaller change would be shown as 0.0 %
SAME = (*(name for name in IDENTITY if name not in OF_A_RUN), "whole_epochs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A configuration in one of the runs."""

    seconds: float
    low: float | None
    high: float | None
    trials: int

    def __str__(self) -> str:
        between = seconds_between(self.low, self.high)
        return f"{seconds(self.seconds, 3)} ({between})" if between else seconds(self.seconds, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same configuration in both; the ratio is the second's seconds over the first's."""

    name: str
    unit: str  # `an epoch`
    first: Side
    second: Side
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    p: float | None  # of Welch's two-sided test, by Holm over all pairs; None without repeats
    differs: bool | None

    def cells(self) -> tuple[str, ...]:
        """A line of a table: its name, both runs, the ratio and what may be said of it."""
        first, second = (f"{side} {self.unit}" for side in (self.first, self.second))
        return self.name, first, second, times_between(self.ratio, self.ratio_low, self.ratio_high), str(self)

    def __str__(self) -> str:
        change = self.ratio - 1
        how = f"{percent(abs(change), 2)} {'slower' if change > 0 else 'faster'}"
        if abs(change) < EQUAL:
            return "both take the same"
        if self.p is None:
            return f"the second is {how}; without repeats in both nothing tells whether that is chance"
        if self.differs:
            return f"the second is {how} ({chance(self.p)})"
        if self.p < LEVEL:
            return f"they differ by {percent(abs(change), 2)}, too little to matter ({chance(self.p)})"
        return f"no difference can be seen ({chance(self.p)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    pairs: tuple[Pair, ...]
    only_first: tuple[str, ...]  # configurations that have times in that run alone
    only_second: tuple[str, ...]


def side_by_side(first: pl.DataFrame, second: pl.DataFrame, *, baseline: BaselineSpec) -> SideBySide:
    """Of the epoch records of two runs."""
    found = [_timed(records, baseline) for records in (first, second)]
    # Of a run that was merged from several, one configuration may be there once for each machine, or run.
    same = next((each for each in (SAME, (*SAME, "machine")) if all(_tells_apart(each, rows) for rows in found)), None)
    same = same or (*SAME, "machine", "run_id")
    sides = [{_key(row, same): row for row in rows} for rows in found]
    names = _names([row for side in sides for row in side.values()], same)
    ones, others = (
        [key for key, row in side.items() if key not in beside or _has_time_for(row, beside[key])]
        for side, beside in (sides, sides[::-1])
    )
    return SideBySide(
        pairs=tuple(_pairs([(names[key], sides[0][key], sides[1][key]) for key in ones if key in others])),
        only_first=tuple(names[key] for key in ones if key not in others),
        only_second=tuple(names[key] for key in others if key not in ones),
    )


Key = tuple[Any, ...]


def _key(row: Mapping[str, Any], same: Sequence[str]) -> Key:
    return tuple(row[name] for name in same)


def _tells_apart(same: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bool:
    return len({_key(row, same) for row in rows}) == len(rows)


def _timed(records: pl.DataFrame, baseline: BaselineSpec) -> list[dict[str, Any]]:
    """The configurations that have a time, best first."""
    _, frame = compared(records, baseline=baseline)
    return frame.filter(pl.col("rank_by").is_not_null()).to_dicts()


def _has_time_for(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Where the other one is compared by the pass, so is this: the passes of all its trials have to be known."""
    return row["seconds_per_pass"] is not None or not other["by_pass"]


def _names(rows: Sequence[Mapping[str, Any]], same: Sequence[str]) -> dict[Key, str]:
    """What is said of each: its resources, and what it needs to be told from the others."""
    differing = [name for name in varying(rows) if name not in OF_A_RUN or name in same]
    subjects = len({(row["dataset"], row["network"]) for row in rows}) > 1
    solvers = len({(row["solver"], row["batch_size"]) for row in rows}) > 1
    lengths = len({row["whole_epochs"] for row in rows}) > 1
    shares = len({row["rows"] for row in rows}) > 1
    found = {}
    for row in rows:
        parts = [label(row, varying=differing)]
        parts += [solver(row)] if solvers else []
        parts += [period(row)] if lengths else []
        parts += [f"{row['rows']:,} rows"] if shares and row["rows"] is not None else []
        parts += [f"{row['dataset']} {row['network']}"] if subjects else []
        found[_key(row, same)] = ", ".join(parts)
    return found


def _pairs(found: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]]) -> list[Pair]:
    by_pass = [one["by_pass"] or other["by_pass"] for _, one, other in found]
    firsts = [_sample(one, passes) for (_, one, _), passes in zip(found, by_pass, strict=True)]
    others = [_sample(other, passes) for (_, _, other), passes in zip(found, by_pass, strict=True)]
    _, _, less = welch_less(firsts, others)
    corrected = holm(2 * np.minimum(less, 1 - less))
    pairs = []
    for (name, one, _), passes, a, b, p in zip(found, by_pass, firsts, others, corrected, strict=True):
        change = ratio(b, a)
        tested = not np.isnan(p)
        pairs.append(
            Pair(
                name=name,
                unit=period(one, by_pass=passes),
                first=_side(a),
                second=_side(b),
                ratio=change.value,
                ratio_low=change.low,
                ratio_high=change.high,
                p=float(p) if tested else None,
                differs=bool(p < LEVEL and abs(change.value - 1) >= LEAST_FASTER) if tested else None,
            )
        )
    return pairs


def _sample(row: Mapping[str, Any], by_pass: bool) -> Sample:
    return Sample.of(row["trial_seconds_per_pass" if by_pass else "trial_seconds"])


def _side(sample: Sample) -> Side:
    low, high = sample.interval() if sample.n > 1 else (None, None)
    return Side(seconds=sample.mean, low=low, high=high, trials=sample.n)
