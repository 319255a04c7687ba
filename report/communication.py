"""How much of an epoch is communication, by a probe on each configuration's own executors, and what scaling it allows.

The ledger cannot tell it of MLlib, whose tasks fetch the weights within their run time. The probe can: it does what an
epoch does between its executors, with nothing to compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from report import places
from report.verdict import Row
from report.words import listed, percent, resources, seconds, times, title


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A configuration, and what it would take if its arithmetic scaled perfectly and the rest were its exchange."""

    row: Row
    compute: float  # of the smallest configuration of its platform there, shared among as many cores as this one has
    exchange: float  # measured on its own executors; 0 where one executor has nobody to exchange with

    @property
    def predicted(self) -> float:
        return self.compute + self.exchange

    @property
    def is_limit(self) -> bool:
        return self.exchange > self.compute


def exchange_seconds(row: Row) -> float | None:
    """Of all sums in an epoch, or in a pass where passes are ranked: a batch has one, and so has each pass."""
    if row["exchange_seconds"] is None or row["mean_seconds"] is None:
        return None
    return float(row["exchange_seconds"] * _sums(row) * row["rank_by"] / row["mean_seconds"])


def _sums(row: Row) -> float:
    """In an epoch. Who does not wait for others updates once for each part of a batch, and all parts go out at once."""
    passes = float(row["passes_per_epoch"] or 1.0)
    if row["batch_size"] is None or row["rows"] is None:
        return passes
    return max(passes, float(-(-row["rows"] // row["batch_size"])))


def share(row: Row) -> float | None:
    """Of the seconds that are ranked."""
    exchange = exchange_seconds(row)
    return None if exchange is None else exchange / float(row["rank_by"])


def points(rows: Iterable[Row]) -> list[Point]:
    """Of a platform in one place, the smallest first; none where no ledger tells what to share, or no probe."""
    known = [row for row in rows if row["compute"] is not None and row["total_cores"] and row["executors"] is not None]
    if all(row["exchange_seconds"] is None for row in known):
        return []
    first = min(known, key=lambda row: (row["total_cores"], row["executors"], row["rank_by"]))
    whole = first["compute"] * first["rank_by"] / first["mean_seconds"] * first["total_cores"]
    found = [
        Point(row=row, compute=whole / row["total_cores"], exchange=exchange)
        for row in known
        if (exchange := _exchange_if_any(row)) is not None
    ]
    return sorted(found, key=lambda point: (point.row["total_cores"], point.row["executors"]))


def _exchange_if_any(row: Row) -> float | None:
    """One rank has nobody to sum with, and no probe."""
    exchange = exchange_seconds(row)
    return 0.0 if exchange is None and row["executors"] == 1 else exchange


def limit(found: Sequence[Row]) -> str:
    """Of configurations on equal executors: how much of each one's epoch is communication, and whether that is most."""
    told = [(row, exchange) for row in found if (exchange := exchange_seconds(row)) is not None]
    if not told:
        return ""
    said = [
        f"{percent(exchange / row['rank_by'], 2)} of {title(row['platform'])}'s epoch "
        f"({seconds(exchange)} of {seconds(row['rank_by'])})"
        for row, exchange in told
    ]
    limited = [title(row["platform"]) for row, exchange in told if exchange > row["rank_by"] / 2]
    if not limited:
        verdict = "it is not the limit"
    else:
        verdict = "it is the limit" if len(limited) == len(told) else f"it is the limit of {listed(limited)} alone"
    return f"With {resources(told[0][0])}, by a probe of these, communication is {listed(said)}: {verdict}."


def of_scaling(lines: Sequence[Sequence[Point]], *, among: Sequence[Row]) -> str:
    """Below the figure: of each platform in each place the largest configuration beside what was to be expected."""
    said = []
    for key in dict.fromkeys(places.key(line[0].row) for line in lines):
        mine = [point for line in lines for point in line if places.key(point.row) == key]
        last = max(mine, key=lambda point: (point.row["total_cores"], point.row["executors"]))
        row = last.row
        told = ", ".join(places.said(places.place(row, among)))
        where = f" ({told})" if told else ""
        limiting = "the limit" if last.is_limit else "not the limit"
        said.append(
            f"with {resources(row)}{where} {percent(last.exchange / row['rank_by'], 2)} of {title(row['platform'])}'s "
            f"epoch is communication ({seconds(last.exchange)}), which is {limiting}: it takes "
            f"{seconds(row['rank_by'])}, {times(row['rank_by'] / last.predicted)} of shared arithmetic and exchange "
            f"({seconds(last.predicted)})"
        )
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."
