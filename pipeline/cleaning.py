"""`yarnstick runs clean`: what dead processes left, and whole runs that are named or old; never one at work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipeline import warm
from pipeline.opening import open_store
from pipeline.presence import gone, present
from pipeline.reporting import nearest_runs
from pipeline.run_file import check_run_id, read_run
from pipeline.settings import Settings
from pipeline.trials import Trials
from report.words import counted, listed
from store.errors import StoreError, YarnstickError
from store.local import LocalStore
from store.protocol import Store
from store.publish import temporary_name

UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")
WORK = "work"  # in the cache: of the processes that train


@dataclass(frozen=True, slots=True, kw_only=True)
class Removable:
    what: str
    store: Store
    path: str
    bytes: int
    is_run: bool = False


def clean(settings: Settings, run_ids: Sequence[str], *, older_than_days: float | None, dry_run: bool) -> Iterator[str]:
    """Removes, and says a line for each; with `dry_run` it only says."""
    store = open_store(settings)
    named = [_named(store, run_id) for run_id in dict.fromkeys(run_ids)]
    old = [] if older_than_days is None else _old(store, days=older_than_days)
    total = 0
    removed = 0
    for each in [*leftovers(settings), *named, *(run for run in old if run.path not in {run.path for run in named})]:
        if not dry_run:
            _remove(each)
        removed, total = removed + 1, total + each.bytes
        yield f"{'would remove' if dry_run else 'removed'} {each.what}: {size(each.bytes)}"
    yield (
        f"{'would free' if dry_run else 'freed'} {size(total)} of {counted(removed, 'item')}"
        if removed
        else "nothing to remove"
    )


def leftovers(settings: Settings) -> list[Removable]:
    """Of dead processes, in the store and where the processes that train work."""
    store = open_store(settings)
    found = []
    for place, url in ((store, store.url), *((LocalStore(path), str(path)) for path in _working_places(settings))):
        for entry in place.leftovers():
            what = f"{url}/{entry.name}, left by a process that is gone"
            found.append(Removable(what=what, store=place, path=entry.name, bytes=entry.bytes))
    for run in store.list("runs"):
        for path in gone(store, f"runs/{run.name}"):
            what = f"{store.url}/{path}, the note of a process that is gone"
            found.append(Removable(what=what, store=store, path=path, bytes=0))
    return found


def size(number: int) -> str:
    """`812 bytes`, `4.1 MB`."""
    power = 0
    value = float(number)
    while value >= 1000 and power < len(UNITS) - 1:
        value, power = value / 1000, power + 1
    return f"{number} bytes" if power == 0 else f"{value:.1f} {UNITS[power]}"


def _working_places(settings: Settings) -> list[Path]:
    return [settings.main.cache / WORK, settings.main.cache / warm.FOLDER]


def _named(store: Store, run_id: str) -> Removable:
    """A run that somebody names goes even if it is damaged, but not while it is measured."""
    path = f"runs/{check_run_id(run_id)}"
    if not any(entry.name == run_id for entry in store.list("runs")):
        raise StoreError(f"run {run_id} is not in {store.url}; {nearest_runs(store, run_id)}")
    at_work = present(store, path)
    if at_work:
        raise StoreError(
            f"run {run_id} is being measured by {listed([str(each) for each in at_work])}; end that first, "
            f"or wait until it has ended"
        )
    return _run(store, run_id)


def _old(store: Store, *, days: float) -> list[Removable]:
    """Runs to which nobody added anything since; one that cannot be read is for a person to look at."""
    limit = datetime.now(UTC) - timedelta(days=days)
    found = []
    for entry in store.list("runs"):
        path = f"runs/{entry.name}"
        try:
            if (last := _last_moment(store, entry.name)) and last < limit and not present(store, path):
                found.append(_run(store, entry.name))
        except YarnstickError:
            continue
    return found


def _last_moment(store: Store, run_id: str) -> datetime | None:
    """When the run was begun, or its last trial."""
    run = read_run(store, run_id)
    if run is None:
        return None
    outcomes = Trials(store, f"runs/{run_id}/trials", invocation="", noisy_repeats=0).outcomes()
    begun = (record.started_at for outcome in outcomes for record in outcome.records)
    return max([run.begun_at, *(moment for moment in begun if moment is not None)])


def _run(store: Store, run_id: str) -> Removable:
    path = f"runs/{run_id}"
    return Removable(what=f"run {run_id}", store=store, path=path, bytes=_bytes(store, path), is_run=True)


def _bytes(store: Store, path: str) -> int:
    """Of all files below."""
    return sum(
        _bytes(store, f"{path}/{entry.name}") if entry.is_directory else entry.bytes for entry in store.list(path)
    )


def _remove(each: Removable) -> None:
    """A run vanishes by one rename: one that is half removed would look like a damaged one."""
    path = each.path
    if each.is_run:
        path = f"runs/{temporary_name()}"
        if not each.store.rename(each.path, path):
            raise StoreError(f"{each.store.url}/{each.path} cannot be removed: {path} is in its way; try again")
    each.store.remove(path)
