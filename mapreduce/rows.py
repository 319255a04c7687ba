"""What a valid row is: finite numbers, a comma between them, and the label. Shared by both jobs, Ingest and Pack."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from store.errors import DataError

BATCH_BYTES = 1 << 20
LONGEST_LINE_BYTES = 16 << 20
LARGEST_LABEL = 2**31 - 1
BYTES = 256
MOST_LABEL_TEXTS = 1024  # labels below are looked up
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NUMBER = re.compile(rb"[ \t]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*")
NOT_FINITE = re.compile(rb"[ \t]*[+-]?(?:nan|inf(?:inity)?)[ \t]*", re.IGNORECASE)
WHOLE = re.compile(rb"[ \t]*[0-9]+[ \t]*")
# Outside of these Arrow takes more for a number than we do, 0x1F for one.
IN_WHOLE_NUMBERS = b"0123456789,\n \t"
IN_NUMBERS = IN_WHOLE_NUMBERS + b"+-.eE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What is known of a file's rows before they are read; None is anything."""

    columns: int | None = None  # features, without the label
    classes: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    label_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The file that lines are from, or the part of it that begins at the byte `start`."""

    name: str  # as the user knows it
    path: str | None = None  # where it can be read again, if anywhere
    start: int = 0

    def where(self, line: int) -> str:
        """FILE:LINE. The lines before the part are only counted when there is something to say."""
        if not self.start:
            return f"{self.name}:{line}"
        try:
            with open(self.path or "", "rb") as file:
                return f"{self.name}:{line + count_lines(file, self.start)}"
        except OSError:
            return f"{self.name}, line {line} from byte {self.start}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Whole lines, each ended by one newline, and where they stand."""

    data: bytes
    origin: Origin
    line: int  # the number of its first line

    def where(self, index: int) -> str:
        return self.origin.where(self.line + index)

    def is_first(self, index: int) -> bool:
        return self.line + index == 1 and not self.origin.start


@dataclass(frozen=True, slots=True)
class Rows:
    features: NDArray[np.generic]  # rows x columns, by column; uint8 if all are 0..255, else float64
    labels: NDArray[np.int64]


def read_batches(
    file: IO[bytes],
    *,
    origin: Origin,
    header: bool = False,
    longest_line_bytes: int = LONGEST_LINE_BYTES,
    size: int = BATCH_BYTES,
) -> Iterator[Batch]:
    """The lines of a file, in bounded memory, whether they end by `\\n`, `\\r\\n` or `\\r`, marked as UTF-8 or not.

    Hadoop splits at all three ends and strips the mark, mrjob's own runners do neither. A header is left out.
    """
    line, rest = 1, b""
    while True:
        block = file.read(size)
        data = rest + block
        held = b""
        if b"\r" in data:
            if block and data.endswith(b"\r"):  # the newline of a \r\n may follow
                data, held = data[:-1], b"\r"
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not block and data and not data.endswith(b"\n"):
            data += b"\n"
        cut = data.rfind(b"\n") + 1
        lines, rest = _without_marks(data[:cut]), data[cut:] + held
        fine = _before_long_line(lines, longest_line_bytes)
        is_too_long = fine < len(lines) or len(rest) > longest_line_bytes
        lines = lines[:fine]
        if header and lines:
            header, line = False, line + 1
            _, _, lines = lines.partition(b"\n")
        if lines:
            yield Batch(data=lines, origin=origin, line=line)
            line += lines.count(b"\n")
        if is_too_long:
            raise DataError(
                f"{origin.where(line)}: the line is longer than {longest_line_bytes} bytes "
                "(yarnstick.csv.longest_line_bytes)"
            )
        if not block:
            return


def parse(batch: Batch, declared: Declared) -> Rows:
    """The rows of a batch with whole-number labels at the end; DataError with the first bad line."""
    columns = declared.columns or width(batch)
    rows = _parse_fast(batch.data, columns, pa.uint32(), label_first=declared.label_first)
    if rows is not None:
        features, label_column = rows
        labels = label_column.to_numpy().astype(np.int64)
        largest = (declared.classes or LARGEST_LABEL + 1) - 1
        if labels.max() <= largest and _is_within(features, declared):
            return Rows(features, labels)
    features, texts = _parse_slowly(batch, columns, declared, whole_labels=True)
    return Rows(features, np.array([int(text) for text in texts], np.int64))


def scan(batch: Batch, declared: Declared) -> tuple[int, set[bytes]]:
    """Check a batch whose labels may be texts: how many rows it has, and which labels, stripped."""
    columns = declared.columns or width(batch)
    rows = _parse_fast(batch.data, columns, pa.binary(), label_first=declared.label_first)
    if rows is not None and _is_within(rows[0], declared):
        labels = {text.strip(b" \t") for text in rows[1].unique().to_pylist()}
        if b"" not in labels:
            return len(rows[0]), labels
    features, texts = _parse_slowly(batch, columns, declared, whole_labels=False)
    return len(features), set(texts)


def width(batch: Batch) -> int:
    """How many features the first line of a batch has."""
    columns = batch.data.count(b",", 0, batch.data.index(b"\n"))
    if columns == 0:
        raise DataError(f"{batch.where(0)}: no comma, but a row has at least one number and a label")
    return columns


def to_csv(codes: NDArray[np.integer], texts: pa.Array) -> memoryview:
    """Lines from the numbers of their cells in `texts`, where each cell brings the comma or newline after it."""
    cells = texts.take(pa.array(codes.reshape(-1)))
    _, offsets, data = cells.buffers()
    ends = np.frombuffer(offsets, np.int32, len(cells) + 1, cells.offset * 4)
    return memoryview(data)[ends[0] : ends[-1]] if data else memoryview(b"")


def _without_marks(lines: bytes) -> bytes:
    if b"\xef" not in lines:
        return lines
    lines = lines.removeprefix(BYTE_ORDER_MARK)
    return lines.replace(b"\n" + BYTE_ORDER_MARK, b"\n")


def _before_long_line(lines: bytes, longest_line_bytes: int) -> int:
    """The bytes before the first line that is too long; all of them if none is."""
    if len(lines) <= longest_line_bytes:
        return len(lines)
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n"))
    is_long = np.diff(ends, prepend=-1) - 1 > longest_line_bytes
    if not is_long.any():
        return len(lines)
    first = int(np.argmax(is_long))
    return int(ends[first - 1]) + 1 if first else 0


def count_lines(file: IO[bytes], size: int) -> int:
    """The lines that end within the first bytes of a file, with the same ends as in `read_batches`."""
    lines, after_return = 0, False
    while size > 0 and (block := file.read(min(size, BATCH_BYTES))):
        size -= len(block)
        lines += block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
        lines -= after_return and block.startswith(b"\n")
        after_return = block.endswith(b"\r")
    return lines


def _parse_fast(
    data: bytes, columns: int, label_type: pa.DataType, *, label_first: bool
) -> tuple[NDArray[np.generic], pa.Array] | None:
    """Features and label column; None where something is not as it should be, or not as Arrow knows it."""
    odd = data.translate(None, IN_WHOLE_NUMBERS)
    if odd and label_type != pa.binary() and odd.translate(None, IN_NUMBERS):
        return None
    types = [pa.float64()] if odd else [pa.uint8(), pa.float64()]
    for feature_type in types:
        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(data),
                read_options=pyarrow.csv.ReadOptions(
                    autogenerate_column_names=True, block_size=len(data) + 1, use_threads=False
                ),
                parse_options=PARSE,
                convert_options=_conversion(columns, feature_type, label_type, label_first=label_first),
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError):
            continue
        if table.num_columns != columns + 1 or table.num_rows != data.count(b"\n"):
            return None
        (whole,) = table.to_batches()
        label = 0 if label_first else columns
        features = whole.select([index for index in range(columns + 1) if index != label])
        matrix = features.to_tensor(row_major=False).to_numpy()
        if matrix.dtype == np.float64 and not np.isfinite(matrix).all():
            return None
        return matrix, whole.column(label)
    return None


# An empty line passes Arrow's count of the commas as a row of empty cells, which are no numbers.
PARSE = pyarrow.csv.ParseOptions(
    quote_char=False, escape_char=False, newlines_in_values=False, ignore_empty_lines=False
)


@functools.lru_cache
def _conversion(
    columns: int, feature_type: pa.DataType, label_type: pa.DataType, *, label_first: bool
) -> pyarrow.csv.ConvertOptions:
    types = {f"f{index}": feature_type for index in range(columns + 1)}
    types["f0" if label_first else f"f{columns}"] = label_type
    return pyarrow.csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False, check_utf8=False)


def _is_within(features: NDArray[np.generic], declared: Declared) -> bool:
    """Every feature within the declared minimum and maximum."""
    if (declared.minimum, declared.maximum) == (0, 255) and features.dtype == np.uint8:
        return True
    low = declared.minimum is None or features.min() >= declared.minimum
    return bool(low and (declared.maximum is None or features.max() <= declared.maximum))


def _parse_slowly(
    batch: Batch, columns: int, declared: Declared, *, whole_labels: bool
) -> tuple[NDArray[np.generic], list[bytes]]:
    """Cell by cell: finds the first bad line, and reads what is right but not as Arrow knows it."""
    features, labels = [], []
    for index, line in enumerate(batch.data[:-1].split(b"\n")):
        where = batch.where(index)
        if not line:
            raise DataError(f"{where}: the line is empty, but a row of {columns + 1} columns is expected")
        cells = line.split(b",")
        if len(cells) != columns + 1:
            raise DataError(f"{where}: {len(cells)} columns, but {columns + 1} are expected")
        label = cells.pop(0 if declared.label_first else -1)
        numbers = [NUMBER.fullmatch(cell) is not None for cell in cells]
        if batch.is_first(index) and not any(numbers) and not any(map(NOT_FINITE.fullmatch, cells)) and any(cells):
            raise DataError(
                f"{where}: {quote(cells[0])} is not a number; if the file starts with a line of names, "
                "set yarnstick.csv.header = true"
            )
        features.append(
            [
                _number(cell, where, column, declared)
                for column, cell in enumerate(cells, 2 if declared.label_first else 1)
            ]
        )
        labels.append(_label(label, where, declared, whole=whole_labels))
    matrix = np.array(features, np.float64)
    if (matrix >= 0).all() and (matrix <= 255).all() and (matrix == np.floor(matrix)).all():
        return np.asfortranarray(matrix.astype(np.uint8)), labels
    return np.asfortranarray(matrix), labels


def _number(cell: bytes, where: str, column: int, declared: Declared) -> float:
    if NOT_FINITE.fullmatch(cell):
        raise DataError(f"{where}: column {column} holds {quote(cell)}, but only finite numbers can be trained on")
    if not NUMBER.fullmatch(cell):
        raise DataError(f"{where}: column {column} holds {quote(cell)}, which is not a number")
    value = float(cell)
    if math.isinf(value):
        raise DataError(f"{where}: column {column} holds {quote(cell)}, which is too large for a float64")
    if declared.minimum is not None and value < declared.minimum:
        raise DataError(f"{where}: column {column} holds {quote(cell)}, below the minimum of {declared.minimum:g}")
    if declared.maximum is not None and value > declared.maximum:
        raise DataError(f"{where}: column {column} holds {quote(cell)}, above the maximum of {declared.maximum:g}")
    return value


def _label(cell: bytes, where: str, declared: Declared, *, whole: bool) -> bytes:
    text = cell.strip(b" \t")
    if not text:
        raise DataError(f"{where}: the label is missing")
    if whole:
        largest = (declared.classes or LARGEST_LABEL + 1) - 1
        if not WHOLE.fullmatch(text):
            raise DataError(f"{where}: the label {quote(text)} is not a whole number of 0..{largest}")
        if len(text.lstrip(b"0")) > 19 or int(text) > largest:
            raise DataError(f"{where}: the label {quote(text)} is outside 0..{largest}")
    return text


def quote(cell: bytes) -> str:
    """A cell as it may stand in a message: short, on one line, whatever it holds."""
    text = cell.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 40 else text[:40] + "...")


def byte_lines(pixels: NDArray[np.uint8], labels: NDArray[np.integer]) -> memoryview:
    """Lines of bytes and their labels, which lie below `MOST_LABEL_TEXTS`."""
    codes = np.empty((len(labels), pixels.shape[1] + 1), np.uint16)
    codes[:, :-1] = pixels
    codes[:, -1] = labels + BYTES
    return to_csv(codes, _byte_texts())


@functools.cache
def _byte_texts() -> pa.Array:
    return pa.array([f"{byte}," for byte in range(BYTES)] + [f"{label}\n" for label in range(MOST_LABEL_TEXTS)])
