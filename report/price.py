"""What trainings cost, when renting is cheaper than the cluster, and after how many epochs a start-up is paid back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from report.cost import Question, is_gpu
from report.facts import Prices
from report.imported import is_imported
from report.trainings import unequal
from report.verdict import Comparison, Row

HOUR = 3600.0
MIB_A_GB = 1024  # as records count a machine's memory, and as it is let
DRIVER_CORES = 1
NEEDED = ("platform", "executors", "cores", "memory_mib", "threads", "workers", "device", "machine_memory_gb")


def price_per_hour(row: Row, prices: Prices) -> float | None:
    """Of all that a configuration takes up; None where a price that it needs is missing, or its size is not known."""
    cores, gb, gpus = total_cores_with_driver(row), _memory_gb(row), gpus_of(row)
    if gpus and prices.gpu_hour is None:
        return None
    for_gpus = gpus * (prices.gpu_hour or 0.0)
    if gpus and row["executors"] is None:
        return for_gpus  # a GPU is let with what is around it
    if prices.core_hour is None or cores is None or (prices.memory_gb_hour is not None and gb is None):
        return None
    return for_gpus + prices.core_hour * cores + (prices.memory_gb_hour or 0.0) * (gb or 0.0)


def total_cores_with_driver(row: Row) -> int | None:
    if row["executors"] is not None:
        return None if row["cores"] is None else int(row["executors"] * row["cores"] + DRIVER_CORES)
    alone = row["threads"] or row["cores"]
    return None if alone is None else int(alone)


def _memory_gb(row: Row) -> float | None:
    """Of executors what each was given; of a process by itself all of its machine's, which nobody else can use then."""
    if row["executors"] is not None:
        return None if row["memory_mib"] is None else float(row["executors"] * row["memory_mib"] / MIB_A_GB)
    return None if row["machine_memory_gb"] is None else float(row["machine_memory_gb"])


def gpus_of(row: Row) -> int:
    if not (row["device"] or "").startswith("cuda"):
        return 0
    return int(row["executors"] or row["workers"] or 1)


def with_price(frame: pl.DataFrame, prices: Prices) -> pl.DataFrame:
    """Configurations with `price_per_hour`, what a record brought along first; and of an epoch (or a whole training
    that was timed as one), of a training with its start-up and loading, and to the target."""
    hourly = pl.Series([price_per_hour(row, prices) for row in frame.select(NEEDED).to_dicts()], dtype=pl.Float64)
    frame = frame.with_columns(price_per_hour=pl.coalesce("price_per_hour", hourly), whole_seconds=_whole())
    hour = pl.col("price_per_hour") / HOUR
    return frame.with_columns(
        price=hour * pl.col("mean_seconds"),
        price_per_training=hour * pl.col("whole_seconds"),
        price_to_target=hour * pl.col("seconds_to_target"),
    )


def _whole() -> pl.Expr:
    """Start-up, loading and all epochs; a training that was timed as a whole may have them in its time."""
    fixed, is_training = pl.col("fixed_seconds"), pl.col("unit") == "training"
    return pl.col("training_seconds") + pl.when(is_training).then(fixed.fill_null(0.0)).otherwise(fixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """An hour of `rented` for less than this makes a training there cheaper than on the cluster."""

    cluster: Row
    rented: Row
    against: str  # one machine | one GPU
    ratio: float  # hours of the cluster in which `rented` needs one
    core_hours: float | None  # of the cluster, with the driver's: below as many the hour is cheaper
    price: float | None  # the same in money
    saved_seconds: float  # what renting buys where the cluster idles and costs nothing more
    is_whole: bool  # of a training; else of what is ranked, as an imported epoch has no start-up

    @property
    def is_imported(self) -> bool:
        """Of another machine: plain numbers."""
        return is_imported(self.cluster) or is_imported(self.rented)


def break_evens(comparison: Comparison, questions: Sequence[Question]) -> list[BreakEven]:
    """Of each platform with executors at its fastest, against one machine and one GPU, if need be an imported one."""
    rented = [
        (each.against, each.baseline.row)
        for each in questions
        if each.baseline is not None and each.against != "one thread" and not each.with_startup
    ]
    if all(against != "one GPU" for against, _ in rented):
        rented += [("one GPU", row) for row in comparison.ran if is_gpu(row)][:1]
    found = []
    for standing in comparison.standings:
        row = standing.best
        if row["executors"] is None:
            continue
        for against, other in rented:
            if (known := _seconds(row, other)) is not None:
                mine, theirs, is_whole = known
                ratio = mine / theirs
                cores = total_cores_with_driver(row)
                found.append(
                    BreakEven(
                        cluster=row,
                        rented=other,
                        against=against,
                        ratio=ratio,
                        core_hours=None if cores is None else cores * ratio,
                        price=None if row["price_per_hour"] is None else row["price_per_hour"] * ratio,
                        saved_seconds=mine - theirs,
                        is_whole=is_whole,
                    )
                )
    return found


def _seconds(row: Row, other: Row) -> tuple[float, float, bool] | None:
    """Of a training of each; of an epoch, or a pass, where one was imported without its start-up."""
    if row["whole_seconds"] and other["whole_seconds"] and unequal(row, other) is None:
        return row["whole_seconds"], other["whole_seconds"], True
    if is_imported(row) or is_imported(other):
        return row["rank_by"], other["rank_by"], False
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Payback:
    """After how many epochs a faster epoch has made up for a longer start-up."""

    row: Row
    epochs: int | None  # 0: it starts no later; None: never, as its epochs are not shorter


def paybacks(comparison: Comparison) -> list[Payback]:
    """Of each other platform at its best against the baseline; nothing where epochs are not equal work."""
    baseline = comparison.baseline
    if baseline is None or comparison.work["unit"] == "training" or comparison.by_pass:
        return []
    start = _before_lasting(baseline)
    rows = [each.best for each in comparison.standings if each.platform != baseline["platform"]]
    return [
        Payback(row=row, epochs=_epochs(own - start, gained=baseline["mean_seconds"] - row["mean_seconds"]))
        for row in rows
        if start is not None and (own := _before_lasting(row)) is not None
    ]


def _before_lasting(row: Row) -> float | None:
    """Start-up, loading, and what the warm-up takes longer than the epochs after it."""
    if row["whole_seconds"] is None or row["training_epochs"] is None:
        return None
    return float(row["whole_seconds"] - row["training_epochs"] * row["mean_seconds"])


def _epochs(late: float, *, gained: float) -> int | None:
    late = round(late, 9)
    if late <= 0:
        return 0
    return math.ceil(round(late / gained, 9)) if gained > 0 else None


def frontier(points: Iterable[tuple[float, float]]) -> list[int]:
    """The places of those that none of the others is at least as good as in both, less being better; in their order."""
    found: list[int] = []
    best = math.inf
    ordered = sorted(enumerate(points), key=lambda each: each[1])
    for place, (_, value) in ordered:
        if value < best:
            found.append(place)
            best = value
    return sorted(found)


def to_json(comparison: Comparison, questions: Sequence[Question]) -> dict[str, Any]:
    names = ("price_per_hour", "price", "price_per_training", "price_to_target")
    return {
        "platforms": {
            each.platform: {**{name: each.best[name] for name in names}, "training_seconds": each.best["whole_seconds"]}
            for each in comparison.standings
        },
        "not_compared": not_compared(comparison),
        "break_even": [
            {
                "platform": each.cluster["platform"],
                "against": each.against,
                "hours_of_the_cluster": each.ratio,
                "core_hours": each.core_hours,
                "price": each.price,
                "seconds_saved": each.saved_seconds,
                "of": "training" if each.is_whole else "pass" if comparison.by_pass else "epoch",
                "imported": each.is_imported,
            }
            for each in break_evens(comparison, questions)
        ],
        "epochs_to_pay_back_start_up": {each.row["platform"]: each.epochs for each in paybacks(comparison)},
        "price_time_frontier": [comparison.label(row) for row in cheapest_and_fastest(comparison)],
    }


def priced(comparison: Comparison) -> list[Row]:
    """Of trainings that are equal work, those that have a price."""
    alike = [row for row in _whole_trainings(comparison) if unequal(row, _beside(comparison)) is None]
    return [row for row in alike if row["price_per_training"] is not None]


def not_compared(comparison: Comparison) -> list[str]:
    """Why whole trainings are left out where they are compared by time and price, each reason once."""
    whys = [unequal(row, _beside(comparison)) for row in _whole_trainings(comparison)]
    return list(dict.fromkeys(why for why in whys if why is not None))


def _whole_trainings(comparison: Comparison) -> list[Row]:
    return [row for row in comparison.ran if row["whole_seconds"]]


def _beside(comparison: Comparison) -> Row:
    """What the others have to be equal to: the baseline's training, or else the fastest's."""
    known = _whole_trainings(comparison)
    return next((row for row in known if row is comparison.baseline), known[0])


def cheapest_and_fastest(comparison: Comparison) -> list[Row]:
    """The configurations than which none is both as fast and as cheap."""
    rows = priced(comparison)
    return [rows[place] for place in frontier([(row["whole_seconds"], row["price_per_training"]) for row in rows])]
