"""The way from tasks to the driver while they run: lines of JSON, from those who know the token."""

from __future__ import annotations

import hmac
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Queue

CONNECT_SECONDS = 30.0
TOKEN_SECONDS = 10.0  # that who connects has to show its token
LONGEST_TOKEN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the driver listens, and what to say first."""

    host: str
    port: int
    token: str


class Listener:
    """On the driver: what all tasks tell, in the order in which it comes."""

    def __init__(self, host: str, *, known_as: str) -> None:
        self._socket = socket.create_server((host, 0))
        self.address = Address(host=known_as, port=self._socket.getsockname()[1], token=secrets.token_hex(32))
        self._lines: Queue[bytes] = Queue()
        threading.Thread(target=self._accept, daemon=True, name="telling").start()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exception: object) -> None:
        # A thread that waits in accept() is not woken by close().
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def lines(self, *, wait_seconds: float) -> Iterator[bytes]:
        """Those that have come; the first may be waited for."""
        with suppress(Empty):
            yield self._lines.get(timeout=wait_seconds)
            while True:
                yield self._lines.get_nowait()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=(peer,), daemon=True, name="telling-of-one").start()

    def _read(self, peer: socket.socket) -> None:
        with peer, suppress(OSError):
            peer.settimeout(TOKEN_SECONDS)
            with peer.makefile("rb") as lines:
                token = lines.readline(LONGEST_TOKEN).strip()
                if not hmac.compare_digest(token, self.address.token.encode()):
                    return  # a stranger
                peer.settimeout(None)
                for line in lines:
                    self._lines.put(line)


class Teller:
    """In a task."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection((address.host, address.port), timeout=CONNECT_SECONDS)
        self.tell(address.token.encode())

    def tell(self, line: bytes) -> None:
        self._socket.sendall(line + b"\n")

    def close(self) -> None:
        self._socket.close()
