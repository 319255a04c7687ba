"""Did trials grow slower, or faster, as the run went on? A straight line over the order in which they ran."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import polars as pl

from report.statistics import LEVEL
from report.words import chance, signed_percent

ROUNDING = 1e-12  # of what is relative to a mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Relative to the mean of a trial's configuration."""

    trials: int
    per_trial: float  # the slope
    whole: float  # from the first trial of a run to its last; of several runs, of the longest
    low: float
    high: float  # its 95 % interval
    p: float  # that the slope is zero


def drift(attempts: pl.DataFrame) -> Drift | None:
    """A slope common to all configurations, each with a mean of its own; None where there are too few trials.

    What was imported has no place in the order; that of merged runs begins anew with each.
    """
    from scipy import stats

    mine = (
        attempts.filter(pl.col("seconds").is_not_null() & pl.col("started_at").is_not_null())
        .with_columns(position=pl.int_range(pl.len()).over("run_id").cast(pl.Float64))
        .filter("ranked")
        .filter(pl.len().over("configuration") > 1)
        .with_columns(
            x=pl.col("position") - pl.col("position").mean().over("configuration"),
            y=pl.col("seconds") / pl.col("seconds").mean().over("configuration") - 1,
        )
    )
    x, y = mine["x"].to_numpy(), mine["y"].to_numpy()
    degrees = mine.height - mine["configuration"].n_unique() - 1
    along = float((x**2).sum())
    if degrees < 1 or along == 0:
        return None
    slope = float((x * y).sum()) / along
    position = pl.col("position")
    length = float(mine.group_by("run_id").agg(position.max() - position.min())["position"].to_numpy().max())
    rest = float(((y - slope * x) ** 2).sum())
    error = (rest / degrees / along) ** 0.5
    if error * length <= ROUNDING:
        flat = abs(slope) * length <= ROUNDING
        slope, p = (0.0, 1.0) if flat else (slope, 0.0)
    else:
        p = float(2 * stats.t.sf(abs(slope) / error, degrees))
    half = float(stats.t.ppf(1 - LEVEL / 2, degrees)) * error
    return Drift(
        trials=mine.height,
        per_trial=slope,
        whole=slope * length,
        low=(slope - half) * length,
        high=(slope + half) * length,
        p=p,
    )


def sentence(found: Drift | None) -> str:
    if found is None:
        return "Whether they drifted cannot be said: that takes more repeats."
    whole = f"{signed_percent(found.whole)} ({signed_percent(found.low)} to {signed_percent(found.high)})"
    if found.p >= LEVEL:
        return f"From the first to the last they drift by {whole}, {chance(found.p)}: no drift can be told from chance."
    how = "slower" if found.whole > 0 else "faster"
    return f"From the first to the last they drift by {whole}, {chance(found.p)}: later trials are {how}."


def as_json(found: Drift | None) -> dict[str, float] | None:
    return None if found is None else asdict(found)
