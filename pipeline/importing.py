"""`yarnstick import`: timings of other machines and studies into a run, beside what was measured there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.record import EpochRecord
from models.spec import UNKNOWN
from pipeline.brought import FOLDER, bring, brought
from pipeline.opening import open_store
from pipeline.reporting import again, known_run
from pipeline.run_file import MERGED, PUBLISHED, RunFile, mark_finished, read_run, without_profile, write_run
from pipeline.timings import LONGEST_TEXT, configuration, same, timings
from report.merge import table_of
from report.words import counted, listed
from store.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.settings import Settings

PROFILE = "import"
MOST_BYTES = 64 * 2**20


def import_timings(path: Path, run_id: str, settings: Settings) -> list[str]:
    """All rows or none, into a run that is there or a new one; then its report. What to tell of it."""
    store = open_store(settings)
    folder = f"runs/{run_id}"
    run = None if read_run(store, run_id) is None else known_run(store, run_id)
    # A run begins with its file: what an import that was killed left is no part of one.
    known = {} if run is None else _known(brought(store, folder))
    records = timings(path.name, _content(path), run_id=run_id, known=known)
    if run is None:
        store.remove(f"{folder}/{FOLDER}")
    bring(store, folder, path.name, table_of(records))
    if run is None:
        run = _run_file(run_id, settings, records)
        write_run(store, run)
    lines = again(settings, run_id)
    if run.profile == PROFILE:
        for marker in (MERGED, PUBLISHED):
            mark_finished(store, run_id, marker, ())
    return [*_told(path.name, records), *lines]


def _content(path: Path) -> bytes:
    if not path.name.isprintable() or len(path.name) > LONGEST_TEXT:
        raise DataError(f"{path.name!a} stands in every row of the report: give the file a name that can be read")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise DataError(f"{path} has more than {MOST_BYTES:,} bytes; import it in several files")
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def _known(tables: Iterable[pa.Table]) -> dict[tuple[Any, ...], str]:
    """What earlier imports of the same run told already."""
    return {
        same(record): f"what was imported from {record.origin}"
        for table in tables
        for row in table.to_pylist()
        for record in [EpochRecord(**row)]
        if record.origin is not None
    }


def _run_file(run_id: str, settings: Settings, records: Sequence[EpochRecord]) -> RunFile:
    """Of a run of imports alone: it plans no trial, and nothing is known of its machines."""
    return RunFile(
        run_id=run_id,
        profile=PROFILE,
        settings=without_profile(settings.fingerprint()),
        datasets={},
        rows={},
        trials=0,
        machine=listed(list(dict.fromkeys(record.machine for record in records))),
        cpu=UNKNOWN,
        cores=0,
        memory_gb=0.0,
        commit=None,
        begun_at=datetime.now(UTC),
    )


def _told(name: str, records: Sequence[EpochRecord]) -> list[str]:
    timed = sum(record.seconds is not None for record in records)
    without = len(records) - timed
    rest = f", {counted(without, 'row')} without a time" if without else ""
    configurations = len({configuration(record) for record in records})
    return [f"imported {counted(timed, 'timing')} of {counted(configurations, 'configuration')} from {name}{rest}"]
