"""The way from tasks to the driver while they run: lines of JSON, from those who know the token.

Who tells shows a sign of life every second, and takes leave at its end: so the driver sees who died or stands still.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, Queue

from models.ranks.accepting import Accepting

CONNECT_SECONDS = 30.0
TOKEN_SECONDS = 10.0  # that who connects has to show its token
LONGEST_TOKEN = 200
LONGEST_LINE = 1 << 20
ALIVE_SECONDS = 1.0
ALIVE, LEAVE = b"", b"."  # no JSON
WELCOME = b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the driver listens, and what to say first."""

    host: str
    port: int
    token: str


@dataclass(slots=True, kw_only=True)
class _Heard:
    """Of one connection whose token was right."""

    host: str
    last: float = field(default_factory=time.monotonic)
    left: bool = False
    cut: bool = False


class Listener:
    """On the driver: what all tasks tell, in the order in which it comes."""

    def __init__(self, host: str, *, known_as: str) -> None:
        listener = socket.create_server((host, 0))
        self.address = Address(host=known_as, port=listener.getsockname()[1], token=secrets.token_hex(32))
        self._accepting = Accepting(listener)
        self._lines: Queue[bytes] = Queue()
        self._heard: list[_Heard] = []
        threading.Thread(target=self._accept, daemon=True, name="telling").start()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exception: object) -> None:
        self._accepting.close()

    def lines(self, *, wait_seconds: float) -> Iterator[bytes]:
        """Those that have come; the first may be waited for."""
        with suppress(Empty):
            yield self._lines.get(timeout=wait_seconds) if wait_seconds else self._lines.get_nowait()
            while True:
                yield self._lines.get_nowait()

    @property
    def came(self) -> int:
        """How many have shown their token."""
        return len(self._heard)

    @property
    def left(self) -> int:
        """How many of them have taken their leave."""
        return sum(each.left for each in self._heard)

    @property
    def cut(self) -> list[str]:
        """The hosts of those whose connection ended without their leave: they died."""
        return [each.host for each in self._heard if each.cut]

    def silent(self, *, seconds: float) -> list[str]:
        """The hosts of those who have shown no sign of life for so long: they stand still, or nothing reaches us."""
        now = time.monotonic()
        return [each.host for each in self._heard if not each.left and not each.cut and now - each.last > seconds]

    def _accept(self) -> None:
        for peer, host in self._accepting:
            threading.Thread(target=self._read, args=(peer, host), daemon=True, name="telling-of-one").start()

    def _read(self, peer: socket.socket, host: str) -> None:
        with peer, suppress(OSError):
            peer.settimeout(TOKEN_SECONDS)
            with peer.makefile("rb") as lines:
                token = lines.readline(LONGEST_TOKEN).strip()
                if not hmac.compare_digest(token, self.address.token.encode()):
                    return  # a stranger
                if any(each.left or each.cut for each in self._heard):
                    return  # of a stage that Spark tries again: the driver has given it up
                peer.settimeout(None)
                heard = _Heard(host=host)
                self._heard.append(heard)
                try:
                    peer.sendall(WELCOME)
                    while (line := lines.readline(LONGEST_LINE)).endswith(b"\n"):  # half a line is of one that died
                        heard.last = time.monotonic()
                        heard.left = line == LEAVE + b"\n"
                        if heard.left:
                            return
                        if line != ALIVE + b"\n":
                            self._lines.put(line)
                finally:
                    heard.cut = not heard.left


class Teller:
    """In a task."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection((address.host, address.port), timeout=CONNECT_SECONDS)
        self._sending = threading.Lock()
        self._ended = threading.Event()
        try:
            self._introduce(address.token)
        except OSError:
            self._socket.close()
            raise
        threading.Thread(target=self._live, daemon=True, name="alive").start()

    def tell(self, line: bytes) -> None:
        with self._sending:
            self._socket.sendall(line + b"\n")

    def close(self) -> None:
        self._ended.set()
        with suppress(OSError):  # the driver may be gone
            self.tell(LEAVE)
        self._socket.close()

    def _introduce(self, token: str) -> None:
        self.tell(token.encode())
        if self._socket.recv(1) != WELCOME:
            raise ConnectionRefusedError("the driver listens to others, or to nobody any more")

    def _live(self) -> None:
        with suppress(OSError):
            while not self._ended.wait(ALIVE_SECONDS):
                self.tell(ALIVE)
