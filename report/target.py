"""Time to accuracy: what unequal work is compared by. From the records alone, whatever platform they are of.

Training seconds, warm-up included, until the test accuracy first reaches the target. Where it is known only after some
epochs, as of MLlib's refits, they lie between the last of these that did not reach it and the first that did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from models.target import Target, target_accuracy
from report.trials import ATTEMPT, epochs_of, trained_until
from report.words import counted

# A trial may diverge before it reaches the target: it did not reach it, and that counts.
JUDGED = pl.col("counts") & (pl.col("ranked") | pl.col("outcome").eq("diverged")) & pl.col("target").is_not_null()
OF_ATTEMPT = {
    "got_there": pl.Boolean,
    "to_target": pl.Float64,
    "to_target_low": pl.Float64,
    "best_accuracy": pl.Float64,
}
_judged = pl.col("judged")
_all_reached = _judged.any() & (pl.col("to_target").filter(_judged).null_count() == 0)


def _in_order(values: pl.Expr) -> pl.Expr:
    return pl.when(_all_reached).then(values.filter(_judged).sort_by(pl.col("trial").filter(_judged)).implode())


# Of a configuration, over its trials. Only where all of them reached the target is there a number.
OF_TRIALS = (
    pl.col("target").first(),
    _judged.sum().alias("judged"),
    pl.col("got_there").filter(_judged).sum().alias("reached"),
    pl.col("to_target").filter(_judged).count().alias("timed_to_target"),
    pl.col("best_accuracy").max(),
    pl.when(_all_reached).then(pl.col("to_target").filter(_judged).mean()).alias("seconds_to_target"),
    pl.when(_all_reached).then(pl.col("to_target_low").filter(_judged).mean()).alias("seconds_to_target_low"),
    _in_order(pl.col("to_target")).alias("trial_to_target"),
    _in_order(pl.col("to_target_low")).alias("trial_to_target_low"),
    _in_order(pl.col("fixed_seconds")).alias("trial_fixed_to_target"),
)


def with_target(records: pl.DataFrame, attempts: pl.DataFrame, targets: Sequence[Target]) -> pl.DataFrame:
    """Attempts with their target, whether they are `judged` by it, and the seconds `to_target` of those that did.

    What a trial had before it diverged is not looked at.
    """
    pairs = attempts.select("dataset", "network").unique(maintain_order=True)
    found = [target_accuracy(targets, dataset=dataset, network=network) for dataset, network in pairs.iter_rows()]
    wanted = pairs.with_columns(target=pl.Series(found, dtype=pl.Float64))
    attempts = attempts.join(wanted, on=["dataset", "network"], how="left", nulls_equal=True, maintain_order="left")
    attempts = attempts.with_columns(judged=JUDGED)
    if not attempts["judged"].any():
        return attempts.with_columns(pl.lit(None, kind).alias(name) for name, kind in OF_ATTEMPT.items())
    trained = attempts.filter("judged", "ranked")
    epochs = epochs_of(records, trained).join(
        trained.select(*ATTEMPT, "target"), on=ATTEMPT, how="left", nulls_equal=True, maintain_order="left"
    )
    return attempts.join(_reached(epochs), on=ATTEMPT, how="left", nulls_equal=True, maintain_order="left")


def _reached(epochs: pl.DataFrame) -> pl.DataFrame:
    """Of each attempt the seconds at the first epoch known to have reached the target, and at the last before it."""
    known = pl.col("test_accuracy").is_finite().fill_null(False)
    epochs = epochs.sort("epoch", nulls_last=True, maintain_order=True).with_columns(
        at=trained_until(),
        known=known,
        right=known & (pl.col("test_accuracy") >= pl.col("target")),
    )
    best = epochs.filter("known").group_by(ATTEMPT).agg(best_accuracy=pl.col("test_accuracy").max())
    first = epochs.filter("right").group_by(ATTEMPT, maintain_order=True).agg(
        got_there=pl.lit(True), to_target=pl.col("at").first(), epoch=pl.col("epoch").first()
    )  # fmt: skip
    before = (
        epochs.filter(known & ~pl.col("right"))
        .join(first.select(*ATTEMPT, first="epoch"), on=ATTEMPT, nulls_equal=True)
        .filter(pl.col("epoch") < pl.col("first"))
        .group_by(ATTEMPT)
        .agg(low=pl.col("at").max(), last_epoch=pl.col("epoch").max())
    )
    # Between two epochs that follow each other there is no other at which it might have been reached. Of a whole
    # training only the end is known.
    gap = pl.col("epoch") - pl.col("last_epoch").fill_null(0)
    low = pl.when(gap == 1).then("to_target").otherwise(pl.col("low").fill_null(0.0))
    return (
        best.join(first, on=ATTEMPT, how="left", nulls_equal=True)
        .join(before, on=ATTEMPT, how="left", nulls_equal=True)
        .with_columns(to_target_low=pl.when(pl.col("to_target").is_not_null()).then(low))
        .select(*ATTEMPT, *OF_ATTEMPT)
    )


def reached_said(row: Mapping[str, Any]) -> str:
    """`2 of 3 trials reached 90 %`, or nothing where it is known when all did, or none was to."""
    if row["target"] is None or row["timed_to_target"] == row["judged"]:
        return ""
    if row["best_accuracy"] is None:
        return "no test accuracy recorded, so when it reached the target is not known"
    all_of, goal = counted(row["judged"], "trial"), accuracy_said(row["target"])
    if is_short(row):
        return f"{row['reached']} of {all_of} reached {goal}"
    untimed = row["judged"] - row["timed_to_target"]
    return f"when {untimed} of {all_of} reached {goal} is not known: an epoch before that is missing, or has no seconds"


def is_short(row: Mapping[str, Any]) -> bool:
    """Whether there is a trial that is not known to have reached the target."""
    return bool(row["reached"] < row["judged"])


def accuracy_said(value: float) -> str:
    """`90 %`, `92.53 %`: as a target is written, without digits of its own."""
    return f"{100 * value:.4g} %"
