"""What the history keeps of one run: its surroundings, and the trials' times of every configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from models.record import IDENTITY
from report.facts import BaselineSpec, RunFacts
from report.versions import versions_of

if TYPE_CHECKING:
    import pyarrow as pa

OF_CONFIGURATION = tuple(name for name in IDENTITY if name != "run_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A configuration in one run."""

    identity: dict[str, str | int | float]  # what is null is left out
    whole_epochs: int | None  # of a whole training; an entry that does not tell is of another version
    cpu: str | None
    seconds: tuple[float, ...]  # of each ranked trial
    seconds_per_pass: tuple[float, ...]  # as many, or none where passes are not known
    passes: float | None  # of an epoch
    by_pass: bool  # where the passes of those it was compared with differ
    noisy: int  # of these trials
    status: str
    final_accuracy: float | None
    loss: float | None
    startup_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """A line of the index. The later of two of one run is the one that counts."""

    run_id: str
    profile: str
    begun_at: datetime
    noted_at: datetime
    attempts: int  # at trials, that it was made of; 0: there was no report yet
    machine: str
    cpu: str | None = None
    cores: int | None = None
    memory_gb: float | None = None
    commit: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    measured: tuple[Measured, ...] = ()

    @property
    def age(self) -> tuple[datetime, int, datetime]:
        """A name may be used again once its run is removed, and trials are only ever added."""
        return self.begun_at, self.attempts, self.noted_at


def entry_of(
    records: pa.Table, *, run: RunFacts, baseline: BaselineSpec, begun_at: datetime, noted_at: datetime
) -> RunEntry:
    """Of the epoch records of a run that was reported; the versions are those that stand in them."""
    import polars as pl

    from report.comparison import compared

    frame = pl.DataFrame(records)
    attempts, configurations = compared(frame, baseline=baseline)
    known = frame.filter(pl.col("cpu").is_not_null()).group_by("machine").agg(pl.col("cpu").first())
    cpu_of = {run.machine: run.cpu} | dict(known.select("machine", "cpu").iter_rows())
    return RunEntry(
        run_id=run.run_id,
        profile=run.profile,
        begun_at=begun_at,
        noted_at=noted_at,
        attempts=attempts.height,
        machine=run.machine,
        cpu=run.cpu,
        cores=run.cores,
        memory_gb=run.memory_gb,
        commit=run.commit,
        versions=versions_of(frame),
        settings=dict(run.settings),
        measured=tuple(_measured(row, cpu_of.get(row["machine"])) for row in configurations.to_dicts()),
    )


def _measured(row: dict[str, Any], cpu: str | None) -> Measured:
    per_pass = tuple(row["trial_seconds_per_pass"])
    return Measured(
        identity={name: row[name] for name in OF_CONFIGURATION if row[name] is not None},
        whole_epochs=row["whole_epochs"],
        cpu=cpu,
        seconds=tuple(row["trial_seconds"]),
        seconds_per_pass=() if None in per_pass else per_pass,
        passes=row["passes_per_epoch"],
        by_pass=bool(row["by_pass"]),
        noisy=row["noisy"],
        status=row["status"],
        final_accuracy=row["final_accuracy"],
        loss=row["loss"],
        startup_seconds=row["startup_seconds"],
    )
