"""A ratio that was measured beside other people's work is theirs: on a loaded machine a benchmark refuses."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.beside_cluster import has_cluster
from models.probes import OtherLoad, usable_cores

QUIET_SHARE = 0.05
DAEMONS_SHARE = 0.1  # where those of a cluster on this machine are up, which are never quite idle

Part = Callable[[Path], Iterable[dict[str, Any]]]  # each row as soon as it is found, where that takes long


class LoadedError(Exception):
    """The machine was not quiet."""


def check_quiet(cores: float, when: str) -> None:
    """`cores` are those that others used."""
    share = DAEMONS_SHARE if has_cluster() else QUIET_SHARE
    if cores > share * usable_cores():
        raise LoadedError(
            f"other processes used {cores:.2f} of {usable_cores()} cores {when}, more than {share:.0%}; "
            f"a ratio measured now would be theirs. Stop them and run make bench again"
        )


class Watch:
    """Other load over several stretches, each of which ends while all that it started still lives.

    Spark ends Python workers that have nothing to do for a minute, and their time is then nobody's.
    """

    def __init__(self, root: int) -> None:
        self._root = root  # the process whose tree is ours
        self._others = self._seconds = 0.0

    @contextmanager
    def stretch(self) -> Iterator[None]:
        load, began = OtherLoad(self._root), time.monotonic()
        yield
        cores, took = load.cores(), time.monotonic() - began
        self._others += cores * took
        self._seconds += took

    def cores(self) -> float:
        return self._others / self._seconds


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """The time of executors counts as ours only while their driver lives: with it they are killed, and nobody's."""
    load = OtherLoad(os.getpid())
    yield
    check_quiet(load.cores(), f"while {name} ran")


def watched(part: Part, name: str) -> Part:
    """A part whose processes all end in good order, so that the machine's other load can be told from outside."""

    def guarded(folder: Path) -> list[dict[str, Any]]:
        with quiet(name):
            return list(part(folder))

    return guarded
