"""What a store must do. Nothing downstream knows whether it is a directory or HDFS.

Paths are relative to the store, with `/` between segments. A name that starts with a dot is
temporary: no listing shows it, and `collect` removes what a killed process left of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a listing."""

    name: str
    bytes: int
    is_directory: bool


@runtime_checkable
class Discardable(Protocol):
    """A new file whose content goes to the store only when it is closed."""

    def discard(self) -> None:
        """Close, and send nothing."""
        ...


class Store(Protocol):
    @property
    def url(self) -> str:
        """Where the store is, as a user would write it."""
        ...

    def list(self, path: str) -> list[Entry]:
        """What lies in a directory, by name; a directory that is not there is empty."""
        ...

    def exists(self, path: str) -> bool: ...

    def read(self, path: str) -> bytes: ...

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes]:
        """Many small files, in the order of `paths`, with as little waiting as the store allows."""
        ...

    def open(self, path: str) -> BinaryIO: ...

    def tail(self, path: str, start: int) -> bytes:
        """What a file that another program still writes holds from a byte on."""
        ...

    def create(self, path: str) -> BinaryIO:
        """A new file to write to, with the directories it needs; only `Staging` writes this way."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Publish one file atomically, in place of an older one if there is one."""
        ...

    def rename(self, source: str, target: str) -> bool:
        """Publish a directory by one rename; False, and nothing done, where the target is there already."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file or a whole directory; one that is not there is no error."""
        ...

    def local(self, path: str) -> Path:
        """A local path with the content of `path`: the file itself, or a copy."""
        ...

    def leftovers(self) -> tuple[Entry, ...]:
        """What dead processes left, each by its path and with all its bytes."""
        ...

    def collect(self) -> int:
        """Remove the leftovers of dead processes; how many there were."""
        ...
