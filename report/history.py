"""Runs of one profile over time: for each configuration its levels, where they changed, and what the newest run is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any, Literal

import numpy as np

from report.changes import WINDOW, Change, Size, Test, changes, newest_against
from report.history_entry import OF_CONFIGURATION, Measured, RunEntry
from report.statistics import LEVEL, holm
from report.words import label, period, solver, varying

MOST_SETTINGS = 4  # named one by one, of those that differ between two runs
Standing = Literal["slower", "faster", "the same", "too few", "alone", "no time", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A configuration in one run."""

    run_id: str
    begun_at: datetime
    values: tuple[float, ...]  # seconds of its ranked trials; none where it has no time
    noisy: int
    status: str
    measured: Measured

    @property
    def mean(self) -> float | None:
        return float(np.mean(self.values)) if self.values else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A change, by its runs, and what else changed between them."""

    run_id: str
    begun_at: datetime
    before: str  # the last run before it that has a time
    size: Size
    p: float
    beside: tuple[str, ...]

    @property
    def slower(self) -> bool:
        return self.size.ratio > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """What may be said of a configuration in the newest run."""

    standing: Standing
    size: Size | None = None
    p: float | None = None  # Holm's, over all configurations of the newest run that were tested
    since: Shift | None = None  # where it was slower or faster already before the newest run
    against: int = 0  # earlier runs that it was held against
    last: str | None = None  # the last of these
    trials: tuple[int, int] = (0, 0)  # of those and of the newest
    beside: tuple[str, ...] = ()  # what else changed since the last of these
    spread_known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One configuration on one machine, the oldest run first."""

    name: str
    unit: str  # `an epoch`
    identity: dict[str, Any]
    machine: str
    cpu: str | None
    points: tuple[Point, ...]
    shifts: tuple[Shift, ...]
    newest: Newest

    @property
    def timed(self) -> list[Point]:
        return [point for point in self.points if point.values]

    @property
    def moved(self) -> list[int]:
        """Where times changed, counted in the runs that have a time."""
        names = {moved.run_id for moved in self.shifts}
        return [n for n, point in enumerate(self.timed) if point.run_id in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """A run, and in what it differs from the one before it on the same machine."""

    entry: RunEntry
    before: str | None
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    profile: str
    runs: tuple[Surroundings, ...]  # the oldest first
    series: tuple[Series, ...]  # what is slower first, then faster
    since: str | None = None

    @property
    def newest(self) -> RunEntry:
        return self.runs[-1].entry

    @property
    def regressions(self) -> list[Series]:
        return [each for each in self.series if each.newest.standing == "slower"]

    @property
    def improvements(self) -> list[Series]:
        return [each for each in self.series if each.newest.standing == "faster"]


Key = tuple[Any, ...]
KEY = (*OF_CONFIGURATION, "whole_epochs", "cpu")
ORDER: tuple[Standing, ...] = ("slower", "faster", "the same", "too few", "alone", "no time", "absent")


def history(entries: Sequence[RunEntry], *, profile: str, since: str | None = None) -> History:
    """Of the runs of one profile; at least one. Runs before `since` are not looked at."""
    runs = sorted(entries, key=lambda entry: (entry.begun_at, entry.run_id))
    names = [entry.run_id for entry in runs]
    runs = runs[names.index(since) if since in names else 0 :]
    by_id = {entry.run_id: entry for entry in runs}
    found = _grouped(runs)
    series = [_bare(key, places, name) for (key, places), name in zip(found.items(), _names(found), strict=True)]
    changed = changes([[point.values for point in each.timed] for each in series])
    series = [
        replace(each, shifts=tuple(_shifts(each.timed, moved, by_id)))
        for each, moved in zip(series, changed, strict=True)
    ]
    told = _told(series, changed, runs[-1], by_id)
    series = [replace(each, newest=newest) for each, newest in zip(series, told, strict=True)]
    series.sort(key=lambda each: ORDER.index(each.newest.standing))
    return History(profile=profile, runs=tuple(_surroundings(runs)), series=tuple(series), since=since)


def differences(before: RunEntry, after: RunEntry) -> tuple[str, ...]:
    """What else is not the same in two runs, each as `name old to new`."""
    found = []
    for name in ("machine", "cpu", "cores"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            found.append(f"{name} {_said(old)} to {_said(new)}")
    if _memory(before.memory_gb) != _memory(after.memory_gb):
        found.append(f"memory {_said(_memory(before.memory_gb))} to {_said(_memory(after.memory_gb))} GB")
    if before.commit != after.commit:
        old, new = (str(each.commit)[:10] if each.commit else "none" for each in (before, after))
        found.append(f"commit {old} to {new}")
    for name in sorted(before.versions.keys() | after.versions.keys()):
        old, new = before.versions.get(name), after.versions.get(name)
        if old != new:
            found.append(f"{name} {_said(old)} to {_said(new)}")
    settings = sorted(before.settings.keys() | after.settings.keys())
    other = [name for name in settings if before.settings.get(name) != after.settings.get(name)]
    found += [
        f"{name} {_said(before.settings.get(name))} to {_said(after.settings.get(name))}"
        for name in other[:MOST_SETTINGS]
    ]
    if len(other) > MOST_SETTINGS:
        found.append(f"{len(other) - MOST_SETTINGS} more settings")
    return tuple(found)


def _said(value: Any) -> str:
    if value is None or value in ("", []):
        return "none"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _memory(gigabytes: float | int | str | None) -> int | None:
    """Whole GB: a kernel keeps a little more or less for itself, and that is no other machine."""
    return None if gigabytes is None else round(float(gigabytes))


def _grouped(runs: Sequence[RunEntry]) -> dict[Key, list[tuple[RunEntry, Measured]]]:
    """By configuration, machine and processor: times of different ones never stand in one series."""
    found: dict[Key, list[tuple[RunEntry, Measured]]] = {}
    for entry in runs:
        for measured in entry.measured:
            identity = measured.identity | {"machine_memory_gb": _memory(measured.identity.get("machine_memory_gb"))}
            key = (*(identity.get(name) for name in OF_CONFIGURATION), measured.whole_epochs, measured.cpu)
            found.setdefault(key, []).append((entry, measured))
    return found


def _bare(key: Key, places: Sequence[tuple[RunEntry, Measured]], name: str) -> Series:
    row = dict(zip(KEY, key, strict=True))
    cpu = row.pop("cpu")
    timed = [measured for _, measured in places if measured.seconds]
    passes = {measured.passes for measured in timed}
    by_pass = (len(passes) > 1 or any(each.by_pass for each in timed)) and all(each.seconds_per_pass for each in timed)
    points = tuple(_point([*here], by_pass=by_pass) for _, here in groupby(places, key=lambda place: place[0].run_id))
    return Series(
        name=name,
        unit=period(row, by_pass=by_pass),
        identity=row,
        machine=row["machine"],
        cpu=cpu,
        points=points,
        shifts=(),
        newest=Newest(standing="absent"),
    )


def _point(here: Sequence[tuple[RunEntry, Measured]], *, by_pass: bool) -> Point:
    """A run is never held against itself: what it has of several runs that were merged are trials of one."""
    entry, last = here[-1]
    every = [measured for _, measured in here]
    return Point(
        run_id=entry.run_id,
        begun_at=entry.begun_at,
        values=tuple(value for each in every for value in (each.seconds_per_pass if by_pass else each.seconds)),
        noisy=sum(each.noisy for each in every),
        status="; ".join(dict.fromkeys(each.status for each in every)),
        measured=last,
    )


def _names(keys: Sequence[Key] | dict[Key, Any]) -> list[str]:
    """What is said of each: its resources, and what it needs to be told from the others."""
    rows = [dict(zip(KEY, key, strict=True)) | {"run_id": None} for key in keys]
    differing = varying(rows)
    many = {
        name: len({tuple(row[part] for part in parts) for row in rows}) > 1
        for name, parts in {
            "solver": ("solver", "batch_size"),
            "rows": ("rows",),
            "subject": ("dataset", "network"),
            "period": ("unit", "whole_epochs"),
        }.items()
    }
    processors: dict[str, set[str | None]] = {}
    for row in rows:
        processors.setdefault(row["machine"], set()).add(row["cpu"])
    found = []
    for row in rows:
        parts = [label(row, varying=differing)]
        parts += [solver(row)] if many["solver"] else []
        parts += [f"{row['rows']:,} rows"] if many["rows"] and row["rows"] is not None else []
        parts += [f"{row['dataset']} {row['network']}"] if many["subject"] else []
        parts += [period(row)] if many["period"] else []
        parts += [str(row["cpu"] or "processor not known")] if len(processors[row["machine"]]) > 1 else []
        found.append(", ".join(parts))
    return found


def _shifts(timed: Sequence[Point], found: Sequence[Change], by_id: dict[str, RunEntry]) -> list[Shift]:
    return [
        Shift(
            run_id=timed[change.at].run_id,
            begun_at=timed[change.at].begun_at,
            before=timed[change.at - 1].run_id,
            size=change.size,
            p=change.p,
            beside=differences(by_id[timed[change.at - 1].run_id], by_id[timed[change.at].run_id]),
        )
        for change in found
    ]


def _told(
    series: Sequence[Series], changed: Sequence[Sequence[Change]], newest: RunEntry, by_id: dict[str, RunEntry]
) -> list[Newest]:
    """Of every series what the newest run is in it."""
    tests = [_test(each, moved, newest) for each, moved in zip(series, changed, strict=True)]
    corrected = holm([np.nan if test is None or not test.can_tell else test.p for _, test in tests])
    return [
        _standing(each, moved, newest, by_id, window, test, None if np.isnan(p) else float(p))
        for each, moved, (window, test), p in zip(series, changed, tests, corrected, strict=True)
    ]


def _test(each: Series, moved: Sequence[Change], newest: RunEntry) -> tuple[list[Point], Test | None]:
    """The newest run against a window of those before it, back to where times last changed."""
    timed = each.timed
    if len(timed) < 2 or timed[-1].run_id != newest.run_id:
        return [], None
    last = len(timed) - 1
    begin = max([0, last - WINDOW, *(change.at for change in moved if change.at < last)])
    window = timed[begin:last]
    return window, newest_against([point.values for point in window], timed[last].values)


def _standing(
    each: Series,
    moved: Sequence[Change],
    newest: RunEntry,
    by_id: dict[str, RunEntry],
    window: Sequence[Point],
    test: Test | None,
    p: float | None,
) -> Newest:
    if each.points[-1].run_id != newest.run_id:
        return Newest(standing="absent")
    if not each.points[-1].values:
        return Newest(standing="no time")
    if test is None:
        return Newest(standing="alone")
    told = Newest(
        standing="too few",
        size=test.size,
        p=p,
        against=len(window),
        last=window[-1].run_id,
        trials=(sum(len(point.values) for point in window), len(each.points[-1].values)),
        beside=differences(by_id[window[-1].run_id], newest),
        spread_known=test.runs is not None,
    )
    if p is not None and p < LEVEL and test.size.matters:
        return replace(told, standing="slower" if test.size.ratio > 1 else "faster")
    if moved and len(each.timed) - moved[-1].at <= WINDOW:
        # A change of these last runs: running once more does not undo it.
        return replace(told, standing="slower" if moved[-1].size.ratio > 1 else "faster", since=each.shifts[-1])
    return told if p is None else replace(told, standing="the same")


def _surroundings(runs: Sequence[RunEntry]) -> list[Surroundings]:
    found = []
    latest: dict[tuple[str, str | None], RunEntry] = {}
    for entry in runs:
        before = latest.get((entry.machine, entry.cpu))
        changed = () if before is None else differences(before, entry)
        found.append(Surroundings(entry=entry, before=before.run_id if before else None, changed=changed))
        latest[entry.machine, entry.cpu] = entry
    return found
