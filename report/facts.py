"""What a report has to be told beside the records: what to compare with, and what is known of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from models.probes import MachineProbes
from models.target import Target
from report.words import counted

# Only within equal work may seconds be compared. Epochs that were asked for matter where a whole training was timed.
WORK = ("dataset", "network", "rows", "data_fraction", "solver", "batch_size", "unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSpec:
    """What the others are compared with, as luigi.cfg names it."""

    platform: str
    precision: str
    threads: int

    def __str__(self) -> str:
        return f"{self.platform} in {self.precision} with {counted(self.threads, 'thread')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What an hour costs, as luigi.cfg has it; None: that is not known."""

    core_hour: float | None = None
    memory_gb_hour: float | None = None
    gpu_hour: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What seconds are held against beside each other: accuracies to reach, and prices."""

    targets: tuple[Target, ...] = ()
    prices: Prices = Prices()


NO_TERMS = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is known of a run and stands in no record."""

    run_id: str
    profile: str
    machine: str
    cpu: str | None = None
    cores: int | None = None
    memory_gb: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows_of: Mapping[str, int] = field(default_factory=dict)  # training rows of each dataset
    trials_planned: int | None = None  # more than the records hold where the run was stopped
    terms: Terms = NO_TERMS
    probes: tuple[MachineProbes, ...] = ()  # the speed of each machine's matrix product
    notes: tuple[str, ...] = ()  # what a reader has to know, a sentence each

    def share_of_machine(self, row: Mapping[str, Any]) -> str | None:
        """`2 of this machine's 64 cores` of a process with fewer threads than the machine has cores; else None."""
        threads, is_here = row["threads"], row["machine"] == self.machine and row["origin"] is None
        if threads is None or self.cores is None or threads >= self.cores or not is_here:
            return None
        return f"{threads:,} of this machine's {self.cores:,} cores"
