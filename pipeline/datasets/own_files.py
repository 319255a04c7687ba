"""What csv:PATH and parquet:PATH share: files, the split that is drawn, and one pass over them that is remembered."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from typing import ClassVar

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pipeline.datasets.own_places import OwnFile, own_place
from pipeline.datasets.progress import Progress
from pipeline.datasets.sources import Description, Split
from pipeline.settings import Settings
from store.errors import DataError, StoreError
from store.local import LocalStore

MOST_CLASSES = 10_000
SCAN = 1  # another number for scans that find other things


class Scan(Struct, frozen=True, kw_only=True):
    """What one pass over the files finds."""

    rows: int
    columns: int
    classes: int
    labels: tuple[str, ...] | None
    checksum: str


class OwnFiles(ABC):
    kind: ClassVar[str]
    undeclared: ClassVar[frozenset[str]]  # keys of [yarnstick.csv] on which the rows do not depend

    def __init__(self, path: str, settings: Settings, *, progress: Progress) -> None:
        self.name = f"{self.kind}:{path}"
        self._path = path
        self._place = own_place(path, settings)
        self._csv = settings.csv
        self._cache = LocalStore(settings.main.cache)
        self._scratch = settings.main.cache
        self._progress = progress
        self._label_first = settings.csv.label == "first"

    def declaration(self) -> dict[str, object]:
        return {key: value for key, value in msgspec.structs.asdict(self._csv).items() if key not in self.undeclared}

    def description(self) -> Description:
        found = self._scan(self._files())
        test_rows = self._test_rows(found.rows)
        return Description(
            columns=found.columns,
            classes=found.classes,
            train_rows=found.rows - test_rows,
            test_rows=test_rows,
            checksum=found.checksum,
            pixel_range=(self._csv.minimum, self._csv.maximum),
            labels=found.labels,
        )

    def fetch(self) -> str:
        self.description()
        return self._path

    def rows(self, split: Split) -> Iterator[bytes]:
        files = self._files()
        state = _state(files)
        found = self._scan(files)
        is_chosen = self._is_test(found.rows)
        if split == "train":
            is_chosen = ~is_chosen
        read = yield from self._lines(files, found, is_chosen)
        if read != found.rows or _state(self._files()) != state:
            raise DataError(f"{self._path} was changed while it was read; run again")

    @abstractmethod
    def _lines(self, files: list[OwnFile], found: Scan, is_chosen: NDArray[np.bool_]) -> Generator[bytes, None, int]:
        """The lines of the chosen rows, in batches; how many rows there were in all."""

    @abstractmethod
    def _scan_anew(self, files: list[OwnFile]) -> Scan:
        """Check every row."""

    def _test_rows(self, rows: int) -> int:
        if rows < 2:
            raise DataError(f"{self._path} holds one row, but at least two are needed: one to train, one to test")
        return min(max(1, round(rows * self._csv.test_fraction)), rows - 1)

    def _is_test(self, rows: int) -> NDArray[np.bool_]:
        is_test = np.zeros(rows, np.bool_)
        is_test[np.random.default_rng(self._csv.split_seed).permutation(rows)[: self._test_rows(rows)]] = True
        return is_test

    def _files(self) -> list[OwnFile]:
        return self._place.files()

    def _scan(self, files: list[OwnFile]) -> Scan:
        """The pass over the files, or what it found before in the same files under the same declaration."""
        key = json.dumps([SCAN, _state(files), msgspec.structs.asdict(self._csv)], sort_keys=True)
        place = f"{self.kind}/{hashlib.sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()}.json"
        try:
            return msgspec.json.decode(self._cache.read(place), type=Scan)
        except (StoreError, msgspec.DecodeError):
            found = self._scan_anew(files)
        self._cache.write(place, msgspec.json.encode(found))
        return found

    def _check_number_of_labels(self, labels: int) -> None:
        if labels > MOST_CLASSES:
            raise DataError(
                f"{self._path} has more than {MOST_CLASSES} different labels; "
                f"is yarnstick.csv.label = {self._csv.label} right?"
            )

    def _check_classes(self, labels: int) -> None:
        if self._csv.classes is not None and labels > self._csv.classes:
            raise DataError(
                f"{self._path} has {labels} different labels, but yarnstick.csv.classes = {self._csv.classes}"
            )

    def _outside(self, classes: int) -> str:
        """Why a whole number is no label, as the end of a sentence."""
        reason = (
            f"yarnstick.csv.classes = {classes}"
            if self._csv.classes
            else f"there are {classes} different labels; set yarnstick.csv.classes if some do not occur"
        )
        return f"is outside 0..{classes - 1} ({reason})"


def _state(files: list[OwnFile]) -> list[tuple[str | int, ...]]:
    return [file.state for file in files]
