"""Directories that are there complete or not at all: written under a temporary name, published by one rename."""

from __future__ import annotations

import hashlib
import io
import os
import re
import socket
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO

from store.errors import StoreError
from store.manifest import MANIFEST, Manifest, Part
from store.protocol import Discardable, Store

TEMPORARY = ".tmp."
DEEPEST = 4  # segments of the longest path that is published, as runs/<id>/trials/<slug>
ABANDONED_SECONDS = 7 * 24 * 3600.0  # a session may be long; only what is not known to be dead waits for this
ADOPTED_AT_ONCE = 4
BLOCK_BYTES = 1 << 20
SAME_START_SECONDS = 60.0  # clocks of processes are coarse


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The process that a temporary name belongs to, and when it made it."""

    host: str
    pid: int
    since: float | None


def temporary_name() -> str:
    """A hidden name that tells its owner, so that what a dead process left can be collected."""
    return f"{TEMPORARY}{socket.gethostname()}.{os.getpid()}.{int(time.time()):x}-{uuid.uuid4().hex[:8]}"


def temporary_owner(name: str) -> Owner | None:
    """Who made a temporary name; None for a name that is not one of ours."""
    rest, _, made = name.removeprefix(TEMPORARY).rpartition(".")
    host, _, pid = rest.rpartition(".")
    if not host or not re.fullmatch("[0-9]{1,18}", pid):
        return None
    when = re.match("([0-9a-f]{1,12})-", made)
    return Owner(host=host, pid=int(pid), since=float(int(when[1], 16)) if when else None)


def is_abandoned(name: str, *, modified: float) -> bool:
    """The owner of a temporary name is a dead process of this host, or the thing is older than any step of a run."""
    owner = temporary_owner(name)
    if owner is not None and owner.host == socket.gethostname() and not _lives(owner):
        return True
    return time.time() - modified > ABANDONED_SECONDS


def _lives(owner: Owner) -> bool:
    """A process of the same id that began after the name was made is another one."""
    import psutil

    try:
        process = psutil.Process(owner.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        began = process.create_time()
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, OverflowError):
        return True
    return owner.since is None or began < owner.since + SAME_START_SECONDS


class PartWriter(io.RawIOBase):
    """A part file while it is written: counts and hashes what passes. Set `rows` before it is closed."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        self.rows = 0
        self._file = file
        self._hash = hashlib.sha256()
        self._bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            self._file.write(data)
        except OSError as error:
            raise _unwritten(self.name, error) from None
        self._hash.update(data)
        size = memoryview(data).nbytes
        self._bytes += size
        return size

    def tell(self) -> int:
        return self._bytes

    def close(self) -> None:
        if not self.closed:
            super().close()
            try:
                self._file.close()
            except OSError as error:
                raise _unwritten(self.name, error) from None

    def discard(self) -> None:
        """Close, as nobody will publish it: what would be sent only now is not."""
        if not self.closed and isinstance(self._file, Discardable):
            super().close()
            self._file.discard()
        self.close()

    def part(self) -> Part:
        return Part(name=self.name, rows=self.rows, bytes=self._bytes, sha256=self._hash.hexdigest())


def _unwritten(name: str, error: OSError) -> StoreError:
    return StoreError(f"{name} cannot be written: {error.strerror}; nothing of it is kept, so make room and run again")


class Staging:
    """`with Staging(store, path) as staging: ...; staging.commit()`: without the commit nothing is published."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        parent, _, _ = path.rpartition("/")
        self._temporary = f"{parent}/{temporary_name()}" if parent else temporary_name()
        self._writers: list[PartWriter] = []
        self._adopted: list[Part] = []

    @property
    def temporary(self) -> str:
        """Where it lies until it is published: for a program that makes the directory and writes to it by itself."""
        return self._temporary

    def create(self, name: str) -> PartWriter:
        writer = PartWriter(name, self._store.create(f"{self._temporary}/{name}"))
        self._writers.append(writer)
        return writer

    def put(self, name: str, data: bytes, *, rows: int = 0) -> None:
        """A whole small file at once."""
        with self.create(name) as writer:
            writer.write(data)
            writer.rows = rows

    def adopt(self, names: Sequence[str]) -> list[Part]:
        """Take over parts that another program wrote, with as many rows as they have lines."""
        with ThreadPoolExecutor(ADOPTED_AT_ONCE) as pool:
            parts = list(pool.map(self._read, names))
        self._adopted += parts
        return parts

    def _read(self, name: str) -> Part:
        digest, size, rows = hashlib.sha256(), 0, 0
        with self._store.open(f"{self._temporary}/{name}") as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
                size += len(block)
                rows += block.count(b"\n")
        return Part(name=name, rows=rows, bytes=size, sha256=digest.hexdigest())

    def commit(self, **facts: Any) -> bool:
        """Publish. False where somebody else published the same path first: theirs stays, ours is dropped."""
        for writer in self._writers:
            if not writer.closed:
                raise StoreError(f"{self._path}/{writer.name} is still open: close it before the commit")
        parts = (*self._adopted, *(writer.part() for writer in self._writers))
        manifest = Manifest(parts=parts, facts=facts)
        try:
            with self._store.create(f"{self._temporary}/{MANIFEST}") as file:
                file.write(manifest.encode())
        except OSError as error:
            raise _unwritten(f"{self._path}/{MANIFEST}", error) from None
        return self._store.rename(self._temporary, self._path)

    def __enter__(self) -> Staging:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for writer in self._writers:
                writer.discard()
        finally:
            try:
                self._store.remove(self._temporary)
            except StoreError:
                if error is None:  # else that one is worth telling; what stays is collected later
                    raise
