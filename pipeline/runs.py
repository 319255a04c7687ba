"""The runs of a store: how far each is, what it found, and what was special about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from pipeline.config import shipped_settings
from pipeline.presence import present
from pipeline.reporting import REPORT, VERDICT, known_run, summary
from pipeline.run_file import PUBLISHED, RUN, RunFile, read_marker, read_run
from pipeline.trials import Trials
from report.words import counted, listed, seconds, title
from store.errors import YarnstickError
from store.protocol import Store

FINISHED = "finished"
MEASURING = "measuring"  # somebody is at it now
FAILED = "failed"  # all was tried and reported, and a trial failed
PARTIAL = "partial"  # what was measured is reported: Ctrl-C, or the minutes were over
INTERRUPTED = "interrupted"  # killed: not all that was measured is reported
DAMAGED = "damaged"
NOTHING = "-"
UNITS = {"epoch": "an epoch", "training": "a training"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A line of the list; all but `finished` is unfinished, and the same command continues it."""

    run_id: str
    profile: str | None
    status: str
    done: int  # trials that ended, whatever came of them
    planned: int | None
    begun_at: datetime | None
    fastest: str | None
    detail: str | None = None  # who measures it, or what is damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """All about one run."""

    state: RunState
    machine: str
    cpu: str
    cores: int
    memory_gb: float
    commit: str | None
    settings: dict[str, Any]  # that are not the shipped ones
    report: str | None  # where the page is
    summary: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        state = self.state
        about = f"run {state.run_id} of profile {state.profile}: {state.status}, {_progress(state)} trials"
        if _progress(state) == NOTHING:
            about = f"run {state.run_id} ({state.profile}): {state.status}, no trial of its own"
        where = f"{self.machine}, {self.cpu}" + (f", {self.cores} cores, {self.memory_gb:g} GB" if self.cores else "")
        changed = [f"  {name} = {value}" for name, value in self.settings.items()]
        return [
            about + (f" ({state.detail})" if state.detail else ""),
            f"begun {_when(state.begun_at)} on {where}",
            *(["settings that are not the shipped ones:", *changed] if changed else ["all settings are as shipped"]),
            *(self.summary or ["no report yet: the same command as before continues the run"]),
        ]


def all_runs(store: Store) -> list[RunState]:
    """The newest first; what cannot be read says so and hides none of the others."""
    found = [_state_or_damage(store, entry.name) for entry in store.list("runs") if entry.is_directory]
    never = datetime.min.replace(tzinfo=UTC)
    return sorted(found, key=lambda state: (state.begun_at or never, state.run_id), reverse=True)


def shown(store: Store, run_id: str) -> Shown:
    run = known_run(store, run_id)
    reported = store.exists(f"runs/{run_id}/{REPORT}/{VERDICT}")
    return Shown(
        state=_state(store, run),
        machine=run.machine,
        cpu=run.cpu,
        cores=run.cores,
        memory_gb=run.memory_gb,
        commit=run.commit,
        settings=changed_settings(run),
        report=str(store.local(f"runs/{run_id}/{REPORT}/report.html")) if reported else None,
        summary=summary(store, run) if reported else [],
    )


def table(runs: Sequence[RunState]) -> list[str]:
    """As text in columns, with a head."""
    if not runs:
        return []
    head = ("run", "profile", "status", "trials", "begun", "fastest")
    rows = [
        (
            run.run_id,
            run.profile or NOTHING,
            run.status,
            _progress(run),
            _when(run.begun_at),
            run.fastest or run.detail or NOTHING,
        )
        for run in runs
    ]
    return columns([head, *rows])


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Cells below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def changed_settings(run: RunFile) -> dict[str, Any]:
    """Those that differ from what the package ships for its profile."""
    shipped = shipped_settings(run.profile).fingerprint()
    return {name: value for name, value in run.in_force.items() if name not in shipped or shipped[name] != value}


def _state_or_damage(store: Store, run_id: str) -> RunState:
    try:
        run = read_run(store, run_id)
        if run is not None:
            return _state(store, replace(run, run_id=run_id))
        damage = f"it has no {RUN}"
    except YarnstickError as error:
        damage = str(error)
    return RunState(
        run_id=run_id,
        profile=None,
        status=DAMAGED,
        done=len(_ended(store, run_id)),
        planned=None,
        begun_at=None,
        fastest=None,
        detail=damage,
    )


def _state(store: Store, run: RunFile) -> RunState:
    ended = _ended(store, run.run_id)
    there = present(store, f"runs/{run.run_id}")
    status = MEASURING if there else _ending(store, run, ended)
    return RunState(
        run_id=run.run_id,
        profile=run.profile,
        status=status,
        done=len({name.rpartition("-a")[0] for name in ended}),
        planned=run.trials,
        begun_at=run.begun_at,
        fastest=_fastest(store, run.run_id),
        detail=f"by {listed([str(each) for each in there])}" if there else None,
    )


def _ending(store: Store, run: RunFile, ended: set[str]) -> str:
    """How it was left by the last who was at it."""
    path = f"runs/{run.run_id}"
    published = read_marker(store, f"{path}/{PUBLISHED}")
    if published is None or set(published.trials) != ended:
        return INTERRUPTED
    if published.finished:
        return FINISHED
    return FAILED if _has_failed(store, path) else PARTIAL


def _has_failed(store: Store, path: str) -> bool:
    trials = Trials(store, f"{path}/trials", invocation="", noisy_repeats=0)
    outcomes = trials.outcomes()
    return bool(trials.failed(outcome.spec for outcome in outcomes))


def _ended(store: Store, run_id: str) -> set[str]:
    return {entry.name for entry in store.list(f"runs/{run_id}/trials") if entry.is_directory}


def _fastest(store: Store, run_id: str) -> str | None:
    """Of the widest comparison, which stands first."""
    path = f"runs/{run_id}/{REPORT}/{VERDICT}"
    if not store.exists(path):
        return None
    try:
        verdict = msgspec.json.decode(store.read(path))
        first, *others = verdict["comparisons"]
        best = first["platforms"][first["fastest"]]
        ranked_by = first.get("ranked_by", "seconds")
        unit = "a pass" if ranked_by == "seconds_per_pass" else UNITS[first["unit"]]
        more = f", and {counted(len(others), 'more comparison')}" if others else ""
        return f"{title(first['fastest'])}, {seconds(best[ranked_by])} {unit} ({first['dataset']}){more}"
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return None  # no comparison had a winner, or a report of another version


def _progress(run: RunState) -> str:
    if run.status == FINISHED and not run.done:
        return NOTHING  # its records were brought from elsewhere
    return f"{run.done}/{NOTHING if run.planned is None else run.planned}"


def _when(moment: datetime | None) -> str:
    return NOTHING if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
