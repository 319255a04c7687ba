"""What a run was begun with and what its report covers: the files by which it is found again, and its name."""

from __future__ import annotations

import re
import subprocess
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import isclose
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pipeline.settings import PRICES, REFITS, TARGETS, Settings
from store.errors import SettingError, StoreError
from store.protocol import Store
from store.slug import slug

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
LONGEST_PROFILE = 50  # that a run id takes over as it is
RUN = "run.json"
MERGED = "report/merged.json"
PUBLISHED = "report/published.json"
SAME_MEMORY = 0.05  # what firmware and kernel keep of it differs by less from one boot to the next
Decoded = TypeVar("Decoded")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """What a run was begun with; another call of the same id must agree with it."""

    run_id: str
    profile: str
    settings: dict[str, Any]
    datasets: dict[str, str]  # the slug of each one's data
    rows: dict[str, int]  # of train
    trials: int  # that the profile asks for
    machine: str
    cpu: str
    cores: int
    memory_gb: float
    commit: str | None
    begun_at: datetime
    judged_by: dict[str, Any] = field(default_factory=dict)  # given after that, instead of what `settings` says
    notes: tuple[str, ...] = ()  # what a reader of its report has to know, a sentence each

    @property
    def where(self) -> str:
        return f"{self.machine} ({self.cpu}, {self.cores} cores, {self.memory_gb:g} GB)"

    @property
    def in_force(self) -> dict[str, Any]:
        """The settings that its report is made with."""
        return {**self.settings, **self.judged_by}

    @property
    def is_planned(self) -> bool:
        """By a profile; else its records came from elsewhere, and nothing more is to be measured."""
        return any(name.startswith("profile.") for name in self.settings)

    def judged(self, judging: dict[str, Any]) -> RunFile:
        """The same run, its report made with these."""
        changed = {**self.judged_by, **judging}
        told = self.settings
        other = {name: value for name, value in changed.items() if name not in told or told[name] != value}
        return replace(self, judged_by=other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Which trials the report covers, and whether that is all there will be."""

    trials: tuple[str, ...]
    finished: bool


def check_run_id(run_id: str) -> str:
    if not RUN_ID.fullmatch(run_id):
        raise SettingError(f"run id {run_id!r}: use letters, digits, '.', '_' and '-', at most 100")
    return run_id


def read_run(store: Store, run_id: str) -> RunFile | None:
    return run_below(store, f"runs/{check_run_id(run_id)}")


def run_below(store: Store, folder: str) -> RunFile | None:
    """Of a run whose directory may lie anywhere in a store."""
    return _decoded(store, f"{folder}/{RUN}", RunFile)


def read_marker(store: Store, path: str) -> Published | None:
    return _decoded(store, path, Published)


def _decoded(store: Store, path: str, kind: type[Decoded]) -> Decoded | None:
    if not store.exists(path):
        return None
    try:
        return msgspec.json.decode(store.read(path), type=kind)
    except msgspec.MsgspecError as error:
        raise StoreError(f"{store.url}/{path} is damaged ({error}); remove it and run again") from None


def write_run(store: Store, run: RunFile) -> None:
    store.write(f"runs/{run.run_id}/{RUN}", msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")


def check_free(store: Store, run_id: str, *, name: str, value: Any) -> None:
    """Of a run that measures nothing: what the same command left when it was killed is no other run.

    `name` is the setting that tells what it was made of.
    """
    found = read_run(store, run_id)
    if found is None:
        return
    if found.settings.get(name) != value or read_marker(store, f"runs/{run_id}/{PUBLISHED}") is not None:
        raise SettingError(f"run {run_id} is there already; give another --run-id, or remove it first")


def clear(store: Store, run_id: str) -> None:
    """What a killed command left. A run begins with its file, and ends with it."""
    store.remove(f"runs/{run_id}/{RUN}")
    store.remove(f"runs/{run_id}")


def mark_finished(store: Store, run_id: str, name: str, trials: Iterable[str]) -> None:
    """Of a run that measures nothing itself: there is nothing more to come."""
    marker = Published(trials=tuple(sorted(trials)), finished=True)
    store.write(f"runs/{run_id}/{name}", msgspec.json.encode(marker))


def settings_beside(settings: Settings, origin: dict[str, Any]) -> dict[str, Any]:
    """For a run that no profile planned: what its origin had, unless given for this call; the rest is that of now."""
    whole = {**settings.fingerprint(), **origin, **settings.judging}
    return {name: value for name, value in whole.items() if not name.startswith("profile.")}


def differences(one: RunFile, other: RunFile) -> list[str]:
    """Names of the settings and datasets in which two runs measure something else."""
    judging = PRICES if _refits(one) or _refits(other) else {*PRICES, TARGETS}
    keys = [
        key
        for key in {**one.settings, **other.settings}
        if one.settings.get(key) != other.settings.get(key) and key not in judging
    ]
    names = [
        f"the rows of {name}"
        for name in one.datasets.keys() & other.datasets.keys()
        if one.datasets[name] != other.datasets[name]
    ]
    return keys or sorted(names)


def are_alike(one: RunFile, other: RunFile) -> bool:
    """Whether times of both machines may be told as those of one; a name alone makes no other machine."""
    same_memory = isclose(one.memory_gb, other.memory_gb, rel_tol=SAME_MEMORY)
    return same_memory and (one.cpu, one.cores) == (other.cpu, other.cores)


def _refits(run: RunFile) -> bool:
    """Whether its trials train on after the clock until they reach a target."""
    platforms = run.settings.get(f"profile.{run.profile}.platforms", ())
    return bool(run.settings.get(REFITS)) and any(name.startswith("mllib") for name in platforms)


def new_run_id(profile: str) -> str:
    name = profile if RUN_ID.fullmatch(profile) and len(profile) <= LONGEST_PROFILE else slug(profile[:LONGEST_PROFILE])
    return f"{name}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:4]}"


def checkout_commit() -> str | None:
    """Of the checkout that runs, if it is one."""
    top = Path(__file__).parent.parent
    if not (top / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(top), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
