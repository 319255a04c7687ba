"""Where a row was measured: seconds of two machines, of two runs, or of a file and a clock are never one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from report.verdict import KINDS, Comparison, Row
from report.words import VARYING, title

MACHINE = ("origin", "machine")
PLACE = (*MACHINE, "run_id")


def key(row: Row) -> tuple[Any, ...]:
    """Rows that have it alike are of one platform in one place, and may be joined."""
    return tuple(row[name] for name in ("platform", *PLACE))


def sized(comparison: Comparison) -> list[list[Row]]:
    """Of each platform in each place, at what the platform is judged by, what has a number of cores; fastest first.

    Every platform has its fastest place before any has a second one, as a figure may not have room for all.
    """
    found = []
    for standing in comparison.standings:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in comparison.ran:
            if row["platform"] != standing.platform or row["total_cores"] is None:
                continue
            if all(row[name] == standing.best[name] for name in KINDS):
                groups.setdefault(key(row), []).append(row)
        found.append(groups.values())
    return [group for nth in zip_longest(*found) for group in nth if group]


def place(row: Row, among: Sequence[Row]) -> dict[str, Any]:
    """What tells it from the others' places; of a run only where one machine has several."""
    here = [other for other in among if all(other[name] == row[name] for name in MACHINE)]
    others = {**dict.fromkeys(MACHINE, among), "run_id": here}
    return {name: row[name] for name in PLACE if len({other[name] for other in others[name]}) > 1}


def said(told: Mapping[str, Any]) -> list[str]:
    return [VARYING[name](value) for name, value in told.items() if value is not None]


def titled(row: Row, among: Sequence[Row]) -> str:
    """`torch-cpu`, `torch-cpu (edge)`."""
    told = ", ".join(said(place(row, among)))
    return title(row["platform"]) + (f" ({told})" if told else "")
