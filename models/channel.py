"""How a process that trains and the one that asks for it talk: lines of specs come in, lines of events go out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from store.errors import StoreError
from store.protocol import Store

POLL_SECONDS = 0.02
STORE_POLL_SECONDS = 0.3
END = b'"end"'
ALIVE = "alive"
ALIVE_SECONDS = 10.0
FORSAKEN_SECONDS = 90.0


class Channel(Protocol):
    def specs(self) -> Iterator[bytes]:
        """The session, then trials as they come, until there are no more."""
        ...

    def tell(self, event: bytes) -> None: ...


class Files:
    """Both on one machine: files that grow."""

    def __init__(self, specs: Path, events: Path) -> None:
        self._specs = specs
        self._events = events

    def specs(self) -> Iterator[bytes]:
        with self._specs.open("rb") as lines:
            line = b""
            while True:
                line += lines.readline()
                if not line.endswith(b"\n"):
                    time.sleep(POLL_SECONDS)
                    continue
                if line.strip() == END:
                    return
                yield line
                line = b""

    def tell(self, event: bytes) -> None:
        with self._events.open("ab", buffering=0) as file:
            file.write(event + b"\n")


class Mailbox:
    """On two machines that see one store: numbered files below a directory, each published whole.

    Who asks renews the file `alive`. When it is not renewed any more, nobody waits for what is measured here.
    """

    def __init__(self, store: Store, folder: str) -> None:
        self._store = store
        self._folder = folder
        self._sent = {"specs": 0, "events": 0}
        self._renewed = 0
        self._alive = (b"", time.monotonic())

    def specs(self) -> Iterator[bytes]:
        for line in self.received("specs"):
            if line is None:
                self._check_alive()
                time.sleep(STORE_POLL_SECONDS)
            elif line == END:
                return
            else:
                yield line

    def tell(self, event: bytes) -> None:
        self.send("events", event)

    def send(self, kind: str, line: bytes) -> None:
        self._sent[kind] += 1
        self._store.write(f"{self._folder}/{kind}/{self._sent[kind]:06d}", line)

    def received(self, kind: str) -> Iterator[bytes | None]:
        """Each line when it is there; None as often as there is none yet."""
        number = 1
        while True:
            waiting = {entry.name for entry in self._store.list(f"{self._folder}/{kind}")}
            while (name := f"{number:06d}") in waiting:
                yield self._store.read(f"{self._folder}/{kind}/{name}")
                number += 1
            yield None

    def renew(self) -> None:
        self._renewed += 1
        self._store.write(f"{self._folder}/{ALIVE}", str(self._renewed).encode())

    def _check_alive(self) -> None:
        told, since = self._alive
        if time.monotonic() - since < ALIVE_SECONDS:
            return
        now = self._store.read(f"{self._folder}/{ALIVE}")
        if now != told:
            self._alive = now, time.monotonic()
        elif time.monotonic() - since > FORSAKEN_SECONDS:
            raise StoreError(f"{self._store.url}/{self._folder}/{ALIVE} is not renewed: who asked for this is gone")
