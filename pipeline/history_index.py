"""The index of the history: what it needs of every run in few files, so that 500 runs are not 500 requests.

`history/index/` holds files of lines, an entry a run each. A file is written once, under a name of its own, and removed
only by whoever has all of its entries in a newer one: so writers at the same time lose nothing, and may leave a run in
two files, of which the later entry counts.
"""

from __future__ import annotations

import gzip
import uuid
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from pipeline.run_file import RUN, RunFile, read_run
from report.facts import RunFacts
from report.history_entry import RunEntry, entry_of
from store.errors import StoreError, YarnstickError
from store.protocol import Store

if TYPE_CHECKING:
    import pyarrow as pa

INDEX = "history/index"
ENDING = ".jsonl.gz"
MOST_FILES = 12  # then publishing puts them together; the history does so with any two
LINES = msgspec.json.Decoder(RunEntry)
LOOKS = 5  # at files that others put together meanwhile


def note(store: Store, run: RunFile, records: pa.Table) -> None:
    """After a report: what the history needs of it."""
    add(store, _entry(run, records))


def add(store: Store, entry: RunEntry) -> None:
    put(store, [entry])
    files = _files(store)
    if len(files) > MOST_FILES:
        with suppress(StoreError):  # another one is at it too
            _put_together(store, _read(store, files), files)


def entries(store: Store) -> tuple[list[RunEntry], dict[str, str]]:
    """Of every run of the store, and which runs cannot be read, why. Runs that the index lacks are read and added."""
    known, files = _known(store)
    # Later than the index: else a run that is noted between the two would be put together without its entry.
    there = [entry.name for entry in store.list("runs") if entry.is_directory]
    added, damaged = _lacking(store, [name for name in there if name not in known])
    found = {name: known[name] for name in there if name in known} | {entry.run_id: entry for entry in added}
    if added or len(files) > 1:
        with suppress(StoreError):  # who may only read has the answer all the same
            _put_together(store, found.values(), files)
    return [found[name] for name in there if name in found], damaged


def _known(store: Store) -> tuple[dict[str, RunEntry], list[str]]:
    """What the index holds, and in which files."""
    for look in range(1, LOOKS + 1):
        files = _files(store)
        try:
            return {entry.run_id: entry for entry in _read(store, files)}, files
        except StoreError:
            if look == LOOKS:
                raise
    raise AssertionError


def _files(store: Store) -> list[str]:
    return [f"{INDEX}/{entry.name}" for entry in store.list(INDEX) if entry.name.endswith(ENDING)]


def _read(store: Store, files: Sequence[str]) -> list[RunEntry]:
    """The later entry of each run. A file that is damaged, or of another version, is as if it were not there."""
    found: dict[str, RunEntry] = {}
    for content in store.read_each(files):
        with suppress(OSError, EOFError, zlib.error, msgspec.MsgspecError):
            for entry in LINES.decode_lines(gzip.decompress(content)):
                if entry.run_id not in found or found[entry.run_id].age < entry.age:
                    found[entry.run_id] = entry
    return list(found.values())


def put(store: Store, found: Iterable[RunEntry]) -> None:
    lines = msgspec.json.Encoder().encode_lines(list(found))
    store.write(f"{INDEX}/{uuid.uuid4().hex}{ENDING}", gzip.compress(lines, 6, mtime=0))


def _put_together(store: Store, found: Iterable[RunEntry], files: Sequence[str]) -> None:
    """One file instead of these, which are removed only after it is there."""
    put(store, found)
    for path in files:
        store.remove(path)


def _lacking(store: Store, names: Sequence[str]) -> tuple[list[RunEntry], dict[str, str]]:
    found, damaged = [], {}
    for name in names:
        try:
            found.append(_of_run(store, name))
        except YarnstickError as error:
            damaged[name] = str(error)
        except Exception as error:  # whatever another version's records do to what reads them
            said = f"{type(error).__name__}: {error}".partition("\n")[0]
            damaged[name] = f"run {name} cannot be read ({said}); yarnstick report --run-id {name} makes it anew"
    return found, damaged


def _of_run(store: Store, name: str) -> RunEntry:
    """From its report; a run without one has an entry without times, until its report is published."""
    from pipeline.reporting import merged_records

    run = read_run(store, name)
    if run is None:
        raise StoreError(f"{store.url}/runs/{name} has no {RUN}")
    if run.run_id != name:
        raise StoreError(f"{store.url}/runs/{name} is a copy of run {run.run_id}")
    if store.exists(f"runs/{name}/report/epochs.parquet"):
        return _entry(run, merged_records(store, f"runs/{name}"))
    return RunEntry(
        run_id=name,
        profile=run.profile,
        begun_at=run.begun_at,
        noted_at=datetime.now(UTC),
        attempts=0,
        machine=run.machine,
        cpu=run.cpu,
    )


def _entry(run: RunFile, records: pa.Table) -> RunEntry:
    from pipeline.reporting import baseline_of

    facts = RunFacts(
        run_id=run.run_id,
        profile=run.profile,
        machine=run.machine,
        cpu=run.cpu,
        cores=run.cores,
        memory_gb=run.memory_gb,
        commit=run.commit,
        settings=run.settings,
    )
    return entry_of(records, run=facts, baseline=baseline_of(run), begun_at=run.begun_at, noted_at=datetime.now(UTC))
