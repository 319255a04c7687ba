"""One trial at a time on this host, whoever runs it: a file lock that ends with its process."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from store.errors import SettingError

POLL_SECONDS = 0.2


class StillHeldError(Exception):
    """Another process held the lease for longer than there was patience."""


def lease_file(setting: Path | None) -> Path:
    return setting or Path(tempfile.gettempdir()) / "yarnstick-measuring.lock"


@contextmanager
def measuring_lease(path: Path, *, waiting: Callable[[], None], patience: float | None = None) -> Iterator[None]:
    """Wait until no other trial is measured on this host; `waiting` is called once if that takes a while.

    After `patience` seconds it is a StillHeldError.
    """
    gives_up = None if patience is None else time.monotonic() + patience
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another user's lock file in a shared directory can be read and locked, but neither written nor created again.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | (0 if path.exists() else os.O_CREAT)
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        raise SettingError(
            f"yarnstick.lease = {path} cannot be locked: {error.strerror}; name a file in a directory that you can "
            f"write to, the same for all who measure on this host"
        ) from None
    try:
        told = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    waiting()
                    told = True
                if gives_up is not None and time.monotonic() >= gives_up:
                    raise StillHeldError from None
                time.sleep(POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def holders(path: Path) -> list[int]:
    """The processes that hold it now, as Linux lists them; none where it does not tell."""
    found = []
    with suppress(OSError, ValueError):
        inode = path.stat().st_ino
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            # 1: FLOCK ADVISORY WRITE 4711 08:01:1234567 0 EOF; one that only waits has -> behind its number.
            fields = line.split()
            if fields[1] == "FLOCK" and int(fields[5].rpartition(":")[2]) == inode:
                found.append(int(fields[4]))
    return found
