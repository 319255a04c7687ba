"""Replay: from archived event logs and outcomes to a run with records and a report, as if it had just been measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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
from pipeline.opening import open_store
from pipeline.peaks import PROBES
from pipeline.reporting import again
from pipeline.run_file import RUN, RunFile, check_free, clear, settings_beside, write_run
from pipeline.trials import Trials
from report.words import counted, listed
from store.errors import DataError

if TYPE_CHECKING:
    from pipeline.settings import Settings

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
    logs: dict[str, tuple[Path, ...]]  # of trials of ours by their slugs: the report draws their tasks
    recorded: Counter[str]  # trials of each platform whose times are not in an event log


def replay(path: Path, run_id: str, settings: Settings, *, names: Names) -> list[str]:
    """Write the run and its report. What to tell of it."""
    store = open_store(settings)
    check_free(store, run_id, name=MADE_OF, value=str(path.absolute()))
    try:
        sources = list(find(path))
        found = trials(sources, run_id, names=names)
    except OSError as error:
        raise DataError(f"{error.filename or path} cannot be read: {error.strerror}") from None
    if not found.outcomes:
        raise DataError(found.left_out[0] if len(found.left_out) == 1 else _none_of(path, found.left_out))
    clear(store, run_id)
    published = Trials(store, f"runs/{run_id}/trials", invocation="", noisy_repeats=0)
    for outcome in found.outcomes:
        logs = found.logs.get(outcome.spec.slug, ())
        published.publish(outcome, events=b"", logs=_archived(logs))
    run = _run_file(path, run_id, settings, found.outcomes, _origin(sources))
    for file in _probes(sources):
        store.write(f"runs/{run_id}/{PROBES}", file.read_bytes())
    write_run(store, replace(run, notes=as_recorded(found)))
    return [*told(found), *again(settings, run_id)]


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
    found = Replayed(outcomes=[], left_out=[], logs={}, recorded=Counter())
    own, foreign = [], []
    for source in sources:
        try:
            if source.outcome is not None:
                own.append(_own(source.outcome, source.logs, found, run_id=run_id))
                found.logs[source.outcome.spec.slug] = source.logs
            else:
                foreign += foreign_trials(source.logs[0], names, run_id=run_id)
        except DataError as error:
            found.left_out.append(str(error))
    own.sort(key=lambda outcome: outcome.position)
    for outcome in [*own, *_each_once(foreign)]:
        place = len(found.outcomes) + 1
        found.outcomes.append(_numbered(replace(outcome, position=place), found.outcomes))
    return found


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


def _numbered(outcome: Outcome, before: list[Outcome]) -> Outcome:
    """Fits of one configuration are its trials in their order, where nothing else numbers them."""
    taken = {each.spec.slug for each in before}
    for trial in count(outcome.spec.trial or 1):
        spec = replace(outcome.spec, trial=trial)
        if spec.slug not in taken:
            records = tuple(replace(record, trial=trial) for record in outcome.records)
            return replace(outcome, spec=spec, records=records)
    raise AssertionError


def _probes(sources: list[Source]) -> list[Path]:
    """What the machine of a run of ours could do: its report holds the epochs against it."""
    beside = {source.run.with_name(PROBES) for source in sources if source.run}
    return [file for file in beside if file.is_file()] if len(beside) == 1 else []


def _origin(sources: list[Source]) -> RunFile | None:
    """The run that all the logs are of, if there is one."""
    files = {source.run for source in sources}
    if len(files) != 1 or (file := files.pop()) is None:
        return None
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
