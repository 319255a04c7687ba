"""`tests.csv`: the planned comparisons by every metric, and an analysis of variance over each swept axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from report import tables
from report.axes import Swept
from report.effects import Difference, Welch, hedges, in_percent, in_points, welch
from report.statistics import LEVEL, Sample, holm
from report.verdict import WORK_KEYS, Comparison, Row, Test, to_beat
from report.words import solver

# The contract's, then what is ours.
COLUMNS: dict[str, type[pl.DataType]] = {
    "metric": pl.String,
    "dataset": pl.String,
    "network": pl.String,
    "solver": pl.String,
    "batch_size": pl.Int64,
    "data_fraction": pl.Float64,
    "unit": pl.String,
    "test": pl.String,  # welch | anova | welch_anova
    "left": pl.String,
    "right": pl.String,
    "statistic": pl.Float64,  # t or F
    "degrees_of_freedom": pl.Float64,  # of t; of F's denominator
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "effect": pl.Float64,
    "call": pl.String,
    "effect_kind": pl.String,  # hedges_g | omega_squared
    "difference": pl.Float64,  # of left from right
    "difference_low": pl.Float64,
    "difference_high": pl.Float64,
    "difference_unit": pl.String,  # percent | points
    "mean_left": pl.Float64,
    "mean_right": pl.Float64,
    "trials_left": pl.Int64,
    "trials_right": pl.Int64,
    "against": pl.String,  # baseline | runner-up
    "alternative": pl.String,  # less | two-sided
    "ranked_by": pl.String,
    "platform": pl.String,  # whose axis was swept
    "axis": pl.String,
    "degrees_between": pl.Float64,  # of F's numerator
    "eta_squared": pl.Float64,
    "spread_p": pl.Float64,  # of Brown and Forsythe's test that variances are equal
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What else than seconds the planned pairs are compared by: in both directions, with a correction of its own."""

    name: str
    column: str  # of comparison.configurations: a list of values, one for each trial
    difference: Callable[[Sample, Sample], Difference | None]
    calls: tuple[str, str]  # where left is significantly less, and more


METRICS = (Metric(name="accuracy", column="trial_accuracy", difference=in_points, calls=("lower", "higher")),)


def csv(found: Sequence[Comparison], swept: Sequence[Swept], *, to_target: Sequence[Comparison] = ()) -> bytes:
    """Of equal work, and of unequal work what was compared by the seconds until it reached a target."""
    rows = [row for comparison in found for row in _by_seconds(comparison)]
    rows += [
        _of_target(row, test) for each in to_target for row, test in zip(_by_seconds(each), each.tests, strict=True)
    ]
    rows += [row for metric in METRICS for comparison in found for row in _by_metric(comparison, metric)]
    rows += [_of_axis(each) for each in swept]
    return tables.csv(pl.DataFrame([[row.get(name) for name in COLUMNS] for row in rows], COLUMNS, orient="row"))


def _by_seconds(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """As the verdict tested them."""
    for test in comparison.tests:
        left, right = comparison.sample(test.left), to_beat(test.right)
        yield {
            **_pair(comparison, test, left, right, in_percent(left, right)),
            "metric": "seconds",
            "statistic": test.t,
            "degrees_of_freedom": test.degrees,
            "p": test.p,
            "p_holm": test.p_holm,
            "call": test.call,
            "alternative": "two-sided" if test.against == "runner-up" else "less",
            "ranked_by": "seconds_per_pass" if comparison.by_pass else "seconds",
        }


def _of_target(line: dict[str, Any], test: Test) -> dict[str, Any]:
    """What was done there is not the same for both, so it is said of each."""
    return {
        **{name: value for name, value in line.items() if name in ("dataset", "network") or name not in WORK_KEYS},
        "metric": "seconds_to_target",
        "ranked_by": "seconds_to_target",
        "left": f"{line['left']}, {solver(test.left)}",
        "right": f"{line['right']}, {solver(test.right)}",
    }


def _by_metric(comparison: Comparison, metric: Metric) -> Iterator[dict[str, Any]]:
    """The same pairs, each once: in both directions it does not matter what one is compared for."""
    pairs = {(test.left["configuration"], test.right["configuration"]): test for test in reversed(comparison.tests)}
    known = [
        (test, Sample.of(test.left[metric.column]), Sample.of(test.right[metric.column]))
        for test in reversed(pairs.values())
        if test.left.get(metric.column) and test.right.get(metric.column)
    ]
    tested = [welch(left, right) for _, left, right in known]
    corrected = holm([np.nan if each.p is None else each.p for each in tested])
    for (test, left, right), each, p in zip(known, tested, corrected, strict=True):
        yield {
            **_pair(comparison, test, left, right, metric.difference(left, right)),
            "metric": metric.name,
            "statistic": each.t,
            "degrees_of_freedom": each.degrees,
            "p": each.p,
            "p_holm": None if np.isnan(p) else float(p),
            "call": _call(metric, left, right, each, float(p)),
            "alternative": "two-sided",
            "ranked_by": metric.name,
        }


def _call(metric: Metric, left: Sample, right: Sample, tested: Welch, p_holm: float) -> str:
    if tested.p is None:
        return "no test"
    return metric.calls[left.mean > right.mean] if p_holm < LEVEL else "does not"


def _pair(
    comparison: Comparison, test: Test, left: Sample, right: Sample, difference: Difference | None
) -> dict[str, Any]:
    return {
        **_work(comparison.work),
        "test": "welch",
        "left": comparison.label(test.left),
        "right": comparison.label(test.right),
        "effect": hedges(left, right),
        "effect_kind": "hedges_g",
        **(
            {
                "difference": difference.value,
                "difference_low": difference.low,
                "difference_high": difference.high,
                "difference_unit": difference.unit,
            }
            if difference
            else {}
        ),
        "mean_left": left.mean,
        "mean_right": right.mean,
        "trials_left": left.n,
        "trials_right": right.n,
        "against": test.against,
    }


def _of_axis(swept: Swept) -> dict[str, Any]:
    found = swept.found
    own = {"fraction": "data_fraction"}.get(swept.axis, swept.axis)
    return {
        **{name: value for name, value in _work(swept.row).items() if name != own},
        "metric": swept.metric,
        "test": found.name,
        "left": swept.held,
        "right": f"{swept.axis}: {', '.join(swept.levels)}",
        "statistic": found.f,
        "degrees_of_freedom": found.within,
        "p": found.p,
        "p_holm": swept.p_holm,
        "effect": found.omega_squared,
        "call": swept.call,
        "effect_kind": "omega_squared",
        "ranked_by": "seconds_per_pass" if swept.by_pass else swept.metric,
        "platform": swept.row["platform"],
        "axis": swept.axis,
        "degrees_between": float(found.between),
        "eta_squared": found.eta_squared,
        "spread_p": found.spread_p,
    }


def _work(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in WORK_KEYS}
