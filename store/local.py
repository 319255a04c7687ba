"""The embedded default: a store in a local directory."""

from __future__ import annotations

import os
import shutil
import socket
import time
from pathlib import Path
from typing import BinaryIO

from store.errors import StoreError
from store.protocol import Entry
from store.publish import temporary_name

ABANDONED_SECONDS = 24 * 3600.0


class LocalStore:
    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @property
    def url(self) -> str:
        return self._root.as_uri()

    def list(self, path: str) -> list[Entry]:
        try:
            with os.scandir(self._path(path)) as found:
                entries = [
                    Entry(name=each.name, bytes=each.stat().st_size, is_directory=each.is_dir())
                    for each in found
                    if not each.name.startswith(".")
                ]
        except FileNotFoundError:
            return []
        return sorted(entries, key=lambda entry: entry.name)

    def exists(self, path: str) -> bool:
        return self._path(path).exists()

    def read(self, path: str) -> bytes:
        with self.open(path) as file:
            return file.read()

    def open(self, path: str) -> BinaryIO:
        try:
            return self._path(path).open("rb")
        except FileNotFoundError:
            raise StoreError(f"{self.url}/{path} is not there") from None

    def create(self, path: str) -> BinaryIO:
        target = self._path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            return target.open("xb")
        except OSError as error:
            raise StoreError(f"{self.url}/{path} cannot be written: {error.strerror}") from None

    def write(self, path: str, data: bytes) -> None:
        parent, _, _ = path.rpartition("/")
        temporary = f"{parent}/{temporary_name()}" if parent else temporary_name()
        try:
            with self.create(temporary) as file:
                file.write(data)
            os.replace(self._path(temporary), self._path(path))
        except OSError as error:
            raise StoreError(f"{self.url}/{path} cannot be written: {error.strerror}") from None
        finally:
            self.remove(temporary)

    def rename(self, source: str, target: str) -> bool:
        destination = self._path(target)
        destination.parent.mkdir(parents=True, exist_ok=True)
        try:
            # rename(2) replaces nothing but an empty directory, and a published one is never empty.
            os.rename(self._path(source), destination)
        except OSError as error:
            if destination.exists():
                return False
            raise StoreError(f"{self.url}/{target} cannot be published: {error.strerror}") from None
        return True

    def remove(self, path: str) -> None:
        target = self._path(path)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)

    def local(self, path: str) -> Path:
        target = self._path(path)
        if not target.exists():
            raise StoreError(f"{self.url}/{path} is not there")
        return target

    def collect(self) -> int:
        leftovers = [
            Path(folder) / name
            for folder, directories, files in os.walk(self._root)
            for name in [*directories, *files]
            if name.startswith(".tmp.") and _is_abandoned(Path(folder) / name)
        ]
        for leftover in leftovers:
            self.remove(str(leftover.relative_to(self._root)))
        return len(leftovers)

    def _path(self, path: str) -> Path:
        return self._root / path


def _is_abandoned(temporary: Path) -> bool:
    """Its owner is a dead process of this host, or it is older than any step of a run takes."""
    host, pid, _ = temporary.name.removeprefix(".tmp.").rsplit(".", 2)
    if host == socket.gethostname() and pid.isdigit():
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
    return time.time() - temporary.stat().st_mtime > ABANDONED_SECONDS
