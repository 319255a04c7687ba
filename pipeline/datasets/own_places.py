"""Where one's own files lie, here or on HDFS: found by a path or a pattern, opened, and told when they change."""

from __future__ import annotations

import fnmatch
import glob
import io
import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from pipeline.opening import open_elsewhere
from pipeline.settings import Settings
from store.addresses import checked_url, is_on_hdfs
from store.errors import DataError, SettingError

if TYPE_CHECKING:
    from store.webhdfs import Status, WebHdfsStore

COPY_BYTES = 4 << 20
PATTERN = re.compile(r"[*?[]")
HIDDEN = (".", "_")  # as Hadoop's _SUCCESS
Opened = AbstractContextManager[io.BufferedReader]
Seekable = AbstractContextManager[Path | BinaryIO]


class OwnFile(Protocol):
    """Its `str` is how a user would write it."""

    @property
    def bytes(self) -> int: ...

    @property
    def state(self) -> tuple[str | int, ...]:
        """What changes when somebody writes to it."""
        ...

    def open(self) -> Opened:
        """To be read from its first byte to its last."""
        ...

    def seekable(self, folder: Path) -> Seekable:
        """To be read here and there; `folder` may take a copy, as long as it is read."""
        ...


class OwnPlace(Protocol):
    @property
    def name(self) -> str:
        """As a user would write it."""
        ...

    def files(self) -> list[OwnFile]:
        """By name; DataError where there is none. Hidden ones of a directory are left out."""
        ...


def own_place(path: str, settings: Settings) -> OwnPlace:
    return OnHdfs(path, settings) if is_on_hdfs(path) else Here(path)


@dataclass(frozen=True, slots=True)
class LocalFile:
    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def bytes(self) -> int:
        return self.path.stat().st_size

    @property
    def state(self) -> tuple[str | int, ...]:
        return str(self.path.absolute()), self.path.stat().st_size, self.path.stat().st_mtime_ns

    def open(self) -> Opened:
        return self.path.open("rb")

    def seekable(self, folder: Path) -> Seekable:
        return nullcontext(self.path)


class Here:
    """A path of this machine, or a pattern."""

    def __init__(self, path: str) -> None:
        self.name = path

    def files(self) -> list[OwnFile]:
        path = Path(self.name)
        if path.is_dir():
            found = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith(HIDDEN))
        else:
            found = [path] if path.is_file() else sorted(Path(each) for each in glob.glob(self.name))
        if not found:
            raise DataError(f"{self.name}: {'the directory holds no file' if path.is_dir() else 'no such file'}")
        return [LocalFile(each) for each in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsFile:
    store: WebHdfsStore
    path: str
    status: Status

    def __str__(self) -> str:
        return f"{self.store.url}/{self.path}"

    @property
    def bytes(self) -> int:
        return self.status.length

    @property
    def state(self) -> tuple[str | int, ...]:
        """The id is the NameNode's own: another file at the same path has another one."""
        return str(self), self.status.id, self.status.length, self.status.modified_ms

    def open(self) -> Opened:
        return cast(io.BufferedReader, self.store.open(self.path))

    def seekable(self, folder: Path) -> Seekable:
        """A copy without a name: each seek would be requests of its own, and a Parquet file is read all over."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        copy = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # who reads it closes it
        try:
            with self.open() as source:
                while block := source.read(COPY_BYTES):
                    copy.write(block)
            copy.seek(0)
        except BaseException:
            copy.close()
            raise
        return cast(BinaryIO, copy)


class OnHdfs:
    """An address of HDFS, whose path may be a pattern; asked as whom, and how, [yarnstick.store] says."""

    def __init__(self, address: str, settings: Settings) -> None:
        self.name = address
        scheme, _, rest = address.partition("://")
        authority, _, path = rest.partition("/")
        self._segments = [segment for segment in path.split("/") if segment]
        try:
            root = checked_url(f"{scheme}://{authority}")
            checked_url("/".join([root, *map(_without_pattern, self._segments)]))
        except ValueError:
            raise SettingError(
                f"dataset {address}: that is no address on HDFS; write hdfs://NAME/path, webhdfs://host:port/path or "
                f"swebhdfs://host:port/path, in which a name may have *, ? and [...]"
            ) from None
        self._store, _ = open_elsewhere(settings, root)

    def files(self) -> list[OwnFile]:
        found = list(self._found("", self._segments))
        if len(found) == 1 and found[0].status.is_directory:
            folder = found[0].path
            below = [self._file(folder, each) for each in self._store.statuses(folder) if not each.is_directory]
            found = [each for each in below if not each.path.rpartition("/")[2].startswith(HIDDEN)]
            if not found:
                raise DataError(f"{self.name}: the directory holds no file")
        if not found:
            raise DataError(f"{self.name}: no such file")
        for each in found:
            if each.status.is_directory:
                raise DataError(f"{each} is a directory, and the pattern leads to several things; end it with /*")
        return [*found]

    def _found(self, folder: str, segments: list[str]) -> Iterator[HdfsFile]:
        """What the pattern leads to, by name; a directory is listed only where its part of the pattern needs it."""
        first, rest = (segments[0], segments[1:]) if segments else ("", [])
        if PATTERN.search(first):
            for each in self._store.statuses(folder):
                # As in a shell, what is hidden is meant only by a pattern that says so.
                is_meant = not each.name.startswith(HIDDEN) or each.name[0] == first[0]
                if is_meant and fnmatch.fnmatchcase(each.name, first):
                    made = self._file(folder, each)
                    if not rest:
                        yield made
                    elif each.is_directory:
                        yield from self._found(made.path, rest)
            return
        path = f"{folder}/{first}".strip("/")
        if rest:
            yield from self._found(path, rest)
        elif (status := self._store.status(path)) is not None:
            yield HdfsFile(store=self._store, path=path, status=status)

    def _file(self, folder: str, status: Status) -> HdfsFile:
        return HdfsFile(store=self._store, path=f"{folder}/{status.name}".lstrip("/"), status=status)


def _without_pattern(segment: str) -> str:
    """What is left of a name of a pattern must be one that HDFS takes."""
    return re.sub(r"[*?[\]]", "", segment) or "x" if PATTERN.search(segment) else segment
