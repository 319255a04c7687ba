"""Each axis that was varied on a platform with everything else equal, and an analysis of variance over its trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from models.record import IDENTITY
from report.statistics import LEVEL, holm
from report.variance import Variance, variance
from report.words import VARYING, chance, label, percent, solver, varying

Row = Mapping[str, Any]  # of comparison.configurations
# The columns that may be swept; whatever follows from a value of one does not have to be equal.
AXES: dict[str, tuple[str, ...]] = {
    "executors": ("workers", "nodes"),
    "cores": ("workers", "nodes"),
    "threads": (),
    "workers": ("nodes",),
    "memory_mib": ("workers", "nodes"),
    "partitions": (),
    "data_fraction": ("rows",),
    "batch_size": (),
    "learning_rate": (),
    "initial_weights": (),
    "precision": (),
    "gradient": (),
    "compression": (),
    "balance": (),
    "shards": (),
    "staleness": (),
    "deploy_mode": (),
    "device": (),
}
NAMES = {"memory_mib": "memory", "data_fraction": "fraction"}  # as sweeps.py calls them in the names of files


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A platform's trials at several values of an axis, all else equal."""

    metric: str  # seconds | accuracy
    axis: str
    row: Row  # any of its configurations, for what they have in common
    held: str  # what that is, as a label
    levels: tuple[str, ...]
    trials: tuple[int, ...]  # of each level
    by_pass: bool
    found: Variance
    p_holm: float | None = None  # over all axes of the run, by the same metric

    @property
    def call(self) -> str:
        if self.p_holm is None:
            return "no test"
        return "differs" if self.p_holm < LEVEL else "does not"


def swept(configurations: pl.DataFrame) -> list[Swept]:
    """Over seconds, then over accuracy; platforms and datasets in the order of the configurations."""
    rows = configurations.to_dicts()
    groups: dict[tuple[Any, Any], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["platform"], row["dataset"]), []).append(row)
    found: list[Swept] = []
    for metric in ("seconds", "accuracy"):
        mine = [each for group in groups.values() for axis in AXES for each in _of_axis(group, axis, metric)]
        p = holm([np.nan if each.found.p is None else each.found.p for each in mine])
        found += [
            replace(each, p_holm=None if np.isnan(value) else float(value)) for each, value in zip(mine, p, strict=True)
        ]
    return found


def _of_axis(rows: Sequence[Row], axis: str, metric: str) -> list[Swept]:
    if len({row[axis] for row in rows} - {None}) < 2:
        return []
    equal = [name for name in (*IDENTITY, "whole_epochs") if name != axis and name not in AXES[axis]]
    slices: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row[axis] is not None:
            slices.setdefault(tuple(row[name] for name in equal), []).append(row)
    names = [name for name in varying(rows) if name != axis and name not in AXES[axis]]
    return [each for group in slices.values() if (each := _swept(group, axis, metric, names)) is not None]


def _swept(rows: Sequence[Row], axis: str, metric: str, names: Sequence[str]) -> Swept | None:
    by_pass = metric == "seconds" and any(row["by_pass"] for row in rows)
    column = "trial_accuracy" if metric == "accuracy" else "trial_seconds_per_pass" if by_pass else "trial_seconds"
    groups: dict[Any, list[float]] = {}
    for row in sorted(rows, key=lambda row: (row[axis], row["configuration"])):
        groups.setdefault(row[axis], []).extend(value for value in row[column] if value is not None)
    groups = {level: values for level, values in groups.items() if values}
    if len(groups) < 2:
        return None
    return Swept(
        metric=metric,
        axis=NAMES.get(axis, axis),
        row=rows[0],
        held=label({**rows[0], axis: None}, varying=names),
        levels=tuple(_said(axis, level) for level in groups),
        trials=tuple(len(values) for values in groups.values()),
        by_pass=by_pass,
        found=variance(list(groups.values())),
    )


def _said(axis: str, level: Any) -> str:
    if axis in VARYING and axis not in ("partitions", "workers", "shards", "staleness"):
        return VARYING[axis](level)
    return f"{level:,}" if isinstance(level, int) else f"{level:g}"


def said(found: Sequence[Swept]) -> list[tuple[str, ...]]:
    """The page's table, a line each: what, over which values, of what, the test, p, how much it is, the answer."""
    subjects = len({(each.row["dataset"], each.row["network"], each.row["solver"]) for each in found}) > 1
    lines: list[tuple[str, ...]] = []
    for each in found:
        share, name = each.found.omega_squared, "Welch's" if each.found.name == "welch_anova" else "plain"
        of = f"{each.held}: {each.row['dataset']}, {each.row['network']}, {solver(each.row)}" if subjects else each.held
        lines.append(
            (
                of,
                f"{each.axis} {', '.join(each.levels)}",
                each.metric,
                "" if each.found.f is None else name,
                "no test" if each.p_holm is None else chance(each.p_holm).removeprefix("p ").removeprefix("= "),
                "" if share is None else percent(share, 2),
                {"differs": "it matters", "does not": "no difference found"}.get(each.call, "no repeats"),
            )
        )
    return lines
