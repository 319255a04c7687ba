"""Who is at a run now: a file of each process that measures it, which tells a killed process from a living one."""

from __future__ import annotations

import atexit
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from socket import gethostname

import msgspec
import psutil

from store.errors import YarnstickError
from store.protocol import Store

FOLDER = "present"
FORGOTTEN_SECONDS = 7 * 24 * 3600.0  # of a process on another host, of which nothing can be known
SAME_START_SECONDS = 2.0  # the start of a process is known to a tick of the kernel's clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    host: str
    pid: int
    started: float  # seconds since 1970, of the process: ids are used again
    since: float

    def is_alive(self) -> bool:
        if self.host != gethostname():
            return time.time() - self.since < FORGOTTEN_SECONDS
        try:
            return bool(abs(psutil.Process(self.pid).create_time() - self.started) < SAME_START_SECONDS)
        except psutil.Error:
            return False

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class Presence:
    """That this process is at a run, from `announce` until it ends."""

    def __init__(self, store: Store, run: str) -> None:
        self._store = store
        self._announced: int | None = None  # the process that did; a fork of it is another one
        self._path = f"{run}/{FOLDER}/{gethostname()}-{os.getpid()}.json"

    def announce(self) -> None:
        if self._announced is None:
            self._announced = os.getpid()
            started = psutil.Process().create_time()
            mine = Present(host=gethostname(), pid=os.getpid(), started=started, since=time.time())
            self._store.write(self._path, msgspec.json.encode(mine))
            atexit.register(self.withdraw)

    def withdraw(self) -> None:
        if self._announced == os.getpid():
            with suppress(YarnstickError):
                self._store.remove(self._path)


def present(store: Store, run: str) -> list[Present]:
    """The living that are at a run."""
    return [each for _, each in _announced(store, run) if each is not None and each.is_alive()]


def gone(store: Store, run: str) -> list[str]:
    """The paths of what dead processes left there."""
    return [path for path, each in _announced(store, run) if each is None or not each.is_alive()]


def _announced(store: Store, run: str) -> list[tuple[str, Present | None]]:
    found: list[tuple[str, Present | None]] = []
    for entry in store.list(f"{run}/{FOLDER}"):
        path = f"{run}/{FOLDER}/{entry.name}"
        try:
            found.append((path, msgspec.json.decode(store.read(path), type=Present)))
        except msgspec.MsgspecError:
            found.append((path, None))
        except YarnstickError:  # withdrawn meanwhile
            continue
    return found
