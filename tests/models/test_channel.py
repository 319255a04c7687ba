"""How specs and events go between two processes, on one machine and by way of a store."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

import pytest

from models import channel
from models.channel import END, Files, Mailbox
from store.errors import StoreError
from store.local import LocalStore
from store.protocol import Store
from tests.made_clock import MadeClock


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "store")


def test_lines_are_taken_when_they_are_whole(tmp_path: Path) -> None:
    specs, events = tmp_path / "specs", tmp_path / "events"
    specs.write_bytes(b"session\nfir")
    taken: list[bytes] = []
    reader = threading.Thread(target=lambda: taken.extend(Files(specs, events).specs()))
    reader.start()
    time.sleep(0.2)
    with specs.open("ab", buffering=0) as more:
        for piece in (b"st", b"\n", END, b"\n"):
            more.write(piece)
    reader.join(10)
    assert taken == [b"session\n", b"first\n"]


def test_a_mailbox_hands_over_in_order_until_the_end(store: Store) -> None:
    here, there = Mailbox(store, "runs/a/box"), Mailbox(store, "runs/a/box")
    here.renew()
    for line in (b"session", b"1", b"2", END):
        here.send("specs", line)
    assert list(there.specs()) == [b"session", b"1", b"2"]
    for number in range(12):
        there.tell(b"%d" % number)
    told = itertools.takewhile(lambda line: line is not None, here.received("events"))
    assert list(told) == [b"%d" % number for number in range(12)]


def test_what_comes_later_is_received_too(store: Store) -> None:
    here, there = Mailbox(store, "box"), Mailbox(store, "box")
    received = here.received("events")
    assert next(received) is None
    there.tell(b"first")
    assert [next(received), next(received)] == [b"first", None]


def test_who_is_forsaken_gives_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver on a node cannot see the process that asked for it; it sees that nothing is renewed."""
    monkeypatch.setattr(channel, "ALIVE_SECONDS", 0.0)
    monkeypatch.setattr(channel, "STORE_POLL_SECONDS", 0.01)
    monkeypatch.setattr(channel, "FORSAKEN_SECONDS", 0.3)
    asking = Mailbox(store, "box")
    asking.renew()
    asking.send("specs", b"session")
    waiting = Mailbox(store, "box").specs()
    assert next(waiting) == b"session"
    with pytest.raises(StoreError, match="box/alive is not renewed"):
        next(waiting)


def test_who_is_remembered_goes_on_waiting(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = Mailbox(store, "box")
    asking.renew()

    class Renews(MadeClock):
        """Who asks does it twice before it would be taken for gone."""

        def sleep(self, seconds: float) -> None:
            super().sleep(0.4 * channel.FORSAKEN_SECONDS)
            asking.renew()
            if self.now - self.began > 4 * channel.FORSAKEN_SECONDS:
                asking.send("specs", b"late")
                asking.send("specs", END)

    monkeypatch.setattr(channel, "time", Renews())
    assert list(Mailbox(store, "box").specs()) == [b"late"]
