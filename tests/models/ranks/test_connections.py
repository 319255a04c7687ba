"""How ranks are connected, and who is not let in: real sockets, each rank a thread."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from models.ranks.connections import connected
from models.ranks.greeting import greeting
from models.ranks.meeting import Announced, Place

TOKEN = "a" * 64
STRANGERS = (
    b"",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\xff" * 500,
    greeting(TOKEN, 2)[:20],  # and then nothing
    greeting("b" * 64, 2),
    greeting(TOKEN, 0),  # is the one that is called
    greeting(TOKEN, 3),
    greeting(TOKEN, -1),
)


@dataclass
class Met:
    """What a rank knows of all."""

    place: Place
    every: list[Announced]
    listener: socket.socket

    def met(self) -> list[Announced]:
        return self.every

    def listeners(self) -> list[socket.socket]:
        return [self.listener]


@contextmanager
def meetings(size: int) -> Iterator[list[Any]]:
    with ExitStack() as ends:
        listeners = [ends.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(size)]
        every = [
            Announced(rank, f"node-{rank}", "127.0.0.1", [each.getsockname()[1]]) for rank, each in enumerate(listeners)
        ]
        yield [
            Met(Place(rank=rank, size=size, host=f"node-{rank}", others=(), trains=True), every, listeners[rank])
            for rank in range(size)
        ]


def names_of_peers(size: int, every: list[Any]) -> list[list[str]]:
    """What each rank reads from its connections, on which all say who they are."""

    def one(meeting: Any) -> list[str]:
        with ExitStack() as ends:
            peers = [ends.enter_context(each) for each in connected(meeting, token=TOKEN, seconds=20.0)]
            for each in peers:
                each.settimeout(10.0)
                each.sendall(str(meeting.place.rank).encode())
            return [each.recv(1).decode() for each in peers]

    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(one, every))


@pytest.mark.parametrize("size", [2, 3, 6])
def test_each_two_have_one_in_order_of_rank(size: int) -> None:
    with meetings(size) as every:
        told = names_of_peers(size, every)
    assert told == [[str(rank) for rank in range(size) if rank != own] for own in range(size)]


def test_strangers_are_hung_up_on_and_hold_up_nobody() -> None:
    with meetings(3) as every, ExitStack() as ends:
        for stranger in STRANGERS * 3:
            peer = ends.enter_context(socket.create_connection(every[0].listener.getsockname()))
            peer.sendall(stranger)
        assert names_of_peers(3, every) == [["1", "2"], ["0", "2"], ["0", "1"]]


def test_strangers_who_keep_coming_do_not_put_off_the_deadline() -> None:
    ended = threading.Event()

    def knock(address: tuple[str, int]) -> None:
        until = time.monotonic() + 60
        while not ended.wait(0.01) and time.monotonic() < until:
            with suppress(OSError):
                socket.create_connection(address, timeout=1).close()

    with meetings(2) as every, ThreadPoolExecutor() as threads:
        knocking = threads.submit(knock, every[0].listener.getsockname())
        try:
            with pytest.raises(TimeoutError, match=r"^nothing came from node-1$"):
                connected(every[0], token=TOKEN, seconds=1.0)
            assert not knocking.done()
        finally:
            ended.set()


def test_what_one_took_to_answer_the_next_has_less(monkeypatch: pytest.MonkeyPatch) -> None:
    call, patience = socket.create_connection, list[float]()

    def called(address: tuple[str, int], *, timeout: float) -> socket.socket:
        patience.append(timeout)
        if len(patience) == 2:
            raise TimeoutError
        time.sleep(0.5)
        return call(address, timeout=timeout)

    monkeypatch.setattr(socket, "create_connection", called)
    with meetings(3) as (*_, last), pytest.raises(TimeoutError):
        connected(last, token=TOKEN, seconds=30.0)
    first, second = patience
    assert second < first - 0.4


def test_nobody_listens_once_all_are_connected() -> None:
    with meetings(3) as every:
        names_of_peers(3, every)
        assert [each.listener.fileno() for each in every] == [-1, -1, -1]


def test_who_does_not_come_is_named() -> None:
    with meetings(3) as (one, *_), socket.create_connection(one.listener.getsockname()) as other:
        other.sendall(greeting(TOKEN, 1))
        with pytest.raises(TimeoutError, match=r"^nothing came from node-2$"):
            connected(one, token=TOKEN, seconds=1.0)
