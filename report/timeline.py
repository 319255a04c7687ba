"""What each executor did when: a trial's tasks as Spark's event log tells them, and what was read before the passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import polars as pl

from models.timeline import Load, TaskSpan
from report import tables
from report.verdict import Comparison, Row
from report.words import counted, label, listed, seconds, size, varying

TASK = tuple(field.name for field in fields(TaskSpan) if field.name != "group")
# The columns of timeline.csv. Seconds are since the first task of the trial was launched.
COLUMNS = (
    "configuration", "platform", "dataset", "network", "solver", "precision", "executors", "cores", "trial", *TASK,
)  # fmt: skip
KEY = (
    "platform", "dataset", "network", "solver", "learning_rate", "initial_weights", "precision", "gradient",
    "batch_size", "data_fraction", "partitions", "executors", "cores", "memory_mib", "threads", "deploy_mode", "device",
    "machine",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The tasks of one trial, which stands for its configuration."""

    row: Row  # the identity of its configuration
    trial: int
    tasks: tuple[TaskSpan, ...]
    load: Load | None = None

    @property
    def executors(self) -> list[str]:
        return sorted({task.executor for task in self.tasks}, key=lambda name: (len(name), name))

    @property
    def began(self) -> float:
        return min(task.launched for task in self.tasks)

    def busy(self) -> dict[str, float]:
        """Of each executor the share of its slots' time, from the first pass to the last, that tasks filled."""
        passes = [task for task in self.tasks if task.kind == "pass"]
        if not passes:
            return {}
        whole = max(task.ended for task in passes) - min(task.launched for task in passes)
        slots = {name: len({task.slot for task in self.tasks if task.executor == name}) for name in self.executors}
        filled = dict.fromkeys(self.executors, 0.0)
        for task in passes:
            filled[task.executor] += task.ended - task.launched
        return {name: filled[name] / (whole * slots[name]) if whole else 0.0 for name in self.executors}


def in_order(timelines: Sequence[Timeline], comparison: Comparison) -> list[Timeline]:
    """Those of one class of equal work, as they are ranked."""
    mine = {_key(row): place for place, row in enumerate(comparison.ran)}
    found = [each for each in timelines if each.tasks and _key(each.row) in mine]
    return sorted(found, key=lambda each: mine[_key(each.row)])


def csv(timelines: Sequence[Timeline]) -> bytes:
    names = varying([each.row for each in timelines])
    rows: list[dict[str, Any]] = [
        {
            "configuration": label(each.row, varying=names),
            **{name: each.row[name] for name in COLUMNS[1:8]},
            "trial": each.trial,
            **{name: getattr(task, name) for name in TASK},
            "launched": round(task.launched - each.began, 3),
            "ended": round(task.ended - each.began, 3),
        }
        for each in timelines
        if each.tasks
        for task in each.tasks
    ]
    return tables.csv(pl.DataFrame(rows, infer_schema_length=None)) if rows else (",".join(COLUMNS) + "\n").encode()


def load_rows(comparison: Comparison, timelines: Sequence[Timeline]) -> list[tuple[str, ...]]:
    """By the number of executors: how long it took until the data lay in memory, how much that was, what was read."""
    read = {_key(each.row): each.load for each in timelines}
    rows = [row for row in comparison.ran if row["executors"] is not None and row["load_seconds"] is not None]
    found: list[tuple[str, ...]] = []
    for row in sorted(rows, key=lambda row: (row["platform"], row["executors"], row["cores"] or 0, row["rank_by"])):
        seen = read.get(_key(row))
        found.append(
            (
                comparison.label(row),
                seconds(row["load_seconds"], 3),
                "" if row["peak_memory_mib"] is None else f"{row['peak_memory_mib']:,.0f} MiB",
                size(seen.bytes_read) if seen else "",
                "" if seen is None else "not told" if seen.remote_bytes_read is None else size(seen.remote_bytes_read),
            )
        )
    return found


def of_load(comparison: Comparison) -> str:
    """What more executors do to loading."""
    said = []
    for standing in comparison.standings:
        every: dict[int | None, dict[int, Row]] = {}
        for row in comparison.ran:
            if row["platform"] == standing.platform and None not in (row["executors"], row["load_seconds"]):
                every.setdefault(row["cores"], {}).setdefault(row["executors"], row)
        # Of executors of one size, that which was tried in most numbers.
        rows = max(every.values(), key=len, default={})
        if len(rows) > 1:
            few, many = rows[min(rows)], rows[max(rows)]
            said.append(
                f"{comparison.label(few)} needs {seconds(few['load_seconds'])} until its data lies in memory, with "
                f"{counted(max(rows), 'executor')} {seconds(many['load_seconds'])}"
            )
    return f"{listed(said)}." if said else ""


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)
