"""How ranks find each other: by which address and interface, and what they say when they do not."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import msgspec
import psutil
import pytest
import torch

import models.ranks.group
from models.ranks.group import Group
from models.ranks.meeting import Announced, Meeting, PeerError, Place, StandstillError, interface, own_address, skipped
from store.errors import TrialError

NOWHERE = "203.0.113.7"  # of a range that is for documentation only


@dataclass(frozen=True)
class Info:
    address: str


class Stage:
    """A task's view of its stage, without Spark."""

    def __init__(self, *addresses: str, partition: int = 0, word: str = "") -> None:
        self._infos = [Info(address) for address in addresses]
        self._partition = partition
        self._word = word

    def getTaskInfos(self) -> list[Info]:  # noqa: N802 - as PySpark calls it
        return self._infos

    def partitionId(self) -> int:  # noqa: N802
        return self._partition

    def allGather(self, word: str) -> list[str]:  # noqa: N802
        return [self._word, word]


def group(stage: Any) -> Group:
    """As the rank makes it whose task that is."""
    meeting = Meeting(stage, Place.of(stage), listeners=1)
    with closing(meeting):
        return Group(meeting, token="a" * 64, device=torch.device("cpu"), stall_seconds=1.0)


def place(*addresses: str, partition: int = 0) -> Place:
    stage: Any = Stage(*addresses, partition=partition)
    return Place.of(stage)


@pytest.fixture
def outward() -> tuple[str, str]:
    """An interface of this machine that is not the loopback, and its address."""
    for name, every in psutil.net_if_addrs().items():
        for each in every:
            if each.family == socket.AF_INET and not each.address.startswith("127."):
                return name, each.address
    pytest.skip("this machine has no network interface but the loopback")


def test_one_task_of_an_executor_trains() -> None:
    tasks = ("b:7", "a:9", "b:7", "a:5")
    places = [place(*tasks, partition=partition) for partition in range(4)]
    assert [each.rank for each in places] == [2, 1, 2, 0]
    assert [each.trains for each in places] == [True, True, False, True]
    assert {each.size for each in places} == {3}
    assert [each.others for each in places] == [("a",), ("b",), ("a",), ("b",)]


def test_ranks_of_one_node_use_the_loopback() -> None:
    assert own_address("node-1.invalid", others=()) == "127.0.0.1"
    assert interface("127.0.0.1") == interface("127.0.0.2")


def test_nodes_that_are_loopback_addresses_use_these() -> None:
    """As the cluster that is for trying has them."""
    assert own_address("127.0.0.2", others=("127.0.0.1",)) == "127.0.0.2"


def test_a_name_that_is_127_0_1_1_is_no_address_for_others(outward: tuple[str, str]) -> None:
    """As Debian writes it to /etc/hosts."""
    name, address = outward
    assert own_address("127.0.1.1", others=(address,)) == address
    assert interface(address) == name


def test_the_address_of_an_interface_is_taken(outward: tuple[str, str]) -> None:
    _, address = outward
    assert own_address(address, others=(NOWHERE,)) == address


def test_an_address_that_no_interface_has_gives_way_to_the_one_that_leads_there(outward: tuple[str, str]) -> None:
    _, address = outward
    assert own_address(NOWHERE, others=(address,)) == address


def test_no_way_at_all_is_one_sentence() -> None:
    with pytest.raises(PeerError, match=r"has the address of 203\.0\.113\.7 .* leads to nobody\.invalid; give nodes"):
        own_address(NOWHERE, others=("nobody.invalid",))


def test_loopback_is_no_address_for_hosts_that_are_not_known() -> None:
    with pytest.raises(PeerError, match=r"the address of 127\.0\.1\.1 .*, and no way leads to nobody\.invalid"):
        own_address("127.0.1.1", others=("nobody.invalid",))


def test_a_rendezvous_that_nobody_answers_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.ranks.group, "RENDEZVOUS_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    word = msgspec.json.encode(Announced(0, "127.0.0.1", "127.0.0.1", [port])).decode()
    stage = Stage("127.0.0.1:1", "127.0.0.1:2", partition=1, word=word)
    with pytest.raises(PeerError, match=r"did not find each other within 1 s \(.*\); nodes must reach") as told:
        group(stage)
    assert "\n" not in str(told.value)


def test_a_stage_that_ends_while_ranks_look_for_each_other_is_another_ones_fault() -> None:
    class Ended(Stage):
        def allGather(self, word: str) -> list[str]:  # noqa: N802
            raise EOFError

    with pytest.raises(PeerError, match=r"another executor ended before all had begun \(EOFError\)"):
        group(Ended("127.0.0.1:1", "127.0.0.1:2", partition=1))


NOT_ALL = (
    r"^not all 2 tasks of the executors met within 0 s: one of them stands still; look at 127\.0\.0\.1 and .*\.2 for"
)


def test_who_waits_for_one_that_stands_still_leaves_before_spark_does() -> None:
    come = threading.Event()

    class Waits(Stage):
        def allGather(self, word: str) -> list[str]:  # noqa: N802
            come.wait()
            return []

    stage: Any = Waits("127.0.0.1:1", "127.0.0.2:2")
    began = time.monotonic()
    with closing(Meeting(stage, Place.of(stage), listeners=1, seconds=0.4)) as meeting:
        with pytest.raises(StandstillError, match=NOT_ALL):
            meeting.met()
        [listener] = meeting.listeners()
    assert time.monotonic() - began > 0.3
    assert listener.fileno() == -1
    come.set()


def test_what_spark_waited_for_too_long_reads_the_same() -> None:
    """Spark says no more than that it has ended; to those who train, and to those who fill a slot."""

    class Ended(Stage):
        def allGather(self, word: str) -> list[str]:  # noqa: N802
            time.sleep(0.3)
            raise EOFError

    stage: Any = Ended("127.0.0.1:1", "127.0.0.2:2")
    place = Place.of(stage)
    with closing(Meeting(stage, place, listeners=1, seconds=0.2)) as meeting:
        time.sleep(0.5)
        with pytest.raises(StandstillError, match=NOT_ALL):
            meeting.met()
    with pytest.raises(StandstillError, match=NOT_ALL):
        skipped(stage, place, seconds=0.2)


def test_all_know_of_each_other_where_they_listen() -> None:
    class Round(Stage):
        def allGather(self, word: str) -> list[str]:  # noqa: N802
            other = msgspec.json.encode(Announced(1, "node-2", "127.0.0.9", [7, 8])).decode()
            return ["", other, word]  # of a task that does not train, and in no order

    stage: Any = Round("127.0.0.1:1", "127.0.0.1:2")
    meeting = Meeting(stage, Place.of(stage), listeners=1)
    mine, other = meeting.met()
    [listener] = meeting.listeners()
    assert other == Announced(1, "node-2", "127.0.0.9", [7, 8])
    assert (mine.rank, mine.host, mine.ports) == (0, "127.0.0.1", [listener.getsockname()[1]])
    meeting.close()
    assert listener.fileno() == -1


def test_a_rank_that_cannot_listen_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.ranks.meeting.own_address", lambda host, *, others: NOWHERE)
    stage: Any = Stage("127.0.0.1:1", "127.0.0.1:2")
    with pytest.raises(TrialError, match=r"executor on 127\.0\.0\.1 cannot listen on the address .* lead to it there"):
        Meeting(stage, Place.of(stage), listeners=1).met()
