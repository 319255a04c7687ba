"""Processes that are slow for real: they stand still a part of the time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

import psutil

LOOK_SECONDS = 1.0  # after which it may be others


@contextmanager
def slowed(processes: Callable[[], Iterable[psutil.Process]], *, stopped: float, running: float) -> Iterator[None]:
    """In turns of so many seconds."""
    ended = threading.Event()
    thread = threading.Thread(target=_turn, args=(processes, stopped, running, ended), daemon=True, name="slow")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _turn(
    processes: Callable[[], Iterable[psutil.Process]], stopped: float, running: float, ended: threading.Event
) -> None:
    slow, looked = list(processes()), time.monotonic()
    while not ended.is_set():
        if time.monotonic() - looked > LOOK_SECONDS:
            slow, looked = list(processes()), time.monotonic()
        for sign, seconds in ((signal.SIGSTOP, stopped), (signal.SIGCONT, running)):
            for process in slow:
                with suppress(psutil.Error):
                    process.send_signal(sign)
            time.sleep(seconds)
