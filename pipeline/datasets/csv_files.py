"""csv:PATH: one's own files, plain or gzip. What they hold is declared in [yarnstick.csv]; nothing is guessed."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from mapreduce.ahead import ahead
from mapreduce.rows import LARGEST_LABEL, WHOLE, Batch, Declared, Origin, quote, read_batches, scan, width
from pipeline.datasets.own_files import OwnFiles, Scan
from pipeline.datasets.own_places import OwnFile
from store.errors import DataError

GZIP = b"\x1f\x8b"


class CsvFiles(OwnFiles):
    kind = "csv"
    undeclared = frozenset({"longest_line_bytes"})

    def _lines(self, files: list[OwnFile], found: Scan, is_chosen: NDArray[np.bool_]) -> Generator[bytes, None, int]:
        codes = {text.encode(): b"%d" % code for code, text in enumerate(found.labels)} if found.labels else None
        start = 0
        for batch in self._batches(files):
            count = batch.data.count(b"\n")
            chosen = is_chosen[start : start + count]
            start += count
            if len(chosen) < count:
                break  # rows were added since they were counted
            if chosen.all() and not codes and not self._label_first:
                yield batch.data
            elif chosen.any():
                lines = itertools.compress(batch.data[:-1].split(b"\n"), chosen.tolist())
                yield b"\n".join(self._canonical(lines, codes)) + b"\n"
        return start

    def _canonical(self, lines: Iterator[bytes], codes: dict[bytes, bytes] | None) -> Iterator[bytes]:
        """The label last, and as a whole number."""
        if not codes and not self._label_first:
            return lines
        return (
            b"%b,%b" % (features, codes[label.strip(b" \t")] if codes else label)
            for features, label in map(self._cut, lines)
        )

    def _cut(self, line: bytes) -> tuple[bytes, bytes]:
        """The features and the label of a line."""
        if self._label_first:
            label, _, features = line.partition(b",")
        else:
            features, _, label = line.rpartition(b",")
        return features, label

    def _scan_anew(self, files: list[OwnFile]) -> Scan:
        digest = hashlib.sha256()
        rows, texts, columns = 0, set[bytes](), 0

        def check(batch: Batch) -> tuple[int, set[bytes]]:
            return scan(batch, declared)

        def hashed(batches: Iterator[Batch]) -> Iterator[Batch]:
            for batch in batches:
                digest.update(batch.data)
                yield batch

        total = sum(file.bytes for file in files)
        with self._progress.bytes(f"reading {self._path}", total) as advance:
            batches = self._batches(files, advance=advance)
            first = next(batches)
            columns = width(first)
            declared = Declared(
                columns=columns,
                minimum=self._csv.minimum,
                maximum=self._csv.maximum,
                label_first=self._label_first,
            )
            for count, found in ahead(check, hashed(itertools.chain([first], batches))):
                rows += count
                texts |= found
                self._check_number_of_labels(len(texts))
        labels = self._text_labels(files, texts)
        classes = self._csv.classes or len(labels or {_whole(text) for text in texts})
        if labels is None:
            self._check_whole(files, texts, classes)
        else:
            self._check_classes(len(labels))
        return Scan(rows=rows, columns=columns, classes=classes, labels=labels, checksum=digest.hexdigest())

    def _text_labels(self, files: list[OwnFile], texts: set[bytes]) -> tuple[str, ...] | None:
        """The labels in the order of their numbers; None where they are whole numbers themselves."""
        whole = {text for text in texts if WHOLE.fullmatch(text)}
        if whole == texts:
            return None
        if whole:
            _, first = self._line_with(files, texts)
            where, odd = self._line_with(files, texts - whole if first in whole else whole)
            reason = (
                "a text, but those before are whole numbers"
                if first in whole
                else (
                    f"a whole number, but before there is {quote(first)}; if a file starts with a line of names, "
                    "set yarnstick.csv.header = true"
                )
            )
            raise DataError(f"{where}: the label {quote(odd)} is {reason}")
        try:
            return tuple(sorted(text.decode() for text in texts))
        except UnicodeDecodeError:
            where, text = self._line_with(files, {text for text in texts if not _is_utf8(text)})
            raise DataError(f"{where}: the label {quote(text)} is not UTF-8") from None

    def _check_whole(self, files: list[OwnFile], texts: set[bytes], classes: int) -> None:
        outside = {text for text in texts if _whole(text) >= classes}
        if outside:
            where, text = self._line_with(files, outside)
            raise DataError(f"{where}: the label {quote(text)} {self._outside(classes)}")

    def _line_with(self, files: list[OwnFile], labels: set[bytes]) -> tuple[str, bytes]:
        """The first line that has one of these labels."""
        for batch in self._batches(files):
            for index, line in enumerate(batch.data[:-1].split(b"\n")):
                label = self._cut(line)[1].strip(b" \t")
                if label in labels:
                    return batch.where(index), label
        raise DataError(f"{self._path} was changed while it was read; run again")

    def _batches(self, files: list[OwnFile], *, advance: Callable[[int], None] = lambda _: None) -> Iterator[Batch]:
        """All lines of all files but their headers."""
        for path in files:
            with _opened(path, advance) as file:
                batches = read_batches(
                    file,
                    origin=Origin(name=str(path)),
                    header=self._csv.header,
                    longest_line_bytes=self._csv.longest_line_bytes,
                )
                first = next(batches, None)
                if first is None:
                    raise DataError(f"{path} is empty: it holds no row")
                yield first
                yield from batches


@contextmanager
def _opened(path: OwnFile, advance: Callable[[int], None]) -> Iterator[IO[bytes]]:
    """A file, unpacked if it is gzip. Damage shows while it is read, in the body of the `with`."""
    try:
        with path.open() as file:
            counted = _Counted(file, advance)
            if file.peek(2)[:2] == GZIP:
                with gzip.GzipFile(fileobj=cast(IO[bytes], counted)) as unpacked:
                    yield cast(IO[bytes], unpacked)
            else:
                yield cast(IO[bytes], counted)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is damaged or cut off: {error}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


class _Counted:
    """A file that tells how much of it was read."""

    def __init__(self, file: IO[bytes], advance: Callable[[int], None]) -> None:
        self._file = file
        self._advance = advance

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._advance(len(data))
        return data


def _whole(text: bytes) -> int:
    digits = text.lstrip(b"0") or b"0"
    return int(digits) if len(digits) <= 10 else LARGEST_LABEL + 1


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
