"""Who connects to a socket that listens, until it is closed: no caller, and no lack of files, ends that before."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

PAUSE_SECONDS = 0.05  # after what does not go away by itself, as a process that has no room for one more file


class Accepting:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._closed = threading.Event()

    def __iter__(self) -> Iterator[tuple[socket.socket, str]]:
        """Each with its host."""
        while not self._closed.is_set():
            try:
                peer, (host, _) = self._listener.accept()
            except OSError:
                self._closed.wait(PAUSE_SECONDS)
            else:
                yield peer, host

    def close(self) -> None:
        """A thread that waits in accept() is woken by a shutdown only."""
        self._closed.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
