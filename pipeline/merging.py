"""`yarnstick runs merge`: the records of several machines' runs as one run with one report; nothing is measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from models.probes import MachineProbes
from models.spec import UNKNOWN
from pipeline.brought import bring
from pipeline.opening import open_store
from pipeline.peaks import PROBES, read_probes
from pipeline.reporting import again, known_run, records_below
from pipeline.run_file import (
    RUN,
    RunFile,
    check_free,
    check_run_id,
    clear,
    run_below,
    settings_beside,
    write_run,
)
from report.merge import with_run_id
from report.words import counted, listed
from store.errors import DataError, SettingError, StoreError
from store.local import LocalStore

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.settings import Settings
    from store.protocol import Store

PROFILE = "merge"
MADE_OF = "merge.runs"
# Two records that agree in these are of one measurement, whatever the run is called.
MOMENT = ("machine", "platform", "started_at", "trial", "attempt", "epoch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of the runs that are merged."""

    name: str  # as it was given: an id, or the path of a copied run
    run: RunFile
    records: pa.Table
    probes: tuple[MachineProbes, ...]

    @property
    def frame(self) -> pl.DataFrame:
        return pl.DataFrame(self.records)


def merge_runs(names: Sequence[str], run_id: str, settings: Settings) -> list[str]:
    """Write the run and its report. What to tell of it."""
    store = open_store(settings)
    check_run_id(run_id)
    if len(names) < 2:
        raise SettingError(f"{counted(len(names), 'run')} given; a merge is of two runs or more")
    parts = [_part(store, name) for name in names]
    check_free(store, run_id, name=MADE_OF, value=[*map(_told, parts)])
    for one, other in combinations(parts, 2):
        _refuse_same(one, other)
    _refuse_other_networks(parts)
    clear(store, run_id)
    folder = f"runs/{run_id}"
    for part in parts:
        bring(store, folder, part.run.run_id, part.records)
    if probes := list(_probes(parts)):
        store.write(f"{folder}/{PROBES}", msgspec.json.format(msgspec.json.encode(probes), indent=1) + b"\n")
    write_run(store, _run_file(run_id, settings, parts))
    return [*map(_told, parts), *again(settings, run_id)]


def _part(store: Store, name: str) -> Part:
    """A run of the store by its id, or a copy of a run's directory by its path."""
    path = Path(name).resolve()
    if "/" not in name and (store.exists(f"runs/{check_run_id(name)}") or not (path / RUN).is_file()):
        there, folder = store, f"runs/{name}"
        run = known_run(store, name)
    else:
        there, folder = LocalStore(path.parent), path.name
        found = run_below(there, folder)
        if found is None:
            raise DataError(f"{name} holds no {RUN}; give the id of a run, or the directory of a copied run")
        run = found
    try:
        records = records_below(there, folder, run)
    except StoreError as error:
        raise DataError(f"{name}: {error}") from None
    if run.profile != PROFILE:
        records = with_run_id(records, run.run_id)  # that of a copy may have been changed
    return Part(name=name, run=run, records=records, probes=read_probes(there, folder))


def _refuse_same(one: Part, other: Part) -> None:
    """The same trials twice would count as repeats."""
    both = set(one.frame["run_id"]) & set(other.frame["run_id"])
    if both:
        raise DataError(
            f"{one.name} and {other.name} both hold records of run {listed(sorted(both))}; give each run once, or "
            f"write another run_id into the {RUN} of one of them if they are of different machines"
        )
    begun = other.frame.filter(pl.col("started_at").is_not_null())
    twice = one.frame.join(begun, on=MOMENT, how="semi", nulls_equal=True)
    if twice.height:
        raise DataError(
            f"{one.name} and {other.name} hold the same measurements ({counted(twice.height, 'record')} began at the "
            f"same moment on the same machine); one is a copy of the other: give each run once"
        )


def _refuse_other_networks(parts: Sequence[Part]) -> None:
    """A network's name may stand for another one on another machine, as a user's own module does."""
    known: dict[tuple[str, str], tuple[int, str]] = {}
    for part in parts:
        columns = ("dataset", "network", "parameters")
        frame = part.frame.select(columns).drop_nulls().filter(pl.col("network") != UNKNOWN)
        for dataset, network, parameters in frame.unique(maintain_order=True).rows():
            first, name = known.setdefault((dataset, network), (parameters, part.name))
            if first != parameters:
                raise DataError(
                    f"network {network} on {dataset} has {first:,} parameters in {name} and {parameters:,} in "
                    f"{part.name}: they are different networks under one name; merge runs of the same network only"
                )
    _refuse_other_code(parts)


def _refuse_other_code(parts: Sequence[Part]) -> None:
    """As many parameters are no proof: of a user's own module each record tells which code it was trained with."""
    own = (
        pl.col("network").str.starts_with("torch:") & pl.col("seconds").is_not_null() & pl.col("origin").is_null()
    )  # what was imported is what its file calls it
    found: dict[str, list[tuple[str | None, str]]] = {}
    for part in parts:
        for network, versions in (
            part.frame.filter(own).select("network", "versions").unique(maintain_order=True).rows()
        ):
            found.setdefault(network, []).append((json.loads(versions or "{}").get(network), part.name))
    for network, told in found.items():
        if len({name for _, name in told}) < 2:
            continue
        for code, name in told:
            if code is None:
                raise DataError(
                    f"{name} does not tell which code it trained as {network}, and the name alone may stand for "
                    f"another network; measure it again, or merge runs without it"
                )
            first, earlier = told[0]
            if code != first:
                raise DataError(
                    f"network {network} is other code in {earlier} ({first}) than in {name} ({code}): they are "
                    f"different networks under one name; merge runs of the same network only"
                )


def _probes(parts: Sequence[Part]) -> Iterator[MachineProbes]:
    """Of each machine once."""
    seen = set()
    for probes in (each for part in parts for each in part.probes):
        if (probes.machine, probes.cpu) not in seen:
            seen.add((probes.machine, probes.cpu))
            yield probes


def _run_file(run_id: str, settings: Settings, parts: Sequence[Part]) -> RunFile:
    """What all of them agree on; elsewhere the settings of now count, as for the baseline."""
    runs = [part.run for part in parts]
    first = replace(runs[0], cpu=_named(run.cpu for run in runs), machine=_named(run.machine for run in runs))
    return replace(
        first,
        run_id=run_id,
        profile=PROFILE,
        settings={**settings_beside(settings, _agreed([run.in_force for run in runs])), MADE_OF: [*map(_told, parts)]},
        judged_by={},
        notes=tuple(dict.fromkeys(note for run in runs for note in run.notes)),
        datasets=_agreed([run.datasets for run in runs]),
        rows=_agreed([run.rows for run in runs]),
        trials=sum(run.trials for run in runs),
        cores=_one([run.cores for run in runs]) or 0,
        memory_gb=_one([run.memory_gb for run in runs]) or 0.0,
        commit=_one([run.commit for run in runs]),
        begun_at=datetime.now(UTC),
    )


def _named(names: Iterable[str]) -> str:
    return listed(list(dict.fromkeys(names)))


def _one(values: Sequence[Any]) -> Any:
    return values[0] if all(value == values[0] for value in values) else None


def _agreed(tables: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What no two of them tell differently."""
    every = {key: value for table in tables for key, value in table.items()}
    return {key: value for key, value in every.items() if all(table.get(key, value) == value for table in tables)}


def _told(part: Part) -> str:
    return f"{part.run.run_id} of {part.run.machine}: {counted(part.records.num_rows, 'record')}"
