"""From epoch records to trials, the statistical unit: which attempt counts, whether it may be ranked, and its value."""

from __future__ import annotations

import polars as pl

from models.record import IDENTITY, LEDGER

# A record of a trial that never started may lack these; nothing else of its configuration.
LEARNT_BY_RUNNING = ("rows", "machine_memory_gb", "workers", "nodes")
ATTEMPT = ("configuration", "trial", "attempt")
# Where an epoch's seconds went, and the least that its arithmetic needs.
SPENT = ("floor_seconds", *LEDGER)
# The same for all epochs of a trial, or the last of them has the most.
OF_TRIAL = ("exchange_seconds", "peak_memory_mib")
# A loss is a negative log-likelihood, so never below zero but by rounding.
LEAST_LOSS = -1e-3


def trials(records: pl.DataFrame) -> pl.DataFrame:
    """A row for each attempt at a trial, in the order in which they ran; `counts` marks the last attempt of a trial.

    `seconds` is the mean of its epochs without the warm-up, where it has others; only a `ranked` one has a say.
    `training_seconds` is what all of its epochs took, warm-up included, and `fixed_seconds` start-up and loading.
    """
    named = _with_configuration(_completed(records)).with_row_index("row")
    timed = pl.col("seconds").is_finite() & (pl.col("seconds") > 0)
    lasting = timed & (~pl.col("warmup") | (pl.col("warmup") | ~timed).all().over(ATTEMPT))
    bad_loss = pl.col("loss").is_not_null() & ~pl.col("loss").is_finite()
    epochs = named.with_columns(lasting=lasting.fill_null(False), bad_loss=bad_loss)
    kept = pl.col("lasting")
    attempts = epochs.group_by(ATTEMPT, maintain_order=True).agg(
        *(pl.col(name).first() for name in IDENTITY),
        pl.col("row").min(),
        pl.col("started_at").min(),
        pl.col("started_at").max().alias("last_started_at"),
        _worst_outcome().alias("outcome"),
        pl.col("reason").drop_nulls().last(),
        (pl.col("noisy").any()).alias("noisy"),
        pl.col("noise").drop_nulls().last(),
        pl.col("other_load").max(),
        pl.col("others_vcores").max(),
        pl.col("nodes_vcores").max(),
        pl.col("epoch").filter(pl.col("bad_loss")).min().alias("diverged_at"),
        pl.col("bad_loss").any(),
        pl.col("loss").filter(pl.col("loss") < LEAST_LOSS).first().alias("negative_loss"),
        kept.sum().alias("epochs"),
        (pl.col("warmup") & kept).any().alias("warmup_kept"),
        pl.col("seconds").filter(kept).mean(),
        (pl.col("seconds").filter(kept).sum() / pl.col("passes").filter(kept).sum()).alias("seconds_per_pass"),
        (pl.col("passes").filter(kept).mean()).alias("passes_per_epoch"),
        (pl.col("updates").filter(pl.col("seconds").is_not_null()).mean()).alias("updates_per_epoch"),
        # Only where every epoch has it: means of different epochs would not sum to the seconds.
        *(whole_mean(name, kept) for name in SPENT),
        pl.col("load_seconds").drop_nulls().first(),
        *(pl.col(name).max() for name in OF_TRIAL),
        pl.col("clock").drop_nulls().first(),
        pl.col("blas").drop_nulls().first(),
        pl.col("epochs_requested").drop_nulls().last(),
        pl.col("loss").drop_nulls().last(),
        pl.col("test_accuracy").drop_nulls().last().alias("final_accuracy"),
        pl.col("startup_seconds").drop_nulls().first(),
        pl.col("price_per_hour").drop_nulls().first(),
        *_of_training(timed),
    )
    diverged = pl.col("outcome").eq("ok") & pl.col("bad_loss")
    refused = pl.col("outcome").eq("ok") & pl.col("negative_loss").is_not_null()
    counts = (pl.col("attempt").fill_null(1) == pl.col("attempt").fill_null(1).max()).over("configuration", "trial")
    return (
        attempts.with_columns(
            outcome=pl.when(diverged)
            .then(pl.lit("diverged"))
            .when(refused)
            .then(pl.lit("failed"))
            .otherwise("outcome"),
            reason=pl.when(refused & ~diverged).then(_impossible_loss()).otherwise("reason"),
            counts=counts,
            fixed_seconds=pl.col("startup_seconds") + pl.col("load_seconds"),
        )
        .with_columns(
            seconds_per_pass=pl.when(pl.col("seconds_per_pass").is_finite()).then("seconds_per_pass"),
            reason=_plain_reason(),
            ranked=pl.col("counts") & pl.col("outcome").eq("ok") & pl.col("seconds").is_not_null(),
        )
        .sort("row")
    )


def ranked_epochs(records: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """The records of the ranked trials, with the number of their configuration."""
    return epochs_of(records, attempts.filter("ranked"))


def epochs_of(records: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """The records of these attempts, with the number of their configuration."""
    wanted = attempts.select(ATTEMPT)
    return _with_configuration(_completed(records)).join(wanted, on=ATTEMPT, how="semi", nulls_equal=True)


def trained_until() -> pl.Expr:
    """Training seconds at the end of each epoch of an attempt, which are in order; null from the first that is missing,
    or has no seconds, on. A whole training is one step."""
    follows = pl.col("unit").eq("training") | pl.col("epoch").eq(pl.int_range(1, pl.len() + 1).over(ATTEMPT))
    told = (pl.col("seconds").is_finite() & follows).fill_null(False).cum_min().over(ATTEMPT)
    return pl.when(told).then(pl.col("seconds").cum_sum().over(ATTEMPT))


def _completed(records: pl.DataFrame) -> pl.DataFrame:
    """A trial that failed before it knew its rows or its nodes still belongs to its configuration."""
    rest = [name for name in IDENTITY if name not in LEARNT_BY_RUNNING]
    records = records.with_columns(_filled(name, rest) for name in LEARNT_BY_RUNNING)
    fraction_known = pl.col("data_fraction").is_not_null()
    same_share = _filled("rows", ["run_id", "dataset", "data_fraction"])
    records = records.with_columns(rows=pl.when(fraction_known).then(same_share).otherwise("rows"))
    # What was not measured here tells its rows and not which share that is: the same rows are the same share.
    share = pl.when(pl.col("rows").is_not_null()).then(_filled("data_fraction", ["dataset", "rows"]))
    return records.with_columns(data_fraction=pl.coalesce("data_fraction", share))


def _filled(name: str, over: list[str]) -> pl.Expr:
    known = pl.col(name).drop_nulls()
    return pl.col(name).fill_null(pl.when(known.n_unique() == 1).then(known.max()).over(over)).alias(name)


def _with_configuration(records: pl.DataFrame) -> pl.DataFrame:
    """Number the configurations in the order of their first record. A whole training is one of so many epochs."""
    key = [*IDENTITY, "whole_epochs"]
    records = records.with_columns(whole_epochs=pl.when(pl.col("unit") == "training").then("epochs_requested"))
    configurations = records.select(key).unique(maintain_order=True).with_row_index("configuration")
    return records.join(configurations, on=key, how="left", nulls_equal=True, maintain_order="left")


def _of_training(timed: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """What a trial trained in all, and how many epochs that was; of an epoch that is not there nothing is guessed."""
    is_training = pl.col("unit").first() == "training"
    asked = pl.col("epochs_requested").drop_nulls().last()
    ended = (pl.col("epoch").drop_nulls().n_unique() == asked) | pl.col("stopped_early").fill_null(False).any()
    is_whole = timed.fill_null(False).all() & (pl.col("epoch").n_unique() == pl.len()) & ended
    return (
        pl.when(is_training)
        .then(pl.col("seconds").filter(timed).mean())
        .when(is_whole)
        .then(pl.col("seconds").sum())
        .alias("training_seconds"),
        pl.when(is_training).then(asked).when(is_whole).then(pl.len().cast(pl.Int64)).alias("training_epochs"),
    )


def whole_mean(name: str, kept: pl.Expr) -> pl.Expr:
    """The mean where none is missing."""
    values = pl.col(name).filter(kept)
    return pl.when(values.null_count() == 0).then(values.mean()).alias(name)


def _worst_outcome() -> pl.Expr:
    said = pl.col("outcome")
    tainted = pl.col("tainted").any() | said.eq("tainted").any()
    return (
        pl.when(tainted)
        .then(pl.lit("tainted"))
        .when(said.eq("failed").any())
        .then(pl.lit("failed"))
        .when(said.eq("diverged").any())
        .then(pl.lit("diverged"))
        .when(said.eq("unavailable").any())
        .then(pl.lit("unavailable"))
        .otherwise(pl.lit("ok"))
    )


def _impossible_loss() -> pl.Expr:
    loss = pl.col("negative_loss").round_sig_figs(3)
    return pl.format("its loss is {}, and a negative log-likelihood is never below 0", loss)


def _plain_reason() -> pl.Expr:
    """Why a trial has no number, without the words that the status puts before it."""
    whole = pl.col("reason").str.strip_chars(" .")
    bare = whole.str.replace(r"^(?i)(not run|failed|tainted):\s*", "")
    epoch = pl.format("diverged at epoch {}", pl.col("diverged_at"))
    said = pl.when(whole.str.starts_with("diverged")).then(whole).otherwise(pl.format("diverged: {}", whole))
    return (
        pl.when(pl.col("outcome").eq("diverged"))
        .then(pl.coalesce(epoch, said, pl.lit("diverged")))
        .when(pl.col("outcome").eq("ok") & pl.col("seconds").is_null())
        .then(pl.coalesce(bare, pl.lit("no time was recorded")))
        .otherwise(bare)
    )
