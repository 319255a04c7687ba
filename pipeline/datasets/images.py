"""Image sets that everybody knows: the same rows wherever they come from, fetched once, checked, kept, streamed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mapreduce.rows import byte_lines
from pipeline.datasets.fetch import Archive, Errand, UnreachableError, Way, mismatch, unpack
from pipeline.datasets.progress import Progress
from pipeline.datasets.sources import SPLITS, Description, Split
from pipeline.settings import ImageSettings
from store.errors import DataError, StoreError

BLOCK_CELLS = 2048 * 784  # of the rows that are in memory at a time
DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Block:
    """Some images, in order."""

    pixels: NDArray[np.uint8]  # rows x columns
    labels: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One form in which a set lies in a directory: its files, plain or with .gz, and how they are read."""

    files: tuple[str, ...]
    read: Callable[[Mapping[str, Path], Split], Iterator[Block]]
    inside: str = ""  # the folder that the official archive unpacks to

    def find(self, folder: Path) -> dict[str, Path] | None:
        """All of the files, or None."""
        for place in (folder, folder / self.inside):
            found = {
                name: place / f"{name}{ending}"
                for name in self.files
                for ending in (".gz", "")
                if (place / f"{name}{ending}").is_file()
            }
            if len(found) == len(self.files):
                return found
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSet:
    """What is known of a set, and the ways to it in their order."""

    name: str
    title: str
    columns: int
    classes: int
    rows: Mapping[Split, int]
    content: str | None  # SHA-256 of train's pixels, train's labels, then test's; None where it could not be recorded
    layouts: tuple[Layout, ...]
    archive: Archive | None = None  # holds the first layout
    is_balanced: bool = False  # as many images of each class: all that can be checked where no content is recorded
    ways: tuple[Way, ...]
    advice: str  # what to put into a directory of one's own

    def locate(self, folder: Path) -> list[Path]:
        """The files that would be read: those of the first layout that is there, or the archive."""
        if self.archive is not None and folder.is_file():
            return [folder]
        if not folder.is_dir():
            raise DataError(f"{folder} is not a directory; {self.advice}")
        for layout in self.layouts:
            if (found := layout.find(folder)) is not None:
                return list(found.values())
        if self.archive is not None and (folder / self.archive.name).is_file():
            return [folder / self.archive.name]
        wanted = [", ".join(layout.files) for layout in self.layouts]
        wanted += [self.archive.name] if self.archive is not None else []
        either = f"neither {' nor '.join(wanted)}" if len(wanted) > 1 else f"not all of {wanted[0]}"
        raise DataError(f"{folder} holds {either} (a name may end in .gz); {self.advice}")

    @contextlib.contextmanager
    def opened(self, folder: Path) -> Iterator[Callable[[Split], Iterator[Block]]]:
        """What reads the splits of a directory, in one of the layouts or as the official archive."""
        with contextlib.ExitStack() as stack:
            files = self.locate(folder)
            if self.archive is not None and files in ([folder], [folder / self.archive.name]):
                if (problem := mismatch(files[0], self.archive.checksum)) is not None:
                    raise DataError(f"{files[0]} is another file than that of the official site: {problem}")
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="yarnstick.")))
                unpack(files[0], self.archive.members, folder)
            layout, found = next((each, found) for each in self.layouts if (found := each.find(folder)) is not None)
            yield lambda split: layout.read(found, split)


class Images:
    def __init__(
        self,
        declared: ImageSet,
        settings: ImageSettings,
        *,
        cache: Path,
        progress: Progress,
        train_rows: int | None = None,
    ) -> None:
        self.name = declared.name
        self._set = declared
        self._settings = settings
        self._cache = cache / declared.name
        self._progress = progress
        self._used = dict(declared.rows)
        if train_rows is not None:
            self._used["train"] = train_rows

    def declaration(self) -> dict[str, object]:
        return {"train_rows": self._used["train"]}

    def description(self) -> Description:
        return Description(
            columns=self._set.columns,
            classes=self._set.classes,
            train_rows=self._used["train"],
            test_rows=self._used["test"],
            checksum=self._set.content or self._kept[1],
            pixel_range=(0, 255),
        )

    def fetch(self) -> Path:
        return self._kept[0]

    def rows(self, split: Split) -> Iterator[bytes]:
        for block in self.blocks(split):
            yield bytes(byte_lines(block.pixels, block.labels.astype(np.int64)))

    def blocks(self, split: Split) -> Iterator[Block]:
        """The images of a split, a few at a time: a set may be larger than the memory that is spared for it."""
        kept, columns = self.fetch(), self._set.columns
        start = self._set.rows["train"] * (columns + 1) if split == "test" else 0
        rows, step = self._used[split], max(1, BLOCK_CELLS // columns)
        try:
            with kept.open("rb") as file:
                file.seek(start + self._set.rows[split] * columns)
                labels = np.frombuffer(file.read(rows), np.uint8)
                file.seek(start)
                for first in range(0, rows, step):
                    some = labels[first : first + step]
                    pixels = np.frombuffer(file.read(len(some) * columns), np.uint8)
                    yield Block(pixels.reshape(-1, columns), some)
        except (OSError, ValueError):
            raise DataError(f"{kept} was changed while it was read; run again") from None

    @cached_property
    def _kept(self) -> tuple[Path, str]:
        """All of it in the cache, checked, and its SHA-256."""
        kept = self._cache / f"{self._key()[:16]}.bin"
        with contextlib.suppress(OSError, DataError):
            return kept, self._check(kept)
        if self._settings.path is not None:
            return kept, self._keep(self._settings.path, kept, name=str(self._settings.path))
        reasons = []
        errand = Errand(title=self._set.title, seconds=self._settings.source_seconds, progress=self._progress)
        for way in self._set.ways:
            with tempfile.TemporaryDirectory(prefix="yarnstick.", ignore_cleanup_errors=True) as folder:
                try:
                    return kept, self._keep(way.fetch(Path(folder), errand), kept, name=way.what)
                except (UnreachableError, DataError) as error:
                    reasons.append(f"{way.what}: {error}")
                    self._progress.say(f"{self.name}: {way.what} is passed over: {error}")
        raise DataError(
            f"{self._set.title} could not be fetched ({'; '.join(reasons)}); {self._set.advice} and set "
            f"yarnstick.{self.name}.path to it"
        )

    def _key(self) -> str:
        """The content, or else what it is read from: other files are then kept under another name."""
        if self._set.content is not None:
            return self._set.content
        state: list[object] = [self._set.archive.checksum if self._set.archive else None]
        if self._settings.path is not None:
            files = [(path, path.stat()) for path in self._set.locate(self._settings.path)]
            state = [(str(path.absolute()), stat.st_size, stat.st_mtime_ns) for path, stat in files]
        return hashlib.sha256(json.dumps([self.name, state]).encode("utf-8", "surrogateescape")).hexdigest()

    def _check(self, kept: Path) -> str:
        """The SHA-256 of what is kept; DataError where it is not what was written."""
        size = sum(rows * (self._set.columns + 1) for rows in self._set.rows.values())
        digest = hashlib.sha256()
        with kept.open("rb") as file:
            if os.fstat(file.fileno()).st_size != size + DIGEST_BYTES:
                raise DataError(f"{kept} is damaged")
            while file.tell() < size and (block := file.read(min(BLOCK_CELLS, size - file.tell()))):
                digest.update(block)
            if file.read() != digest.digest():
                raise DataError(f"{kept} is damaged")
        return digest.hexdigest()

    def _keep(self, folder: Path, kept: Path, *, name: str) -> str:
        """Read a directory, check every row, and put it into the cache; the SHA-256 of all of it."""
        digest = hashlib.sha256()
        temporary = None
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with (
                self._set.opened(folder) as read,
                tempfile.NamedTemporaryFile(dir=kept.parent, prefix=".tmp.", delete=False) as file,
            ):
                temporary = file.name
                for split in SPLITS:
                    for data in self._checked(read(split), split, name=name):
                        digest.update(data)
                        file.write(data)
                file.write(digest.digest())
            if self._set.content not in (None, digest.hexdigest()):
                raise DataError(
                    f"{name} is not {self._set.title}: SHA-256 of pixels and labels is {digest.hexdigest()}, "
                    f"not {self._set.content}"
                )
            os.replace(temporary, kept)
            temporary = None
        except OSError as error:
            raise StoreError(f"{kept} cannot be written: {error.strerror} (yarnstick.cache)") from None
        finally:
            if temporary is not None:
                Path(temporary).unlink(missing_ok=True)
        return digest.hexdigest()

    def _checked(self, blocks: Iterator[Block], split: Split, *, name: str) -> Iterator[memoryview]:
        """The bytes of a split in the order in which they are kept: all pixels, then all labels."""
        expected = self._set.rows[split]
        labels: list[NDArray[np.uint8]] = []
        count = 0
        for block in blocks:
            if block.pixels.shape != (len(block.labels), self._set.columns):
                raise DataError(f"{name}: {split} has {block.pixels.shape} pixels to {len(block.labels)} labels")
            outside = np.flatnonzero(block.labels >= self._set.classes)
            if len(outside):
                raise DataError(
                    f"{name}: image {count + outside[0] + 1} of {split} has the label {block.labels[outside[0]]}, "
                    f"outside 0..{self._set.classes - 1}"
                )
            count += len(block.labels)
            labels.append(block.labels)
            if len(block.labels) == 0:
                continue
            if count > expected:
                break
            yield np.ascontiguousarray(block.pixels).data.cast("B")
        if count != expected:
            found = "more are there" if count > expected else f"{count} are there"
            raise DataError(f"{name}: {split} is {expected} images, but {found}")
        together = np.concatenate(labels)
        if self._set.is_balanced and (np.bincount(together) != expected // self._set.classes).any():
            raise DataError(f"{name} is not {self._set.title}: {split} has not as many images of each class")
        yield together.data
