"""Replay: from archived event logs and outcomes to a run with records and a report, as if it had just been measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from models.event_files import is_rolling, looks_like_a_log
from models.fits import OWN
from models.outcome import EVENT_LOGS, OUTCOME, Outcome
from models.replayed import Names, foreign_trials, own_trial
from models.spec import TrialSpec
from pipeline.brought import bring, brought
from pipeline.opening import open_store
from pipeline.peaks import PROBES
from pipeline.reporting import again
from pipeline.run_file import RUN, RunFile, check_free, clear, settings_beside, write_run
from pipeline.trials import Trials
from report.merge import with_run_id
from report.words import counted, listed
from store.errors import DataError
from store.local import LocalStore

if TYPE_CHECKING:
    from pipeline.settings import Settings
    from store.protocol import Store

PROFILE = "replay"
MADE_OF = "replay.path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Event logs, and the outcome of the trial that they are of, where it lies beside them."""

    logs: tuple[Path, ...]
    outcome: Outcome | None = None
    run: Path | None = None  # the file that says what the run of the trial was begun with


@dataclass(slots=True, kw_only=True)
class Replayed:
    outcomes: list[Outcome]
    left_out: list[str]  # a sentence each
    sources: list[Source]  # that are in it
    logs: dict[str, tuple[Path, ...]]  # of trials of ours by their slugs: the report draws their tasks
    recorded: Counter[str]  # trials of each platform whose times are not in an event log


def replay(path: Path, run_id: str, settings: Settings, *, names: Names) -> list[str]:
    """Write the run and its report. What to tell of it."""
    store = open_store(settings)
    check_free(store, run_id, name=MADE_OF, value=str(path.absolute()))
    try:
        found = trials(list(find(path)), run_id, names=names)
    except OSError as error:
        raise DataError(f"{error.filename or path} cannot be read: {error.strerror}") from None
    if not found.outcomes:
        raise DataError(found.left_out[0] if len(found.left_out) == 1 else _none_of(path, found.left_out))
    clear(store, run_id)
    published = Trials(store, f"runs/{run_id}/trials", invocation="", noisy_repeats=0)
    for outcome in found.outcomes:
        logs = found.logs.get(outcome.spec.slug, ())
        published.publish(outcome, events=b"", logs=_archived(logs))
    run = _run_file(path, run_id, settings, found.outcomes, _origin(found.sources))
    for file in _probes(found.sources):
        store.write(f"runs/{run_id}/{PROBES}", file.read_bytes())
    lines = told(found) + _bring_along(store, run_id, path, found.sources)
    write_run(store, replace(run, notes=as_recorded(found)))
    return [*lines, *again(settings, run_id)]


def find(path: Path) -> Iterator[Source]:
    """An event log, the trials of a run of ours, or all of these below a directory."""
    if not path.exists():
        raise DataError(f"{path}: no such file or directory; give an event log or a directory with event logs")
    if (trial := _trial_around(path.absolute())) is not None:
        yield _trial(trial)
    elif path.is_dir() and not is_rolling(path):
        sources = list(_below(path, seen=set()))
        if not sources:
            raise DataError(
                f"{path} holds no event log: Spark's are files of JSON lines, maybe compressed with zstd, lz4 or gzip, "
                f"or directories eventlog_v2_<application>"
            )
        yield from sources
    else:
        yield Source(logs=(path,))


def _trial_around(path: Path) -> Path | None:
    """The directory of a trial of ours, where `path` is its log or the directory of its logs."""
    for inside in (path, path.parent):
        if inside.name == EVENT_LOGS and (inside.parent / OUTCOME).is_file():
            return inside.parent
    return None


def _below(folder: Path, *, seen: set[Path]) -> Iterator[Source]:
    """Links are followed, each directory once."""
    if (real := folder.resolve()) in seen:
        return
    seen.add(real)
    if (folder / OUTCOME).is_file():
        yield _trial(folder)
        return
    for child in sorted(folder.iterdir()):
        if child.name.startswith("."):
            continue
        if child.is_dir():
            if is_rolling(child):
                yield Source(logs=(child,))
            else:
                yield from _below(child, seen=seen)
        elif child.is_file() and looks_like_a_log(child):
            yield Source(logs=(child,))


def _trial(folder: Path) -> Source:
    try:
        outcome = Outcome.decode((folder / OUTCOME).read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{folder / OUTCOME} is damaged ({error}); remove it to replay the log without it") from None
    below = folder / EVENT_LOGS
    logs = sorted(child for child in below.iterdir() if not child.name.startswith(".")) if below.is_dir() else []
    run = folder.parent.parent / RUN
    return Source(logs=tuple(logs), outcome=outcome, run=run if run.is_file() else None)


def trials(sources: list[Source], run_id: str, *, names: Names) -> Replayed:
    """Of several logs, one that cannot be used does not spoil the others; it is told."""
    found = Replayed(outcomes=[], left_out=[], sources=[], logs={}, recorded=Counter())
    own: dict[Hashable, list[tuple[Source, Outcome]]] = {}  # by their runs
    foreign: list[Outcome] = []
    copies = _Copies(sources)
    for source in sources:
        try:
            if source.outcome is None:
                foreign += foreign_trials(source.logs[0], names, run_id=run_id)
            elif copies.has(source.outcome, source.run):
                continue
            else:
                trial = _own(source.outcome, source.logs, found, run_id=run_id)
                own.setdefault(copies.add(source.outcome, source.run), []).append((source, trial))
            found.sources.append(source)
        except DataError as error:
            found.left_out.append(str(error))
    found.left_out += copies.told()
    for source, outcome in _one_after_the_other(own.values()):
        found.logs[outcome.spec.slug] = source.logs
        found.outcomes.append(outcome)
    taken = {(outcome.spec.configuration, outcome.spec.trial) for outcome in found.outcomes}
    found.outcomes += _in_their_order(_each_once(foreign), taken)
    found.outcomes = [replace(outcome, position=place) for place, outcome in enumerate(found.outcomes, 1)]
    return found


class _Copies:
    """Which trials were there before: each counts once, in however many copies of its run it lies."""

    def __init__(self, sources: list[Source]) -> None:
        self._runs = {source.run: _read_run(source.run) for source in sources if source.run}
        self._known: set[Hashable] = set()
        self._left_out = 0

    def has(self, outcome: Outcome, run: Path | None) -> bool:
        found = not self._known.isdisjoint(self._marks(outcome, run))
        self._left_out += found
        return found

    def add(self, outcome: Outcome, run: Path | None) -> Hashable:
        """From now on it is known. What its run is told by."""
        self._known.update(self._marks(outcome, run))
        return self._run_of(outcome, run)

    def told(self) -> list[str]:
        if not self._left_out:
            return []
        return [f"{counted(self._left_out, 'trial')} found again, as in a copy of a run: each counts once"]

    def _marks(self, outcome: Outcome, run: Path | None) -> Iterator[Hashable]:
        """Of one measurement are two with the same place in one run, or that began at the same moment."""
        first, spec = outcome.records[0], outcome.spec
        yield self._run_of(outcome, run), spec.slug
        if first.started_at is not None:
            yield first.machine, spec.configuration, first.started_at

    def _run_of(self, outcome: Outcome, run: Path | None) -> Hashable:
        begun = self._runs[run] if run else None
        return outcome.records[0].run_id, outcome.records[0].machine, begun and begun.begun_at


def _own(outcome: Outcome, logs: tuple[Path, ...], found: Replayed, *, run_id: str) -> Outcome:
    """Timed again where its times are those of MLlib's jobs; all other platforms have clocks of their own."""
    if logs and OWN.fullmatch(outcome.spec.slug):
        return own_trial(outcome, logs, run_id=run_id)
    found.recorded[outcome.spec.platform] += 1
    return replace(outcome, records=tuple(replace(record, run_id=run_id) for record in outcome.records))


def _archived(logs: tuple[Path, ...]) -> dict[str, bytes]:
    files = [file for log in logs for file in ([log] if log.is_file() else sorted(log.rglob("*"))) if file.is_file()]
    return {f"{EVENT_LOGS}/{file.relative_to(logs[0].parent).as_posix()}": file.read_bytes() for file in files}


def _each_once(outcomes: list[Outcome]) -> list[Outcome]:
    """In the order in which they began. Logs of one application, archived at several times, have some fits twice."""
    best: dict[tuple[str, str], Outcome] = {}
    for outcome in outcomes:
        key = (outcome.invocation, str(outcome.records[0].started_at))
        if key not in best or _told_by(outcome) > _told_by(best[key]):
            best[key] = outcome
    return [best[key] for key in sorted(best, key=lambda key: key[1])]


def _told_by(outcome: Outcome) -> tuple[bool, int]:
    return outcome.outcome != "failed", len(outcome.records)


def _one_after_the_other(runs: Iterable[list[tuple[Source, Outcome]]]) -> Iterator[tuple[Source, Outcome]]:
    """The trials of each run are numbered on from those of the runs before, with all of their attempts."""
    last = 0
    for run in runs:
        before = last
        for source, outcome in sorted(run, key=lambda pair: pair[1].position):
            numbered = _numbered(outcome, before + outcome.spec.trial)
            if before:
                numbered = replace(numbered, group=outcome.logged_as)
            last = max(last, numbered.spec.trial)
            yield source, numbered


def _in_their_order(fits: list[Outcome], taken: set[tuple[str, int]]) -> Iterator[Outcome]:
    """Fits of one configuration are its trials in their order; a further attempt is of the trial that is begun."""
    latest: dict[tuple[str, int], TrialSpec] = {}
    for outcome in fits:
        spec = outcome.spec
        whole = spec.configuration, spec.trial
        before = latest.get(whole)
        if before is not None and before.attempt < spec.attempt:
            trial = before.trial
        else:
            trial = next(each for each in count(spec.trial or 1) if (spec.configuration, each) not in taken)
        taken.add((spec.configuration, trial))
        numbered = _numbered(outcome, trial)
        latest[whole] = numbered.spec
        yield numbered


def _numbered(outcome: Outcome, trial: int) -> Outcome:
    records = tuple(replace(record, trial=trial) for record in outcome.records)
    return replace(outcome, spec=replace(outcome.spec, trial=trial), records=records)


def _probes(sources: list[Source]) -> list[Path]:
    """What the machine of a run of ours could do: its report holds the epochs against it."""
    beside = {source.run.with_name(PROBES) for source in sources if source.run}
    return [file for file in beside if file.is_file()] if len(beside) == 1 else []


def _bring_along(store: Store, run_id: str, path: Path, sources: list[Source]) -> list[str]:
    """What was imported into runs that are replayed whole: it is beside what they measured, here as there."""
    lines = []
    top = path.resolve()
    for folder in sorted({source.run.parent.resolve() for source in sources if source.run}):
        tables = list(brought(LocalStore(folder.parent), folder.name)) if folder.is_relative_to(top) else []
        for records in tables:
            bring(store, f"runs/{run_id}", folder.name, with_run_id(records, run_id))
        if tables:
            lines.append(f"{counted(sum(map(len, tables)), 'imported timing')} of {folder.name} as imported")
    return lines


def _origin(sources: list[Source]) -> RunFile | None:
    """The run that all the logs are of, if there is one."""
    files = {source.run for source in sources}
    file = files.pop() if len(files) == 1 else None
    return None if file is None else _read_run(file)


def _read_run(file: Path) -> RunFile | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=RunFile)
    except (ValueError, RecursionError):
        return None  # its trials tell enough


def _run_file(path: Path, run_id: str, settings: Settings, outcomes: list[Outcome], origin: RunFile | None) -> RunFile:
    records = [record for outcome in outcomes for record in outcome.records]
    had = {} if origin is None else origin.in_force
    said = {**settings_beside(settings, had), MADE_OF: str(path.absolute())}
    if origin is not None:
        return replace(
            origin,
            run_id=run_id,
            profile=PROFILE,
            settings=said,
            judged_by={},
            trials=len(outcomes),
            begun_at=datetime.now(UTC),
        )
    return RunFile(
        run_id=run_id,
        profile=PROFILE,
        settings=said,
        datasets={},
        rows={record.dataset: record.rows for record in records if record.rows is not None},
        trials=len(outcomes),
        machine=records[0].machine,
        cpu=records[0].cpu or "unknown",
        cores=max((record.granted_cores or 0 for record in records), default=0),
        memory_gb=records[0].machine_memory_gb or 0.0,
        commit=records[0].commit,
        begun_at=datetime.now(UTC),
    )


def as_recorded(found: Replayed) -> tuple[str, ...]:
    """What the report says of those."""
    if not found.recorded:
        return ()
    trials = [f"{counted(number, 'trial')} of {platform}" for platform, number in sorted(found.recorded.items())]
    return (f"as recorded, not timed again: {listed(trials)}, as no event log of MLlib has their times",)


def told(found: Replayed) -> list[str]:
    """What a reader has to know of it, a line each."""
    records = [record for outcome in found.outcomes for record in outcome.records]
    epochs = sum(record.seconds is not None for record in records)
    lines = [f"{counted(len(found.outcomes), 'trial')}, {counted(epochs, 'epoch')}"]
    lines += [f"{outcome.spec.slug}: {outcome.reason}" for outcome in found.outcomes if outcome.reason]
    lines += sorted({outcome.note for outcome in found.outcomes if outcome.note})
    lines += as_recorded(found)
    lines += [f"left out: {sentence}" for sentence in found.left_out]
    unknown = [name for name in ("dataset", "network") if any(getattr(each, name) == "unknown" for each in records)]
    if unknown:
        options = ", ".join(f"--{name}" for name in unknown)
        lines.append(
            f"Spark's event log does not tell {' and '.join(unknown)}: called unknown; {options} and --rows name them"
        )
    return lines


def _none_of(path: Path, left_out: list[str]) -> str:
    return f"{path}: none of {counted(len(left_out), 'log')} can be used; the first: {left_out[0]}"
