"""`yarnstick import`: timings of other machines and studies into a run, beside what was measured there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.record import EpochRecord
from models.spec import UNKNOWN
from pipeline.brought import FOLDER, bring, brought, is_brought
from pipeline.opening import open_store
from pipeline.reporting import again, known_run
from pipeline.run_file import RunFile, read_run, settings_beside, write_run
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
    is_new = read_run(store, run_id) is None
    if not is_new:
        known_run(store, run_id)
    content = _content(path)
    records = timings(path.name, content, run_id=run_id)
    table = table_of(records)
    if is_new:
        store.remove(f"{folder}/{FOLDER}")  # what an import that was killed left: a run begins with its file
    # One that was killed later may have brought them.
    repeated = is_brought(store, folder, path.name, table)
    if not repeated:
        if known := _known(brought(store, folder)):
            timings(path.name, content, run_id=run_id, known=known)
        bring(store, folder, path.name, table)
    if is_new:
        write_run(store, _run_file(run_id, settings, records))
    return [_told(path.name, records, repeated=repeated), *again(settings, run_id)]


def _content(path: Path) -> bytes:
    if not path.name.isprintable() or len(path.name) > LONGEST_TEXT:
        raise DataError(f"{path.name!a} stands in every row of the report: give the file a name that can be read")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise DataError(f"{path} has more than {MOST_BYTES:,} bytes; import it in several files")
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}; name a CSV file of timings, as docs/studies.md describes it"
        ) from None


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
        settings=settings_beside(settings, {}),
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


def _told(name: str, records: Sequence[EpochRecord], *, repeated: bool) -> str:
    if repeated:
        return f"the {counted(len(records), 'timing')} of {name} were there already, and none was added"
    timed = sum(record.seconds is not None for record in records)
    without = len(records) - timed
    rest = f", {counted(without, 'row')} without a time" if without else ""
    configurations = len({configuration(record) for record in records})
    return f"imported {counted(timed, 'timing')} of {counted(configurations, 'configuration')} from {name}{rest}"
