"""Local copies of what lies on HDFS, for processes that read files: checked when fetched, and bounded in all."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from store.errors import SettingError, StoreError
from store.local import LocalStore
from store.publish import TEMPORARY, temporary_name

GB = 1_000_000_000


class Downloads:
    """Each copy is a directory of one entry, locked as long as a process uses it; the least recently used one goes."""

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._held: dict[str, int] = {}  # open directories, whose locks end with this process
        self._lock = Lock()

    def copy(self, key: str, name: str, *, bytes: int, fetch: Callable[[Path], None]) -> Path:
        """The copy under `key`, which tells its content; `fetch` writes it where there is none yet."""
        with self._lock:
            if key not in self._held and not self._hold(key):
                self._prepare()
                self._make_room(name, bytes)
                self._fetch(key, name, fetch)
            os.utime(self._folder / key, ns=(time.time_ns(), time.time_ns()))
            return self._folder / key / name

    def release(self) -> None:
        """Nothing that was handed out is used any more; else that ends with this process."""
        with self._lock:
            while self._held:
                os.close(self._held.popitem()[1])

    def _prepare(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        LocalStore(self._folder).collect()

    def _hold(self, key: str) -> bool:
        """Lock the copy against removal; False where there is none."""
        with suppress(FileNotFoundError):
            held = os.open(self._folder / key, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(held, fcntl.LOCK_SH)
            with suppress(FileNotFoundError):
                # It may have been removed before the lock was ours.
                if os.path.samestat(os.fstat(held), os.stat(self._folder / key)):
                    self._held[key] = held
                    return True
            os.close(held)
        return False

    def _fetch(self, key: str, name: str, fetch: Callable[[Path], None]) -> None:
        temporary = self._folder / temporary_name()
        try:
            temporary.mkdir(mode=0o700)
            fetch(temporary / name)
            # Of two processes that fetch the same, one finds its copy there already.
            with suppress(OSError):
                temporary.rename(self._folder / key)
        except OSError as error:
            raise StoreError(
                f"{temporary / name} cannot be written: {error.strerror}; make room and run again"
            ) from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        if not self._hold(key):
            raise StoreError(f"{self._folder / key} was removed while it was made; run again")

    def _make_room(self, name: str, wanted: int) -> None:
        sizes = {copy: _size(copy) for copy in self._copies()}
        total = sum(sizes.values())
        for copy, size in sizes.items():
            if total + wanted <= self._most_bytes:
                return
            with _unused(copy) as unused:
                if unused:
                    shutil.rmtree(copy, ignore_errors=True)
                    total -= size
        if total + wanted > self._most_bytes:
            raise SettingError(
                f"yarnstick.store.cache_gb = {self._most_bytes / GB:g} has no room for a copy of {name} "
                f"({wanted / GB:.3f} GB, beside {total / GB:.3f} GB in use); raise it"
            )

    def _copies(self) -> list[Path]:
        """The least recently used first."""
        found = []
        for copy in self._folder.iterdir():
            with suppress(FileNotFoundError):
                if not copy.name.startswith(TEMPORARY):
                    found.append((copy.stat().st_mtime, copy))
        return [copy for _, copy in sorted(found)]


@contextmanager
def _unused(copy: Path) -> Iterator[bool]:
    """Whether no process holds it; none can take hold of it meanwhile."""
    try:
        opened = os.open(copy, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
    else:
        yield True
    finally:
        os.close(opened)


def _size(copy: Path) -> int:
    total = 0
    for folder, _, files in os.walk(copy):
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return total
