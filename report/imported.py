"""What imported timings are compared with: none of them ran here, so the baseline of luigi.cfg is not theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]  # of comparison.configurations
NO_BASELINE = "no baseline: no other platform was imported with one executor or none"
NO_MACHINE = "imported timings tell no number of threads, so none is of the most that a machine ran with"


def is_imported(row: Row) -> bool:
    return row["origin"] is not None


def all_imported(rows: Sequence[Row]) -> bool:
    return bool(rows) and all(map(is_imported, rows))


def own_first(rows: list[Row]) -> list[Row]:
    """A platform is judged by what was measured here, where there is any of it."""
    return [row for row in rows if not is_imported(row)] or rows


def baselines(judged: Mapping[str, list[Row]], ran: Sequence[Row], common: Row | None) -> dict[str, Row | None]:
    """Of each platform: its own where it was imported, else the one that all others have."""
    return {
        platform: _baseline_for(platform, ran) if is_imported(rows[0]) and not _is_only(rows, common) else common
        for platform, rows in judged.items()
    }


def _is_only(rows: list[Row], common: Row | None) -> bool:
    """A platform on one machine alone, with which all others are compared."""
    return common is not None and common["platform"] == rows[0]["platform"] and all(map(_is_alone, rows))


def _baseline_for(platform: str, ran: Sequence[Row]) -> Row | None:
    """The fastest of another platform with one executor or none, among what was imported; `ran` is fastest first."""
    return next((row for row in ran if row["platform"] != platform and is_imported(row) and _is_alone(row)), None)


def common_baseline(judged: Mapping[str, list[Row]], ran: Sequence[Row]) -> Row | None:
    """Of a comparison as a whole: that of its fastest platform on several executors, else of its fastest."""
    several = [platform for platform, rows in judged.items() if not all(map(_is_alone, rows))]
    found = (_baseline_for(platform, ran) for platform in [*several, *judged])
    return next((row for row in found if row is not None), None)


def _is_alone(row: Row) -> bool:
    return row["executors"] is None or row["executors"] <= 1
