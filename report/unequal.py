"""Trainings of one network on one dataset that did unequal work, compared by the seconds until they reach a target.

The statistics, COST included, are those of equal work: a configuration's trials are its trials' seconds to the target.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from models.record import IDENTITY
from report import cost
from report.comparison import with_baselines
from report.facts import BaselineSpec
from report.statistics import Sample, interval
from report.target import accuracy_said, is_short, reached_said
from report.verdict import Comparison, Row, Standing, as_json, comparisons
from report.words import counted, distinct_seconds, listed, resources, rows, seconds, solver, title

SUBJECT = ["dataset", "network"]
# Of equal work only: trainings that are compared here differ in them.
OF_EQUAL_WORK = (
    "solver", "batch_size", "data_fraction", "unit", "rows", "updates_per_epoch", "epochs", "ranked_by", "flips",
)  # fmt: skip
MOST_SAID = 4


def by_target(configurations: pl.DataFrame, *, baseline: BaselineSpec) -> list[Comparison]:
    """One for each network on a dataset that has a target, in the order in which equal work has them."""
    frame = configurations.filter(pl.col("target").is_not_null())
    if frame.is_empty():
        return []
    values = [[] if each is None else each for each in frame["trial_to_target"].to_list()]
    samples = [Sample.of(each) if each else None for each in values]
    low, high = interval(*([getattr(each, name) if each else float("nan") for each in samples] for name in (
        "mean", "deviation", "n")))  # fmt: skip
    frame = frame.with_columns(
        pl.col("seconds_to_target").alias("mean_seconds"),
        pl.col("seconds_to_target").alias("rank_by"),
        pl.col("trial_to_target").alias("trial_seconds"),
        pl.lit(None, pl.Float64).alias("seconds_per_pass"),
        pl.lit(False).alias("by_pass"),
        pl.lit(True).alias("is_to_target"),
        pl.Series("ci_low", low, nan_to_null=True),
        pl.Series("ci_high", high, nan_to_null=True),
        pl.Series("status", [_status(row) for row in frame.to_dicts()], dtype=pl.String),
        pl.struct(SUBJECT).rank("dense").alias("class"),
    )
    frame = with_baselines(frame, baseline)
    first = pl.int_range(pl.len()).min().over(SUBJECT)
    ordered = frame.with_columns(first=first).sort(
        "first", "rank_by", *IDENTITY, nulls_last=True, maintain_order=True
    )  # fmt: skip
    return comparisons(ordered, baseline=baseline)


def _status(row: dict[str, Any]) -> str:
    """What did not get there is told by how many trials did, and by how far the best of them came."""
    short = reached_said(row)
    if not short or not row["trials"]:
        return str(row["status"])
    if not is_short(row) or row["best_accuracy"] is None:
        return short
    return f"{short}, at best {accuracy_said(row['best_accuracy'])}"


def is_bracket(row: Row) -> bool:
    """Whether only an earliest and a latest moment are known."""
    return row["seconds_to_target"] is not None and row["seconds_to_target_low"] < row["seconds_to_target"]


def to_json(comparison: Comparison, *, baseline: BaselineSpec) -> dict[str, Any]:
    """As a comparison of equal work has it, with what each platform did to get there."""
    whole = {key: value for key, value in as_json(comparison).items() if key not in OF_EQUAL_WORK}
    asked = cost.questions(comparison, spec=baseline)
    of_cost = cost.in_verdict(asked)  # the verdict's tests take the later end of a bracket for its time
    platforms = {
        **whole["platforms"],
        **{
            each.platform: whole["platforms"][each.platform] | of_cost.get(each.platform, {}) | _how(each.best)
            for each in comparison.standings
        },
    }
    reached = [
        {"configuration": named(comparison, row), "reached": row["reached"], "of": row["judged"]}
        for row in (*comparison.ran, *comparison.not_run)
        if row["judged"]
    ]
    return {
        **whole, "platforms": platforms, "target": comparison.work["target"],
        "ranked_by": "seconds_to_target", "reached": reached, "sentences": said(comparison),
        "cost": [cost.to_json(each) for each in asked],
    }  # fmt: skip


def _how(row: Row) -> dict[str, Any]:
    return {
        **{name: row[name] for name in ("solver", "batch_size", "learning_rate", "data_fraction")},
        "seconds_low": row["seconds_to_target_low"],
        "is_bracket": is_bracket(row),
        "best_accuracy": row["best_accuracy"],
        "price_to_target": row["price_to_target"],
    }


def named(comparison: Comparison, row: Row) -> str:
    """With what was done, which here is not the same for all."""
    share = rows(row, of=None) if len({each["rows"] for each in comparison.ran}) > 1 else ""
    return ", ".join(text for text in (comparison.label(row), solver(row), share) if text)


def said(comparison: Comparison) -> list[str]:
    """Which is first there, how long the others take, and which did not get there."""
    goal = accuracy_said(comparison.work["target"])
    what = f"{comparison.work['dataset']} with {comparison.work['network']}"
    lost = [each for each in comparison.absent if not each.reason.startswith("not run")]
    fastest = comparison.fastest
    if fastest is None:
        reasons = "; ".join(f"{title(each.platform)}: {each.reason}" for each in lost)
        return [f"No platform got {goal} of the test rows of {what} right{f' ({reasons})' if reasons else ''}."]
    others = comparison.standings[1 : 1 + MOST_SAID]
    first, *rest = distinct_seconds([each.best["rank_by"] for each in (fastest, *others)])
    later = [
        f"{title(each.platform)} {_time(each, time)} ({_inside(each)})" for each, time in zip(others, rest, strict=True)
    ]
    lines = [
        f"To get {goal} of the test rows of {what} right, {title(fastest.platform)} takes {_time(fastest, first)} of "
        f"training ({_inside(fastest)}){f'; {listed(later)}' if later else ''}."
    ]
    if any(is_bracket(each.best) for each in (fastest, *others)):
        lines.append(
            "Where two times stand, the accuracy is known only after some epochs: the target was reached between them, "
            "and the later one is compared."
        )
    if lost:
        lines.append(f"Not compared: {'; '.join(f'{title(each.platform)} ({each.reason})' for each in lost)}.")
    return lines


def _time(standing: Standing, said: str) -> str:
    row = standing.best
    return f"{seconds(row['seconds_to_target_low'])} to {said}" if is_bracket(row) else said


def _inside(standing: Standing) -> str:
    row = standing.best
    return ", ".join(text for text in (resources(row), solver(row), counted(row["judged"], "trial")) if text)
