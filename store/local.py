"""The embedded default: a store in a local directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from store.errors import StoreError
from store.protocol import Entry
from store.publish import TEMPORARY, is_abandoned, temporary_name

ELSEWHERE = "or set yarnstick.store.url to another place"
PERMISSION = f"see to the permissions, {ELSEWHERE}"
ROOM = f"make room or see to the permissions, {ELSEWHERE}"


class LocalStore:
    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @property
    def url(self) -> str:
        return self._root.as_uri()

    def list(self, path: str) -> list[Entry]:
        try:
            with os.scandir(self._path(path)) as found:
                entries = [_entry(each) for each in found if not each.name.startswith(".")]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self.url}/{path} cannot be listed: {error.strerror}; {PERMISSION}") from None
        return sorted(filter(None, entries), key=lambda entry: entry.name)

    def exists(self, path: str) -> bool:
        return self._path(path).exists()

    def read(self, path: str) -> bytes:
        with self.open(path) as file:
            return file.read()

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes]:
        return map(self.read, paths)

    def open(self, path: str) -> BinaryIO:
        try:
            return self._path(path).open("rb")
        except FileNotFoundError:
            raise StoreError(f"{self.url}/{path} is not there") from None
        except OSError as error:
            raise StoreError(f"{self.url}/{path} cannot be read: {error.strerror}; {PERMISSION}") from None

    def tail(self, path: str, start: int) -> bytes:
        with self.open(path) as file:
            file.seek(start)
            return file.read()

    def create(self, path: str) -> BinaryIO:
        target = self._path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            return target.open("xb")
        except OSError as error:
            raise StoreError(f"{self.url}/{path} cannot be written: {error.strerror}; {ROOM}") from None

    def write(self, path: str, data: bytes) -> None:
        parent, _, _ = path.rpartition("/")
        temporary = f"{parent}/{temporary_name()}" if parent else temporary_name()
        try:
            with self.create(temporary) as file:
                file.write(data)
            os.replace(self._path(temporary), self._path(path))
        except OSError as error:
            raise StoreError(f"{self.url}/{path} cannot be written: {error.strerror}; {ROOM}") from None
        finally:
            self.remove(temporary)

    def rename(self, source: str, target: str) -> bool:
        destination = self._path(target)
        try:
            destination.parent.mkdir(parents=True, exist_ok=True)
            # rename(2) replaces nothing but an empty directory, and a published one is never empty.
            os.rename(self._path(source), destination)
        except OSError as error:
            if destination.exists():
                return False
            raise StoreError(f"{self.url}/{target} cannot be published: {error.strerror}; {ROOM}") from None
        return True

    def remove(self, path: str) -> None:
        target = self._path(path)
        try:
            while target.is_dir() and not target.is_symlink():
                # Another process may be removing the same: then look again.
                with suppress(FileNotFoundError):
                    shutil.rmtree(target)
            with suppress(FileNotFoundError, NotADirectoryError):
                target.unlink()
        except OSError as error:
            raise StoreError(f"{self.url}/{path} cannot be removed: {error.strerror}; {PERMISSION}") from None

    def local(self, path: str) -> Path:
        target = self._path(path)
        if not target.exists():
            raise StoreError(f"{self.url}/{path} is not there")
        return target

    def leftovers(self) -> tuple[Entry, ...]:
        found: tuple[Entry, ...] = ()
        for folder, directories, files in os.walk(self._root):
            temporary = [name for name in [*directories, *files] if name.startswith(TEMPORARY)]
            directories[:] = [name for name in directories if name not in temporary]
            abandoned = [path for path in (Path(folder, name) for name in temporary) if _is_abandoned(path)]
            found += tuple(
                Entry(
                    name=path.relative_to(self._root).as_posix(),
                    bytes=_all_bytes(path),
                    is_directory=path.is_dir(),
                )
                for path in abandoned
            )
        return found

    def collect(self) -> int:
        found = self.leftovers()
        for leftover in found:
            self.remove(leftover.name)
        return len(found)

    def _path(self, path: str) -> Path:
        if path.startswith("/") or ".." in path.split("/"):
            raise StoreError(f"{path} is not a path inside {self.url}")
        return self._root / path


def _entry(found: os.DirEntry[str]) -> Entry | None:
    """None for one that was removed since the directory was read."""
    try:
        return Entry(name=found.name, bytes=found.stat().st_size, is_directory=found.is_dir())
    except FileNotFoundError:
        return None


def _all_bytes(path: Path) -> int:
    """Of a file or of all files below a directory; what vanishes meanwhile has none."""
    total = 0
    for each in [path, *path.rglob("*")]:
        with suppress(OSError):
            total += each.lstat().st_size if not each.is_dir() else 0
    return total


def _is_abandoned(temporary: Path) -> bool:
    try:
        return is_abandoned(temporary.name, modified=temporary.stat().st_mtime)
    except FileNotFoundError:
        return False
