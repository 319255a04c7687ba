"""`yarnstick runs compare`: two runs of a store, with what has to be known before their times are believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.reporting import baseline_of, known_run, records_now
from pipeline.run_file import RunFile
from pipeline.runs import columns
from report.versions import versions_of
from report.words import listed
from store.protocol import Store

if TYPE_CHECKING:
    from report.pair import Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    run_id: str
    machine: str
    cpu: str
    cores: int
    memory_gb: float

    def __str__(self) -> str:
        return f"{self.run_id} on {self.machine}: {self.cpu}, {self.cores} cores, {self.memory_gb:g} GB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    first: Machine
    second: Machine
    warnings: tuple[str, ...]
    pairs: tuple[Pair, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    def lines(self) -> list[str]:
        head = ("configuration", self.first.run_id, self.second.run_id, "ratio", "")
        table = columns([head, *(pair.cells() for pair in self.pairs)]) if self.pairs else []
        only = [
            f"only in {machine.run_id}: {name}"
            for machine, names in ((self.first, self.only_first), (self.second, self.only_second))
            for name in names
        ]
        warnings = [f"Note: {warning}" for warning in self.warnings]
        return [str(self.first), str(self.second), *warnings, "", *(table or ["no configuration ran in both"]), *only]


def compared(store: Store, one: str, other: str) -> Compared:
    import polars as pl

    from report.pair import side_by_side

    first, second = known_run(store, one), known_run(store, other)
    records, others = (pl.DataFrame(records_now(store, run)) for run in (first, second))
    found = side_by_side(records, others, baseline=baseline_of(first))
    return Compared(
        first=_machine(first),
        second=_machine(second),
        warnings=tuple(_warnings(first, second, versions_of(records), versions_of(others))),
        pairs=found.pairs,
        only_first=found.only_first,
        only_second=found.only_second,
    )


def _machine(run: RunFile) -> Machine:
    return Machine(run_id=run.run_id, machine=run.machine, cpu=run.cpu, cores=run.cores, memory_gb=run.memory_gb)


def _warnings(first: RunFile, second: RunFile, versions: dict[str, str], others: dict[str, str]) -> list[str]:
    """What differs beside the time: a reader has to know before the ratio is believed."""
    found = []
    differing = [name for name in ("machine", "cpu", "cores") if getattr(first, name) != getattr(second, name)]
    if differing:
        found.append(f"the runs differ in {listed(differing)}, so a ratio is of the machines too")
    named = [
        f"{name} ({versions[name]} and {others[name]})"
        for name in sorted(versions.keys() & others.keys())
        if versions[name] != others[name]
    ]
    if named:
        found.append(f"the runs had other versions of {listed(named)}")
    return found
