"""The way from tasks to the driver: what comes is whole and ours, and who died or stands still is seen."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.ranks.telling import Address, Listener, Teller
from tests.pipeline.place import eventually


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener("127.0.0.1", known_as="127.0.0.1") as made:
        yield made


def raw(address: Address) -> socket.socket:
    return socket.create_connection((address.host, address.port), timeout=10)


def is_turned_away(peer: socket.socket) -> bool:
    """Nothing comes back, and nothing more is taken."""
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:  # what it sent was not even read
        return True


def test_lines_come_in_their_order(listener: Listener) -> None:
    teller = Teller(listener.address)
    for number in range(100):
        teller.tell(b'{"n": %d}' % number)
    teller.close()
    found: list[bytes] = []
    eventually(lambda: found.extend(listener.lines(wait_seconds=1)) or len(found) == 100)
    assert found == [b'{"n": %d}\n' % number for number in range(100)]
    assert (listener.came, listener.cut) == (1, [])


@pytest.mark.parametrize(
    "said",
    [b"\n", b"0" * 64 + b"\n", b"x" * 100_000, b"GET / HTTP/1.1\r\n\r\n", b"\x00\xff\n{}\n"],
    ids=["none", "wrong", "endless", "a browser", "bytes"],
)
def test_a_stranger_is_not_heard(listener: Listener, said: bytes) -> None:
    with raw(listener.address) as stranger:
        stranger.sendall(said + b'{"kind": "epoch"}\n')
        assert is_turned_away(stranger)
    assert list(listener.lines(wait_seconds=0)) == []
    assert (listener.came, listener.cut, listener.silent(seconds=0)) == (0, [], [])


@given(said=st.binary(max_size=300))
def test_whatever_a_stranger_says_the_next_one_of_ours_is_heard(said: bytes) -> None:
    with Listener("127.0.0.1", known_as="127.0.0.1") as listener:
        with raw(listener.address) as stranger:
            stranger.sendall(said)
        teller = Teller(listener.address)
        teller.tell(b"{}")
        assert next(listener.lines(wait_seconds=10)) == b"{}\n"
        teller.close()
        eventually(lambda: listener.silent(seconds=0) == [])
        assert (listener.came, listener.cut) == (1, [])


def test_a_wrong_token_is_an_error_of_who_has_it(listener: Listener) -> None:
    with pytest.raises(OSError, match=r"listens to others|reset"):
        Teller(replace(listener.address, token="0" * 64))


def test_half_a_line_is_dropped_and_its_end_seen(listener: Listener) -> None:
    with raw(listener.address) as peer:
        peer.sendall(listener.address.token.encode() + b'\n{"whole": 1}\n{"half": ')
        assert next(listener.lines(wait_seconds=10)) == b'{"whole": 1}\n'
    eventually(lambda: listener.cut == ["127.0.0.1"])
    assert list(listener.lines(wait_seconds=0)) == []


def test_who_shows_no_sign_of_life_is_named(listener: Listener) -> None:
    living = Teller(listener.address)
    with raw(listener.address) as dumb:
        dumb.sendall(listener.address.token.encode() + b"\n")
        eventually(lambda: listener.silent(seconds=2.5) == ["127.0.0.1"])
        assert listener.came == 2
    living.close()
    eventually(lambda: listener.silent(seconds=0) == [])


def test_nobody_is_heard_after_one_has_left(listener: Listener) -> None:
    """Spark tries a stage again that the driver has given up."""
    Teller(listener.address).close()
    with pytest.raises(OSError, match=r"listens to others|reset"):
        eventually(lambda: Teller(listener.address).close())


def test_a_driver_that_is_gone_is_an_error_and_no_wait() -> None:
    with Listener("127.0.0.1", known_as="127.0.0.1") as listener:
        address = listener.address
    with pytest.raises(ConnectionRefusedError):
        Teller(address)
