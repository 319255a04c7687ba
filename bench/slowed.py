"""Processes that are slow for real: they stand still a part of the time. Such as the Python of a Spark executor."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import psutil

LOOK_SECONDS = 1.0  # after which it may be others
DAEMON = "pyspark.daemon"


Processes = Callable[[], Iterable[psutil.Process]]


@contextmanager
def slowed(*groups: Processes, stopped: float, running: float) -> Iterator[None]:
    """In turns of so many seconds; of several groups one after another stands still, and between them none does."""
    ended = threading.Event()
    thread = threading.Thread(target=_turn, args=(groups, stopped, running, ended), daemon=True, name="slow")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _turn(groups: Sequence[Processes], stopped: float, running: float, ended: threading.Event) -> None:
    slow, looked = [list(each()) for each in groups], time.monotonic()
    while not ended.is_set():
        if time.monotonic() - looked > LOOK_SECONDS:
            slow, looked = [list(each()) for each in groups], time.monotonic()
        for group in slow:
            for sign, seconds in ((signal.SIGSTOP, stopped), (signal.SIGCONT, running)):
                for process in group:
                    with suppress(psutil.Error):
                        process.send_signal(sign)
                time.sleep(seconds)


def python_of_executors() -> list[Processes]:
    """Whatever Python works for each of our executors: first that of the one with the lowest process id."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            parent = process.parent()
            if DAEMON in process.cmdline() and parent is not None and DAEMON not in parent.cmdline():
                found.add(parent)
    return [partial(_workers, executor) for executor in sorted(each.pid for each in found)]


def _workers(executor: int) -> list[psutil.Process]:
    """Forks of the executor's daemon."""
    with suppress(psutil.Error):
        every = psutil.Process(executor).children(recursive=True)
        return [each for each in every if each.ppid() != executor and DAEMON in each.cmdline()]
    return []
