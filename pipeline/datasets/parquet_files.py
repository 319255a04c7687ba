"""parquet:PATH: one's own data that is tabular already. Which column is the label is declared in [yarnstick.csv]."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mapreduce.rows import LARGEST_LABEL
from pipeline.datasets.own_files import OwnFiles, Scan
from pipeline.datasets.own_places import OwnFile
from pipeline.datasets.progress import Advance
from store.errors import DataError

BATCH_CELLS = 1 << 19
MOST_ROWS = 1 << 16
WITHOUT_HEADER = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some rows of a file: the features in their order, the label, and the number of the first row from 1."""

    path: OwnFile
    row: int
    features: list[pa.Array]
    names: list[str]
    label: pa.Array
    label_name: str


class ParquetFiles(OwnFiles):
    kind = "parquet"
    undeclared = frozenset({"longest_line_bytes", "header"})

    def _lines(self, files: list[OwnFile], found: Scan, is_chosen: NDArray[np.bool_]) -> Generator[bytes, None, int]:
        start = 0
        for part in self._parts(files):
            chosen = is_chosen[start : start + len(part.label)]
            start += len(part.label)
            if len(chosen) < len(part.label):
                break  # rows were added since they were counted
            if chosen.any():
                label = part.label
                if found.labels is not None:
                    label = pc.index_in(label, value_set=pa.array(found.labels, pa.string()))
                lines = pa.table([*map(_exact, part.features), label], names=list(map(str, range(found.columns + 1))))
                text = io.BytesIO()
                pyarrow.csv.write_csv(lines.filter(pa.array(chosen)), text, WITHOUT_HEADER)
                yield text.getvalue()
        return start

    def _scan_anew(self, files: list[OwnFile]) -> Scan:
        rows, columns, labels = 0, 0, set[str | int]()
        with self._progress.bytes(f"reading {self._path}", sum(file.bytes for file in files)) as advance:
            for part in self._parts(files, advance=advance):
                rows += len(part.label)
                columns = len(part.features)
                self._check_features(part)
                labels.update(_labels(part))
                self._check_number_of_labels(len(labels))
        if rows == 0:
            raise DataError(f"{self._path} holds no row")
        texts = sorted(label for label in labels if isinstance(label, str))
        classes = self._csv.classes or len(labels)
        if texts:
            self._check_classes(len(texts))
        elif outside := {label for label in labels if isinstance(label, int) and label >= classes}:
            raise DataError(self._first_outside(files, outside, classes))
        return Scan(
            rows=rows,
            columns=columns,
            classes=classes,
            labels=tuple(texts) or None,
            checksum=_checksum(files),
        )

    def _first_outside(self, files: list[OwnFile], outside: set[int], classes: int) -> str:
        for part in self._parts(files):
            found = pc.index_in(part.label, value_set=pa.array(sorted(outside), part.label.type)).is_valid()
            row = found.index(True).as_py()
            if row >= 0:
                label = part.label[row].as_py()
                return f"{_where(part, row, part.label_name)} holds the label {label}, which {self._outside(classes)}"
        return f"{self._path} was changed while it was read; run again"

    def _check_features(self, part: Part) -> None:
        """Every cell is a finite number within the declared limits; else the first that is not, row by row."""
        low = -math.inf if self._csv.minimum is None else self._csv.minimum
        high = math.inf if self._csv.maximum is None else self._csv.maximum
        first: tuple[int, int] | None = None
        for index, column in enumerate(part.features):
            values = _numbers(column)
            with np.errstate(invalid="ignore"):
                is_bad = ~(np.isfinite(values) & (values >= low) & (values <= high))
            if is_bad.any():
                row = int(np.argmax(is_bad))
                first = min(first or (row, index), (row, index))
        if first is None:
            return
        row, index = first
        cell, where = part.features[index][row].as_py(), _where(part, row, part.names[index])
        if cell is None:
            raise DataError(f"{where} is empty, but every feature needs a number; fill it or leave the row out")
        if not math.isfinite(float(cell)):
            raise DataError(f"{where} holds {cell}, but only finite numbers can be trained on")
        limit = f"below the minimum of {low:g}" if cell < low else f"above the maximum of {high:g}"
        raise DataError(f"{where} holds {cell}, {limit}")

    def _parts(self, files: list[OwnFile], *, advance: Advance = lambda _: None) -> Iterator[Part]:
        """All rows of all files; their columns are the same by name, and are checked to be numbers and a label."""
        first: tuple[OwnFile, list[str], bool] | None = None
        for path in files:
            with (
                _damage(path),
                path.seekable(self._scratch) as opened,
                pq.ParquetFile(opened, page_checksum_verification=True) as file,
            ):
                schema = file.schema_arrow
                names = list(schema.names)
                label = 0 if self._label_first else len(names) - 1
                self._check_schema(path, schema, label)
                is_text = _is_text(schema.types[label])
                first = first or (path, names, is_text)
                if names != first[1]:
                    raise DataError(f"{path} has {_columns(names)}, but {first[0]} has {_columns(first[1])}")
                if is_text != first[2]:
                    raise DataError(f"{path}: the label is {schema.types[label]}, but not so in {first[0]}")
                row = 1
                size = max(1, min(MOST_ROWS, BATCH_CELLS // len(names)))
                for batch in file.iter_batches(batch_size=size, use_threads=False):
                    columns = [_plain(column) for column in batch.columns]
                    part = Part(
                        path=path,
                        row=row,
                        label=columns.pop(label),
                        label_name=names[label],
                        features=columns,
                        names=[*names[:label], *names[label + 1 :]],
                    )
                    row += len(part.label)
                    yield part
                advance(path.bytes)

    def _check_schema(self, path: OwnFile, schema: pa.Schema, label: int) -> None:
        if len(schema) < 2:
            raise DataError(f"{path} has {len(schema)} columns, but at least two are needed: a feature and the label")
        for index, field in enumerate(schema):
            kind = _value_type(field.type)
            if index == label:
                if not pa.types.is_integer(kind) and not _is_text(kind):
                    raise DataError(
                        f"{path}: column {field.name!r} is of type {field.type}, but a label is a whole number or a "
                        f"text; is yarnstick.csv.label = {self._csv.label} right?"
                    )
            elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
                raise DataError(f"{path}: column {field.name!r} is of type {field.type}, but features are numbers")


def _labels(part: Part) -> set[str | int]:
    if part.label.null_count:
        row = part.label.is_null().index(True).as_py()
        raise DataError(f"{_where(part, row, part.label_name)} is empty, but the label is missing nowhere")
    found = set(part.label.unique().to_pylist())
    outside = {label for label in found if isinstance(label, int) and not 0 <= label <= LARGEST_LABEL}
    if outside:
        row = pc.index_in(part.label, value_set=pa.array(sorted(outside), part.label.type)).is_valid().index(True)
        where = _where(part, row.as_py(), part.label_name)
        raise DataError(f"{where} holds the label {part.label[row.as_py()]}, outside 0..{LARGEST_LABEL}")
    return found


def _where(part: Part, row: int, name: str) -> str:
    return f"{part.path}, row {part.row + row}: column {name!r}"


def _columns(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return f"{len(names)} columns ({shown}{', ...' if len(names) > 3 else ''})"


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    kind = _value_type(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _plain(column: pa.Array) -> pa.Array:
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return column.cast(pa.string()) if _is_text(column.type) else column


def _numbers(column: pa.Array) -> NDArray[np.float64]:
    """As float64; NaN where there is none."""
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


def _exact(column: pa.Array) -> pa.Array:
    """What is written as the very number: the shortest text of a float32 would be another float64."""
    return column if pa.types.is_integer(column.type) else column.cast(pa.float64())


def _checksum(files: list[OwnFile]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open() as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


@contextmanager
def _damage(path: OwnFile) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError:
        raise DataError(f"{path}: the name of a column, or a label, is not UTF-8") from None
    except (pa.ArrowException, MemoryError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} is not a Parquet file, or is damaged: {said}") from None
    except OSError as error:
        said = error.strerror or (str(error).splitlines() or ["no reason was given"])[0]
        raise DataError(f"{path} cannot be read: {said}") from None
