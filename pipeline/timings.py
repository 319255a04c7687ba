"""A CSV of timings from elsewhere, read row by row: what a column may hold, and which row is the first wrong one."""

from __future__ import annotations

import csv
import difflib
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

from models.record import IDENTITY, EpochRecord
from models.spec import FULL_BATCH_SOLVERS, SOLVERS, UNKNOWN, Network
from store.errors import DataError, SettingError

NEEDED = ("platform", "dataset", "seconds")
LONGEST_TEXT = 200
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
LETTERS = {re.sub("[^a-z]", "", name): name for name in SOLVERS}
WHOLE = re.compile(r"\d{1,15}(\.0*)?", re.ASCII)
ON_GPU = "-cuda"  # how a platform's name ends that trains there
MOST_PARAMETERS = 10**15  # of a network: counts of an epoch's work stay exact
# What a status may begin with, and what it is then in a record. Any other says why there is no time.
OUTCOMES = {
    "ok": "ok",
    "failed": "failed",
    "diverged": "diverged",
    "tainted": "tainted",
    "unavailable": "unavailable",
    "not run": "unavailable",
}
# What tells configurations apart, and the rows of one of them.
OF_CONFIGURATION = attrgetter(*(name for name in IDENTITY if name not in ("run_id", "origin")))
OF_RECORD = attrgetter("trial", "epoch")
Value = TypeVar("Value", int, float)


def timings(
    name: str, content: bytes, *, run_id: str, known: Mapping[tuple[Any, ...], str] | None = None
) -> list[EpochRecord]:
    """Every row as a record; DataError for the first that is not as it must be. `name` is that of the file.

    `known` is what was told before, by `same`, and where.
    """
    rows = _rows(name, content)
    _, head = next(rows, (1, []))
    columns = _columns(name, head)
    records: list[EpochRecord] = []
    told = dict(known or {})
    for line, cells in rows:
        where = f"{name}, line {line}"
        if len(cells) != len(columns):
            raise DataError(
                f"{where} has {len(cells)} cells, and line 1 names {len(columns)} columns; write one for each"
            )
        record = _record(where, _values(where, dict(zip(columns, cells, strict=True))), run_id=run_id, origin=name)
        earlier = told.setdefault(same(record), f"line {line}")
        if earlier != f"line {line}":
            raise DataError(
                f"{where} is a duplicate of {earlier}, as only seconds, accuracy, loss, status and price may tell "
                f"them apart; number the repeats of a configuration in the column trial, or leave one out"
            )
        records.append(record)
    if not records:
        raise DataError(f"{name} has no row below its first line; write one for each timing")
    return records


def same(record: EpochRecord) -> tuple[Any, ...]:
    """Equal where two rows tell of the same."""
    return (*OF_RECORD(record), *configuration(record))


def configuration(record: EpochRecord) -> tuple[Any, ...]:
    """Equal for the trials of one configuration."""
    return (*OF_CONFIGURATION(record), record.epochs_requested if record.unit == "training" else None)


def _rows(name: str, content: bytes) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row that is not blank, and the line that it begins in."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}, byte {error.start}: not UTF-8; save the file as CSV in UTF-8") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, [cell.strip() for cell in cells]
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{name}, line {line}: {error}; write CSV with commas, and quotes only around whole cells"
        ) from None


def _columns(name: str, head: list[str]) -> list[str]:
    known = f"allowed are {', '.join(COLUMNS)}"
    if not head:
        raise DataError(f"{name} is empty; its first line names the columns: {known}")
    for column in head:
        if column not in COLUMNS:
            nearest = difflib.get_close_matches(column.lower(), COLUMNS, n=1, cutoff=0.0)[0]
            raise DataError(f"{name}, line 1: column {_shown(column)} is not known, the nearest is {nearest}; {known}")
        if head.count(column) > 1:
            raise DataError(f"{name}, line 1: column {column} stands there twice; name each column once")
    for column in NEEDED:
        if column not in head:
            raise DataError(f"{name}, line 1: column {column} is missing; needed are {', '.join(NEEDED)}, and {known}")
    return head


def _values(where: str, cells: Mapping[str, str]) -> dict[str, Any]:
    """None where a cell is empty or its column is not there."""
    found: dict[str, Any] = dict.fromkeys(COLUMNS)
    for column, cell in cells.items():
        try:
            found[column] = COLUMNS[column].read(cell) if cell else None
        except ValueError:
            raise _refused(where, column, cell, COLUMNS[column].allowed) from None
    for column in ("platform", "dataset"):
        if not found[column]:
            raise _refused(where, column, "", COLUMNS[column].allowed)
    return found


def _refused(where: str, column: str, cell: str, allowed: str) -> DataError:
    given = f"{_shown(cell)} is not allowed" if cell else "it is empty"
    return DataError(f"{where}, column {column}: {given}; write {allowed}")


def _record(where: str, row: dict[str, Any], *, run_id: str, origin: str) -> EpochRecord:
    outcome, reason = _status(row["status"])
    epoch, epochs, solver = row["epoch"], row["epochs"], row["solver"]
    if row["seconds"] is None and outcome == "ok":
        raise DataError(
            f"{where}, column seconds: it is empty, and no status says why; write {COLUMNS['seconds'].allowed}, or a "
            f"status as failed: out of memory"
        )
    if epoch is not None and epochs is not None and epoch > epochs:
        raise _refused(where, "epoch", str(epoch), f"a number up to the {epochs} of the column epochs")
    if row["batch_size"] is not None and solver in FULL_BATCH_SOLVERS:
        raise _refused(
            where, "batch_size", str(row["batch_size"]), f"nothing, as {solver} takes the full batch, or sgd as solver"
        )
    network, parameters = _network_in(where, row["network"])
    passes = 1 if epoch is not None and solver not in (None, "l-bfgs") else None
    return EpochRecord(
        run_id=run_id,
        unit="training" if epoch is None else "epoch",
        machine=row["machine"] or UNKNOWN,
        machine_memory_gb=row["memory_gb"],
        dataset=row["dataset"],
        network=network,
        platform=row["platform"],
        solver=solver,
        precision=row["precision"],
        batch_size=row["batch_size"],
        rows=row["rows"],
        executors=row["executors"] or None,
        cores=row["cores"],
        workers=row["workers"],
        nodes=row["nodes"],
        device="cuda" if row["platform"].lower().endswith(ON_GPU) else None,
        origin=origin,
        trial=row["trial"] or 1,
        attempt=1,
        epoch=epoch,
        passes=passes,
        updates=_updates(row) if passes else None,
        samples=row["rows"] if passes else None,
        parameters=parameters,
        epochs_requested=epochs,
        seconds=row["seconds"],
        loss=row["loss"],
        test_accuracy=row["accuracy"],
        outcome=outcome,
        reason=reason,
        tainted=outcome == "tainted",
        price_per_hour=row["price_per_hour"],
    )


def _updates(row: dict[str, Any]) -> int | None:
    """Of one epoch, where solver, batch and rows leave no choice."""
    if row["solver"] == "gd":
        return 1
    known = row["batch_size"] is not None and row["rows"] is not None
    return math.ceil(row["rows"] / row["batch_size"]) if known else None


def _network_in(where: str, name: str | None) -> tuple[str, int | None]:
    try:
        return _network(name)
    except SettingError as error:
        raise DataError(f"{where}, column network: {error}") from None


@lru_cache(maxsize=1024)
def _network(name: str | None) -> tuple[str, int | None]:
    """A perceptron's name in its one form, with its parameters; any other name as it is."""
    if name is None:
        return UNKNOWN, None
    if name.partition(":")[0] not in ("mlp", "perceptron"):
        return name, None
    network = Network.parse(name)
    if (network.parameters or 0) > MOST_PARAMETERS:
        raise SettingError(
            f"network {name} has {network.parameters} parameters; write one of at most {MOST_PARAMETERS}"
        )
    return network.name, network.parameters


def _status(text: str | None) -> tuple[str, str | None]:
    if text is None:
        return "ok", None
    word, _, reason = text.partition(":")
    outcome = OUTCOMES.get(word.strip().lower())
    if outcome is None:
        return ("ok", None) if text.lower().startswith("ok ") else ("unavailable", text)
    return outcome, reason.strip() or None


def _shown(text: str) -> str:
    text = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
    return repr(text) if text.isprintable() else ascii(text)


def _text(cell: str) -> str:
    if len(cell) > LONGEST_TEXT or not cell.isprintable():
        raise ValueError
    return cell


def _solver(cell: str) -> str:
    """Ours by our names, however they are spelled; any other as it is."""
    return LETTERS.get(re.sub("[^a-z]", "", cell.lower()), _text(cell))


def _number(cell: str) -> float:
    if not NUMBER.fullmatch(cell) or len(cell) > 40:
        raise ValueError
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError
    return value


def _whole(cell: str) -> int:
    if not WHOLE.fullmatch(cell):
        raise ValueError
    return int(cell.partition(".")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What a cell may hold, unless it is empty; and that in words."""

    read: Callable[[str], Any]
    allowed: str

    def or_words(self, words: Mapping[str, Any], allowed: str) -> Column:
        def read(cell: str) -> Any:
            return words[cell.lower()] if cell.lower() in words else self.read(cell)

        return Column(read=read, allowed=self.allowed + allowed)


def number(least: str, most: str, *, of: str = "a number", rest: str = "", zero: bool = False) -> Column:
    """Both ends are checked as they are told. Sums, squares and ratios of what lies between them are numbers."""

    def read(cell: str) -> float:
        value = _number(cell)
        return value if zero and value == 0 else _within(value, float(least), float(most))

    return Column(read=read, allowed=f"{'0, or ' if zero else ''}{of} from {least} to {most}{rest}")


def whole(least: int, most: int, *, rest: str = "") -> Column:
    return Column(
        read=lambda cell: _within(_whole(cell), least, most),
        allowed=f"a whole number from {least} to {most}, without a unit{rest}",
    )


def _within(value: Value, least: float, most: float) -> Value:
    if not least <= value <= most:
        raise ValueError
    return value


NAME = f"a name of at most {LONGEST_TEXT} printable characters"
DIVERGED = {name: float(name) for name in ("nan", "inf", "infinity")}
MACHINES, TIMES, ROWS = 10**6, 10**9, 10**12  # more of them nobody has
COLUMNS = {
    "platform": Column(read=_text, allowed=NAME),
    "dataset": Column(read=_text, allowed=NAME),
    "seconds": number("1e-9", "1e9", rest=", as 12.5, without a unit"),
    "network": Column(read=_text, allowed=NAME),
    "solver": Column(read=_solver, allowed=NAME),
    "batch_size": whole(1, ROWS).or_words({"full": None}, ", or full"),
    "precision": Column(read=lambda cell: _text(cell).lower(), allowed=NAME),
    "executors": whole(0, MACHINES),
    "cores": whole(1, MACHINES, rest=": those of each executor"),
    "memory_gb": number("0.001", "1e6", of="the machine's GB as a number", rest=", without a unit"),
    "workers": whole(1, MACHINES),
    "nodes": whole(1, MACHINES),
    "price_per_hour": number("1e-9", "1e9", rest=", without a currency", zero=True),
    "trial": whole(1, TIMES),
    "epoch": whole(1, TIMES),
    "epochs": whole(1, TIMES),
    "accuracy": number("0", "1", of="a share", rest=", as 0.977 for 97.7 %"),
    "loss": number("1e-30", "1e30", zero=True).or_words(DIVERGED, ", or nan or inf where it diverged"),
    "rows": whole(1, ROWS),
    "machine": Column(read=_text, allowed=NAME),
    "status": Column(read=_text, allowed=f"ok, or why there is no time, in {LONGEST_TEXT} printable characters"),
}  # fmt: skip
