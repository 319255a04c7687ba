"""What precision and gradient do by themselves: everything else equal, how many times as long as the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from report.statistics import Ratio, ratio
from report.verdict import KINDS, Comparison, Row

ALIKE = (
    "platform", "executors", "cores", "threads", "memory_mib", "partitions", "workers", "nodes", "learning_rate",
    "initial_weights", "device", "deploy_mode", "balance", "machine", "origin",
)  # fmt: skip
BESIDE = ("total_cores", "machine", "origin")
USUAL_GRADIENT, USUAL_COMPRESSION = "autograd", "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """`row` over `against`, which differ in `what` alone."""

    what: str  # precision | gradient | compression
    row: Row
    against: Row
    ratio: Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How much of a platform's distance is its precision, and how much its runtime, told apart by a third one."""

    row: Row  # of the platform
    coarse: Row  # of the baseline's platform, at the baseline's precision, with as many cores of the same machine
    fine: Row  # the same at the platform's own precision
    precision: Ratio
    runtime: Ratio
    whole: Ratio


def factors(comparison: Comparison, *, precision: str) -> list[Factor]:
    """Every precision against the baseline's, every gradient and compression against the usual one."""
    found = []
    for what, usual in zip(KINDS, (precision, USUAL_GRADIENT, USUAL_COMPRESSION), strict=True):
        same = (*ALIKE, *(kind for kind in KINDS if kind != what))
        usuals: dict[tuple[Any, ...], Row] = {}
        for row in comparison.ran:
            if row[what] == usual:
                usuals.setdefault(tuple(row[name] for name in same), row)
        for row in comparison.ran:
            other = usuals.get(tuple(row[name] for name in same))
            if other is not None and row[what] not in (None, usual):
                found.append(Factor(what=what, row=row, against=other, ratio=_ratio(comparison, row, other)))
    return found


def splits(comparison: Comparison, *, platform: str, precision: str) -> list[Split]:
    """For each platform at its best that has another precision than the baseline; `platform` is the baseline's."""
    found = []
    for standing in comparison.standings:
        best = standing.best
        if best["platform"] == platform or best["precision"] in (None, precision):
            continue
        coarse, fine = _pair(comparison, platform, (precision, best["precision"]), beside=best)
        if coarse is not None and fine is not None:
            found.append(
                Split(
                    row=best,
                    coarse=coarse,
                    fine=fine,
                    precision=_ratio(comparison, fine, coarse),
                    runtime=_ratio(comparison, best, fine),
                    whole=_ratio(comparison, best, coarse),
                )
            )
    return found


def as_json(factor: Factor) -> dict[str, Any]:
    return {
        "platform": factor.row["platform"],
        "what": factor.what,
        "value": factor.row[factor.what],
        "against": factor.against[factor.what],
        **{name: factor.row[name] for name in (*KINDS, "total_cores")},
        "seconds": factor.row["rank_by"],
        "against_seconds": factor.against["rank_by"],
        "ratio": factor.ratio.value,
        "low": factor.ratio.low,
        "high": factor.ratio.high,
    }


def _pair(
    comparison: Comparison, platform: str, precisions: tuple[str, str], *, beside: Row
) -> tuple[Row | None, Row | None]:
    """The fastest at one precision, and at another what differs from it in that alone."""
    coarse, fine = (
        {
            row["gradient"]: row
            for row in reversed(comparison.ran)
            if (row["platform"], row["precision"]) == (platform, precision)
            and all(row[name] == beside[name] for name in BESIDE)
        }
        for precision in precisions
    )
    usual = comparison.baseline["gradient"] if comparison.baseline else None
    gradients = sorted(coarse.keys() & fine.keys(), key=lambda name: (name != usual, str(name)))
    return (coarse[gradients[0]], fine[gradients[0]]) if gradients else (None, None)


def _ratio(comparison: Comparison, left: Row, right: Row) -> Ratio:
    return ratio(comparison.sample(left), comparison.sample(right))
