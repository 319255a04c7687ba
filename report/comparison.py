"""A row for each configuration: its mean over trials with interval, its class of equal work, and why it did not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from models.record import IDENTITY
from report import tables
from report.cost import named_baseline
from report.facts import NO_TERMS, WORK, BaselineSpec, Terms
from report.price import DRIVER_CORES, with_price
from report.statistics import Sample, interval, outliers
from report.target import OF_TRIALS, reached_said, with_target
from report.trials import OF_TRIAL, SPENT, trials, whole_mean
from report.words import counted, label, percent, period, seconds, seconds_between, solver, times, varying, work
from report.words import rows as rows_of

CLASS = (*WORK, "updates_per_epoch", "is_stale", "whole_epochs")
COLUMNS = (
    *(name for name in IDENTITY if name != "unit"),
    "total_cores",
    "total_cores_with_driver",
    "trials",
    "unit",
    "mean_seconds",
    "ci_low",
    "ci_high",
    "seconds_per_pass",
    "relative_to_one_thread",
    "relative_to_one_machine",
    "updates_per_epoch",
    "loss",
    "final_accuracy",
    "seconds_to_target",
    "startup_seconds",
    "price_per_hour",
    "price",
    "status",
    *SPENT,  # ours: means of an epoch, as mean_seconds is
    *OF_TRIAL,
    "whole_epochs",  # of a whole training
    "price_per_training",
    "price_to_target",
    "seconds_to_target_low",  # above: where the accuracy is known only now and then, both are a bracket
)


def configurations(attempts: pl.DataFrame, *, baseline: BaselineSpec, terms: Terms = NO_TERMS) -> pl.DataFrame:
    """COLUMNS, and what the verdict and the figures need beside them, best first within each class of equal work."""
    every = pl.col("counts")
    ranked = pl.col("ranked")
    accurate = ranked & pl.col("final_accuracy").is_finite()
    frame = (
        attempts.group_by("configuration", maintain_order=True)
        .agg(
            *(pl.col(name).first() for name in IDENTITY),
            every.sum().alias("attempted"),
            ranked.sum().alias("trials"),
            (ranked & pl.col("noisy")).sum().alias("noisy"),
            (ranked & pl.col("warmup_kept")).any().alias("warmup_kept"),
            pl.col("seconds").filter(ranked).mean().alias("mean_seconds"),
            pl.col("seconds").filter(ranked).std().alias("deviation"),
            _by_trial("seconds"),
            _by_trial("seconds_per_pass"),
            _by_trial("training_seconds"),
            _by_trial("fixed_seconds"),
            whole_mean("seconds_per_pass", ranked),
            whole_mean("training_seconds", ranked),
            whole_mean("fixed_seconds", ranked),
            _same("training_epochs", ranked),
            pl.col("passes_per_epoch").filter(ranked).mean(),
            pl.col("updates_per_epoch").drop_nulls().mean(),
            pl.col("epochs_requested").drop_nulls().last(),
            pl.col("loss").filter(ranked & pl.col("loss").is_finite()).mean(),
            pl.col("final_accuracy").filter(accurate).mean(),
            pl.col("final_accuracy").filter(accurate).sort_by(pl.col("trial").filter(accurate)).alias("trial_accuracy"),
            pl.col("startup_seconds").filter(ranked).mean(),
            pl.col("load_seconds").filter(ranked).mean(),
            *(whole_mean(name, ranked) for name in SPENT),
            pl.col("exchange_seconds").filter(ranked).mean(),
            pl.col("peak_memory_mib").filter(ranked).max(),
            pl.col("clock").filter(ranked).drop_nulls().first(),
            pl.col("blas").filter(ranked).drop_nulls().unique(maintain_order=True).alias("blas"),
            pl.col("price_per_hour").drop_nulls().first(),
            pl.struct("outcome", "reason").filter(every & ~ranked).alias("not_ranked"),
            *OF_TRIALS,
        )
        .with_columns(total_cores=_total_cores())
        .with_columns(total_cores_with_driver=pl.col("total_cores") + _drivers())
    )
    frame = _with_class(frame)
    low, high = interval(
        *(frame[name].cast(pl.Float64).fill_null(float("nan")) for name in ("mean_seconds", "deviation", "trials"))
    )
    frame = frame.with_columns(
        ci_low=pl.Series(low, nan_to_null=True),
        ci_high=pl.Series(high, nan_to_null=True),
        outliers=pl.Series([sum(outliers(values)) for values in frame["trial_seconds"].to_list()], dtype=pl.Int64),
    )
    frame = with_price(with_baselines(frame, baseline), terms.prices)
    rows = frame.select(
        "by_pass", "rank_by", "attempted", "trials", "noisy", "outliers", "warmup_kept", "not_ranked",
        "target", "judged", "reached", "timed_to_target", "best_accuracy",
    ).to_dicts()  # fmt: skip
    frame = frame.with_columns(status=pl.Series([_status(row) for row in rows], dtype=pl.String))
    # Updates are whole numbers, unless a trial stopped within an epoch.
    if (frame["updates_per_epoch"].drop_nulls() % 1 == 0).all():
        frame = frame.with_columns(pl.col("updates_per_epoch").cast(pl.Int64))
    return frame.sort("class", "rank_by", *IDENTITY, nulls_last=True, maintain_order=True)


def _by_trial(name: str) -> pl.Expr:
    """The values of the ranked trials, in their order."""
    ranked = pl.col("ranked")
    return pl.col(name).filter(ranked).sort_by(pl.col("trial").filter(ranked)).alias(f"trial_{name}")


def _same(name: str, kept: pl.Expr) -> pl.Expr:
    """What all have, or null."""
    values = pl.col(name).filter(kept)
    return pl.when(values.n_unique() == 1).then(values.first()).alias(name)


def compared(
    records: pl.DataFrame, *, baseline: BaselineSpec, terms: Terms = NO_TERMS
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The trials of some records, and the configurations they are trials of."""
    attempts = with_target(records, trials(records), terms.targets)
    return attempts, configurations(attempts, baseline=baseline, terms=terms)


def _with_class(frame: pl.DataFrame) -> pl.DataFrame:
    """Number the classes of equal work. What did not run joins the class it would most likely have belonged to."""
    frame = frame.with_columns(whole_epochs=pl.when(pl.col("unit") == "training").then("epochs_requested"))
    # As many updates by gradients of earlier weights are other work; one executor has nobody to run ahead of.
    ahead = ((pl.col("staleness") > 0) & (pl.col("executors") > 1)).fill_null(False)
    frame = frame.with_columns(is_stale=ahead & (ahead & pl.col("mean_seconds").is_not_null()).any().over(WORK))
    known = pl.col("updates_per_epoch")
    frame = frame.with_columns(
        updates_per_epoch=pl.when(known.is_null() & pl.col("mean_seconds").is_null())
        .then(known.drop_nulls().mode().min().over(WORK))
        .otherwise(known)
    )
    # What was measured comes before what was only imported; of that the widest, then the most rows. Names only make the
    # order definite.
    order = (
        frame.group_by(CLASS, maintain_order=True)
        .agg(
            measured=((pl.col("trials") > 0) & pl.col("origin").is_null()).any(),
            platforms=pl.col("platform").filter(pl.col("trials") > 0).n_unique(),
            ran=(pl.col("trials") > 0).sum(),
        )
        .sort(
            *("measured", "platforms", "rows", "ran", *CLASS),
            descending=[True, True, True, True, *(False for _ in CLASS)],
            nulls_last=True,
        )
        .drop("measured", "platforms", "ran")
        .with_row_index("class")
    )
    frame = frame.join(order, on=list(CLASS), how="left", nulls_equal=True, maintain_order="left")
    passes = pl.col("passes_per_epoch")
    differ = (passes.max() > passes.min()).over("class").fill_null(False)
    return frame.with_columns(
        by_pass=differ, rank_by=pl.when(differ).then("seconds_per_pass").otherwise("mean_seconds")
    )


def with_baselines(frame: pl.DataFrame, baseline: BaselineSpec) -> pl.DataFrame:
    """Mean seconds over the baseline's of the same class: of the named threads, and of the most it ran with there."""
    mine = (
        (pl.col("platform") == baseline.platform)
        & (pl.col("precision") == baseline.precision)
        & pl.col("rank_by").is_not_null()
    )
    frame = frame.with_columns(is_baseline=_fastest(mine & (pl.col("threads") == baseline.threads)))
    there = pl.col("machine").filter("is_baseline").first().over("class")
    mine &= (pl.col("machine") == there).fill_null(True)
    most = mine & (pl.col("threads") == pl.col("threads").filter(mine).max().over("class"))
    frame = frame.with_columns(is_machine=_fastest(most))
    return frame.with_columns(
        (pl.col("mean_seconds") / pl.col("mean_seconds").filter(pl.col(which)).min().over("class")).alias(relative)
        for relative, which in (("relative_to_one_thread", "is_baseline"), ("relative_to_one_machine", "is_machine"))
    )


def _fastest(which: pl.Expr) -> pl.Expr:
    """Several may match, by gradient or step: the fastest of them is the hardest to beat."""
    return (which & (pl.col("rank_by") == pl.col("rank_by").filter(which).min().over("class"))).fill_null(False)


def _total_cores() -> pl.Expr:
    return pl.coalesce(pl.col("executors") * pl.col("cores"), "threads", "cores")


def _drivers() -> pl.Expr:
    return pl.when(pl.col("executors").is_not_null()).then(DRIVER_CORES).otherwise(0)


def _status(row: dict[str, Any]) -> str:
    """`ok`, `ok (1 of 3 trials failed: ...)`, `not run: no CUDA device`, `diverged at epoch 2`, ..."""
    causes: dict[str, int] = {}
    for each in row["not_ranked"]:
        causes[_cause(each)] = causes.get(_cause(each), 0) + 1
    total = row["attempted"]
    if not row["trials"]:
        if len(causes) == 1:
            return next(iter(causes))
        return "; ".join(f"{n} of {counted(total, 'trial')}: {cause}" for cause, n in causes.items())
    if row["rank_by"] is None:
        return "not ranked: its passes over the rows are not known of every trial, and others' differ"
    said = [f"{n} of {counted(total, 'trial')} {cause}" for cause, n in causes.items()]
    if row["noisy"]:
        said.append(f"{row['noisy']} of {counted(row['trials'], 'trial')} noisy")
    if row["outliers"]:
        said.append(f"{counted(row['outliers'], 'outlier')} kept")
    if row["warmup_kept"]:
        said.append("one epoch a trial: its warm-up is kept")
    if short := reached_said(row):
        said.append(short)
    return f"ok ({'; '.join(said)})" if said else "ok"


def _cause(trial: dict[str, Any]) -> str:
    outcome, reason = trial["outcome"], trial["reason"]
    if outcome == "diverged":
        return str(reason)
    word = {"unavailable": "not run", "ok": "not timed"}.get(outcome, outcome)
    return f"{word}: {reason}" if reason else word


def files(records: pl.DataFrame, frame: pl.DataFrame) -> dict[str, bytes]:
    """What Merge publishes beside the Parquet file."""
    return {
        "epochs.csv": tables.csv(records),
        "comparison.csv": tables.csv(frame.select(COLUMNS)),
        "comparison.md": _markdown(frame).encode(),
    }


def _markdown(frame: pl.DataFrame) -> str:
    """The comparison as people read it: a table for each class of equal work, fastest first."""
    parts = ["# Comparison\n\nOnly configurations of one table did equal work. All columns are in comparison.csv.\n"]
    for group in frame.partition_by("class", maintain_order=True):
        found = group.to_dicts()
        first = found[0]
        share = rows_of(first, of=None)
        parts.append(
            f"\n## {tables.plain(work(first))}: {tables.plain(solver(first))}{', ' + share if share else ''}\n\n"
        )
        parts.append(f"Seconds are of {period(first, by_pass=first['by_pass'])}.\n\n")
        baseline, machine = (
            next((row for row in found if row[which]), None) for which in ("is_baseline", "is_machine")
        )
        against = [None if row is None else row["rank_by"] for row in (baseline, machine)]
        heads = (
            "configuration",
            "seconds",
            "95 % interval",
            "trials",
            f"x {named_baseline(baseline) if baseline else 'the baseline'}",
            "x one machine",
            "test accuracy",
            "status",
        )
        lines = [_line(row, varying(found), against) for row in found]
        parts.append(tables.markdown(heads, lines, numeric=heads[1:7]))
    return "".join(parts)


def _line(row: dict[str, Any], names: Sequence[str], against: Sequence[float | None]) -> tuple[str, ...]:
    """All of it of what is ranked: of a pass, where an epoch is not the same number of passes for all."""
    rank, accuracy = row["rank_by"], row["final_accuracy"]
    values = row["trial_seconds_per_pass" if row["by_pass"] else "trial_seconds"]
    between = Sample.of(values).interval() if rank is not None and len(values) > 1 else (None, None)
    return (
        label(row, varying=names),
        "" if rank is None else seconds(rank, 3),
        seconds_between(*between),
        str(row["trials"]),
        *("" if rank is None or other is None else times(rank / other) for other in against),
        "" if accuracy is None else percent(accuracy),
        row["status"],
    )
