"""Answers of HDFS that are lost, cut, refused or wrong, and what becomes of them. The rest is in tests/cluster."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from store.addresses import Place
from store.errors import SettingError, StoreError
from store.manifest import read_manifest, verify_checksums
from store.namenodes import Access
from store.publish import ABANDONED_SECONDS, Staging, temporary_name
from store.retry import Patience
from store.sessions import open_session
from store.streams import IN_MEMORY_BYTES
from store.webhdfs import MOST_AHEAD, WebHdfsStore
from tests.made_clock import MadeClock
from tests.store.wrong_hdfs import (
    Namespace,
    WrongHdfs,
    after,
    cuts,
    hangs,
    loses_the_answer,
    refuses,
    says,
    serving,
    stops_after,
)

TRIAL = "runs/a/trials/t-1"
ROOT = "/ours"
QUICK = Patience(seconds=5, shortest_seconds=0.001, longest_seconds=0.01)
ONCE = Patience(seconds=0)
Opened = Callable[..., WebHdfsStore]


@pytest.fixture
def hdfs() -> Iterator[WrongHdfs]:
    with serving() as server:
        yield server


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    def opened(
        *namenodes: str,
        patience: Patience = QUICK,
        security: str = "insecure",
        most_cached: int = 10**6,
        read_seconds: float = 10.0,
    ) -> WebHdfsStore:
        access = Access(
            security=security,  # type: ignore[arg-type]
            user="ada",
            patience=patience,
            connect_seconds=10.0,
            read_seconds=read_seconds,
        )
        place = Place(url=f"hdfs://demo{ROOT}", root=ROOT, namenodes=namenodes)
        return WebHdfsStore(place, access, cache=tmp_path / "cache", most_cached_bytes=most_cached)

    return opened


@pytest.fixture
def store(hdfs: WrongHdfs, opened: Opened, request: pytest.FixtureRequest) -> WebHdfsStore:
    """Not waited for long where the answer is one that does not come."""
    parameters = getattr(request.node, "callspec", None)
    if parameters is not None and hangs in parameters.params.values():
        return opened(hdfs.address, read_seconds=0.5)
    return opened(hdfs.address)


def publish(store: WebHdfsStore, content: bytes = b"first") -> bool:
    with Staging(store, TRIAL) as staging:
        staging.put("part-0", content)
        return staging.commit()


def nowhere() -> str:
    """An address at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_a_rename_whose_answer_is_lost_has_succeeded(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    hdfs.next("RENAME", loses_the_answer)
    assert publish(store)
    assert hdfs.operations().count("RENAME") == 1
    verify_checksums(store, TRIAL, read_manifest(store, TRIAL))


def test_a_file_whose_rename_is_lost_is_written(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    store.write("a/state", b"old")
    hdfs.next("RENAME", loses_the_answer)
    store.write("a/state", b"new")
    assert store.read("a/state") == b"new"
    assert [entry.name for entry in store.list("a")] == ["state"]


@pytest.mark.parametrize("wrong", [cuts, hangs, says(500), says(502, b"")])
def test_a_rename_that_did_not_happen_is_made_again(hdfs: WrongHdfs, store: WebHdfsStore, wrong: object) -> None:
    hdfs.next("RENAME", wrong)  # type: ignore[arg-type]
    assert publish(store)
    assert hdfs.operations().count("RENAME") == 2
    assert store.read(f"{TRIAL}/part-0") == b"first"


def test_a_rename_that_was_carried_out_after_we_looked_is_ours(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    """The first request waits in the NameNode until the second one is sent, which then finds nothing to rename."""

    def first_one() -> None:
        space = hdfs.namespace
        source = next(path for path in space.nodes if path.rpartition("/")[2].startswith(".tmp."))
        space.move(source, f"{ROOT}/{TRIAL}")

    hdfs.next("RENAME", cuts, after(first_one))
    assert publish(store)
    assert store.read(f"{TRIAL}/part-0") == b"first"


@pytest.mark.parametrize("wrong", [cuts, loses_the_answer])
def test_who_was_first_stays_even_if_our_rename_is_lost(hdfs: WrongHdfs, store: WebHdfsStore, wrong: object) -> None:
    hdfs.namespace.add(f"{ROOT}/{TRIAL}/part-0", b"theirs")
    hdfs.next("RENAME", wrong)  # type: ignore[arg-type]
    assert not publish(store, b"ours")
    assert store.read(f"{TRIAL}/part-0") == b"theirs"


def test_a_server_that_moves_into_the_directory_is_found_out(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    hdfs.knows_options = False
    hdfs.namespace.add(f"{ROOT}/{TRIAL}/part-0", b"theirs")
    with pytest.raises(StoreError, match=r"knows no renameoptions, like HttpFS; set yarnstick\.store\.namenodes"):
        publish(store, b"ours")
    assert hdfs.namespace.below(f"{ROOT}/{TRIAL}") == [f"{ROOT}/{TRIAL}/part-0"]
    with pytest.raises(StoreError, match="knows no renameoptions"):
        store.write("runs/a/trials/t-1/part-0", b"ours")
    assert store.read(f"{TRIAL}/part-0") == b"theirs"


@pytest.mark.parametrize("operation", ["LISTSTATUS", "GETFILESTATUS", "OPEN", "GET_BLOCK_LOCATIONS", "DATA"])
@pytest.mark.parametrize("wrong", [cuts, hangs, says(500), says(503, b""), refuses("RetriableException")])
def test_what_changes_nothing_is_asked_again(
    hdfs: WrongHdfs, store: WebHdfsStore, operation: str, wrong: object
) -> None:
    store.write("a/b", b"content")
    hdfs.next(operation, wrong)  # type: ignore[arg-type]
    assert store.exists("a/b")
    assert [entry.name for entry in store.list("a")] == ["b"]
    assert store.read("a/b") == b"content"


@pytest.mark.parametrize("wrong", [cuts, loses_the_answer, hangs, says(500), refuses("ConnectException")])
@pytest.mark.parametrize("operation", ["CREATE", "DATA"])
def test_an_upload_that_fails_begins_anew(hdfs: WrongHdfs, store: WebHdfsStore, operation: str, wrong: object) -> None:
    hdfs.next(operation, wrong)  # type: ignore[arg-type]
    assert publish(store, b"x" * 3_000_000)
    assert store.read(f"{TRIAL}/part-0") == b"x" * 3_000_000


def test_a_removal_is_not_repeated_on_what_came_meanwhile(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    store.write("a/b", b"old")

    def lost_and_replaced(handler: object, right: Callable[[], None]) -> None:
        try:
            loses_the_answer(handler, right)  # type: ignore[arg-type]
        finally:
            hdfs.namespace.add(f"{ROOT}/a/b", b"theirs")

    hdfs.next("DELETE", lost_and_replaced)
    store.remove("a/b")
    assert store.read("a/b") == b"theirs"


def test_safe_mode_is_waited_for(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    hdfs.next("CREATE", *[refuses("SafeModeException", "Cannot create file. Name node is in safe mode.")] * 3)
    store.write("a", b"x")
    assert store.read("a") == b"x"


REFUSED = {
    "SafeModeException": r"is in safe mode \(why\); run again once it has left it; tried for 0 s$",
    "AccessControlException": r"a/b cannot be written: ada has no permission \(why\); have it granted",
    "DSQuotaExceededException": r"the quota of HDFS is used up \(why\); make room",
    "NSQuotaExceededException": r"the quota of HDFS is used up \(why\); make room",
    "QuotaByStorageTypeExceededException": r"the quota of HDFS is used up \(why\); make room",
    "StandbyException": r"is a standby, and no active NameNode was found; add it to yarnstick\.store\.namenodes",
    "SecurityException": r"answered SecurityException \(why\); it wants Kerberos: set yarnstick\.store\.security",
    "ParentNotDirectoryException": r"a/b cannot be written: .* answered ParentNotDirectoryException \(why\)$",
    "IOException": r"a/b cannot be written: http://127\.0\.0\.1:\d+ answered IOException \(why\)$",
}


@pytest.mark.parametrize("exception", REFUSED)
def test_a_403_is_told_by_its_exception(hdfs: WrongHdfs, opened: Opened, exception: str) -> None:
    hdfs.always["CREATE"] = refuses(exception, "why\n\tat org.apache.hadoop.Some.where(Some.java:1)")
    with pytest.raises(StoreError, match=REFUSED[exception]) as raised:
        opened(hdfs.address, patience=ONCE).write("a/b", b"x")
    assert str(raised.value).startswith(f"hdfs://demo{ROOT}/a/")
    assert "\n" not in str(raised.value)
    assert "org.apache" not in str(raised.value)


@pytest.mark.parametrize(
    "message",
    [
        "File /a/b could only be written to 0 of the 1 minReplication nodes.",
        "All datanodes [DatanodeInfoWithStorage[127.0.0.1:27657,DS-1,DISK]] are bad. Aborting...",
    ],
)
def test_blocks_that_nobody_keeps_are_told_with_where_to_look(hdfs: WrongHdfs, opened: Opened, message: str) -> None:
    """As where the DataNodes' disks are full."""
    hdfs.always["CREATE"] = refuses("IOException", message)
    said = rf"a/b cannot be written: no DataNode keeps its blocks \({re.escape(message)}\); `yarnstick doctor` tells"
    with pytest.raises(StoreError, match=said):
        opened(hdfs.address, patience=ONCE).write("a/b", b"x")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (says(401), "does not accept who we are; it wants Kerberos"),
        (says(404), "answered 404, and not as WebHDFS does"),
        (says(200), "the answer is not WebHDFS's"),
        (says(200, b"[]"), "the answer is not WebHDFS's"),
        (says(403, b'{"RemoteException": 1}'), "answered 403, and not as WebHDFS does"),
        (says(500, b'["x"]'), "answered 500, and not as WebHDFS does"),
    ],
)
def test_what_is_not_webhdfs_is_told(hdfs: WrongHdfs, opened: Opened, wrong: object, said: str) -> None:
    hdfs.always["*"] = wrong  # type: ignore[assignment]
    with pytest.raises(StoreError, match=said) as raised:
        opened(hdfs.address, patience=ONCE).list("a")
    assert hdfs.address in str(raised.value)


def test_nobody_there_is_told_within_seconds_with_the_address(opened: Opened) -> None:
    address = nowhere()
    patient = Patience(seconds=3600, shortest_seconds=2)
    begun = time.monotonic()
    with pytest.raises(
        StoreError, match=rf"{address} takes no connection; start HDFS, or correct yarnstick\.store\.url"
    ):
        opened(address, patience=patient).list("runs")
    assert time.monotonic() - begun < 60  # and not for the hour that it has


def test_a_namenode_that_answered_before_is_waited_for(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    assert store.list("a") == []
    hdfs.next("LISTSTATUS", *[cuts] * 20)
    assert store.list("a") == []


def test_who_was_waited_for_in_vain_is_not_waited_for_again_until_there_is_an_answer(
    hdfs: WrongHdfs, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each step of cleaning up after the first error would wait as long as that one."""
    clock = MadeClock()
    monkeypatch.setattr("store.retry.time", clock)
    store = opened(hdfs.address, patience=Patience(seconds=1, shortest_seconds=0.1, longest_seconds=0.1))
    assert publish(store)
    hdfs.always["*"] = cuts
    asked = len(hdfs.asked)
    with pytest.raises(StoreError, match="tried for 1 s"):
        store.read(f"{TRIAL}/part-0")
    assert len(hdfs.asked) > asked + 5
    asked = len(hdfs.asked)
    before = clock.now
    for _ in range(10):
        with pytest.raises(StoreError, match="cut the connection"):
            store.remove(TRIAL)
    assert clock.now == before
    assert len(hdfs.asked) == asked + 10
    hdfs.always.clear()
    assert store.exists(TRIAL)
    hdfs.next("GETFILESTATUS", cuts, cuts)
    assert store.exists(TRIAL), "it is waited for as before"


def test_where_one_is_standby_the_other_is_asked(opened: Opened) -> None:
    space = Namespace()
    with serving(space) as standby, serving(space) as active:
        standby.always["*"] = refuses("StandbyException", "Operation category READ is not supported in state standby")
        store = opened(nowhere(), standby.address, active.address)
        assert publish(store)
        assert store.read(f"{TRIAL}/part-0") == b"first"
        assert len(standby.asked) == 1, "it is asked once, and then no more"
        # They change places.
        active.always["*"], standby.always = standby.always["*"], {}
        assert store.read(f"{TRIAL}/part-0") == b"first"
        standby.always["*"] = active.always["*"]
        with pytest.raises(StoreError, match=rf"is a standby, .*tried .*{standby.address}, {active.address}\)"):
            opened(standby.address, active.address, patience=ONCE).list("")


def test_a_failover_between_a_rename_and_its_answer_is_one_rename(opened: Opened) -> None:
    space = Namespace()
    with serving(space) as first, serving(space) as second:
        store = opened(first.address, second.address)
        first.next("RENAME", loses_the_answer)
        assert publish(store)
        assert "RENAME" not in second.operations()


def test_a_download_goes_on_where_it_was_cut(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    content = bytes(range(256)) * 20_000
    store.write("a", content)
    hdfs.next("DATA", stops_after(1_500_000), stops_after(700_000))
    assert store.read("a") == content
    offsets = [int(given["offset"]) for operation, _, given in hdfs.asked if operation == "OPEN"]
    assert offsets == [0, 1_500_000, 2_200_000]


def test_two_versions_of_a_file_are_never_mixed(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    store.write("a", b"x" * 5_000_000)
    hdfs.next("DATA", stops_after(1_500_000), after(lambda: hdfs.namespace.add(f"{ROOT}/a", b"y" * 5_000_000)))
    with pytest.raises(StoreError, match=f"hdfs://demo{ROOT}/a was replaced while it was read"):
        store.read("a")


def test_a_file_that_was_never_closed_is_refused(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    store.write("a", b"")
    hdfs.namespace.open.add(f"{ROOT}/a")
    with pytest.raises(StoreError, match="a was never closed: its writer is still at it, or died"):
        store.read("a")


def test_a_dead_datanode_is_avoided_and_its_token_never_shown(hdfs: WrongHdfs, opened: Opened) -> None:
    store = opened(hdfs.address, patience=Patience(seconds=1, shortest_seconds=0.001))
    alive, hdfs.datanode = hdfs.datanode, nowhere()
    with pytest.raises(StoreError, match=f"{hdfs.datanode} takes no connection") as raised:
        store.write("a", b"x")
    assert "CANARY" not in repr(raised.value) + repr(raised.value.__context__ and raised.value.__cause__)
    assert hdfs.asked[1][2]["excludedatanodes"] == "127.0.0.1"
    hdfs.next("CREATE", after(lambda: setattr(hdfs, "datanode", alive)))
    store.write("a", b"x")


def test_excluded_datanodes_are_allowed_again_when_no_other_is_left(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    alive, hdfs.datanode = hdfs.datanode, nowhere()

    def none_left() -> None:
        hdfs.datanode = alive

    hdfs.next("CREATE", after(lambda: None), refuses("IOException", "Failed to find datanode"), after(none_left))
    store.write("a", b"x")
    assert ["excludedatanodes" in given for operation, _, given in hdfs.asked if operation == "CREATE"] == [
        False,
        True,
        False,
    ]


def test_a_proxy_of_the_environment_is_not_asked(store: WebHdfsStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, nowhere())
    store.write("a", b"x")
    assert store.read("a") == b"x"


def test_a_name_is_told_to_hdfs_only_where_the_settings_say_insecure(hdfs: WrongHdfs, opened: Opened) -> None:
    opened(hdfs.address).list("")
    assert hdfs.asked[-1][2]["user.name"] == "ada"
    asked = len(hdfs.asked)
    try:
        opened(hdfs.address, security="kerberos", patience=ONCE).list("")
    except SettingError as error:
        assert "pip install 'yarnstick[kerberos]'" in str(error)  # noqa: PT017  # only where it is not installed
    assert all("user.name" not in given for _, _, given in hdfs.asked[asked:])


def test_what_https_protects_is_not_sent_on_without(opened: Opened) -> None:
    import requests

    session = open_session("https://namenode:9871", certificates=None)
    with pytest.raises(requests.exceptions.InvalidSchema):
        session.get("http://127.0.0.1:1/?delegation=CANARY")
    assert not session.trust_env


def test_leftovers_are_known_by_owner_and_age(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    dead = f".tmp.{socket.gethostname()}.{2**22 + 1}.1a-x"
    reused = f".tmp.{socket.gethostname()}.{os.getpid()}.1-x"  # made long before this process began
    other = ".tmp.some.other-host.1.abcd"
    paths = [f"{ROOT}/runs/a/trials/{name}" for name in (dead, reused, other, temporary_name())]
    for path in paths:
        hdfs.namespace.add(f"{path}/part-0", b"12345")
    publish(store)
    hdfs.asked.clear()
    found = store.leftovers()
    assert {(entry.name, entry.bytes) for entry in found} == {
        (f"runs/a/trials/{dead}", 5),
        (f"runs/a/trials/{reused}", 5),
    }
    assert not any(path.startswith(f"{ROOT}/{TRIAL}") for _, path, _ in hdfs.asked), (
        "what is published is not looked into"
    )
    assert store.collect() == 2
    hdfs.namespace.nodes[paths[2]].modified -= ABANDONED_SECONDS + 60
    assert store.collect() == 1
    assert [path in hdfs.namespace.nodes for path in paths] == [False, False, False, True]


def test_an_upload_that_is_given_up_sends_nothing(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    def interrupted() -> None:
        with Staging(store, TRIAL) as staging:
            staging.create("part-0").write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "CREATE" not in hdfs.operations()


def test_a_large_upload_that_is_given_up_leaves_nothing(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    def interrupted() -> None:
        with Staging(store, TRIAL) as staging:
            staging.create("part-0").write(b"x" * 2 * IN_MEMORY_BYTES)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path for path, node in hdfs.namespace.nodes.items() if node.data is not None] == []
    assert [thread.name for thread in threading.enumerate() if thread.name == "upload"] == []


@pytest.mark.parametrize("wrong", [cuts, loses_the_answer, says(500)])
def test_a_large_upload_is_sent_while_it_is_written_and_again_if_need_be(
    hdfs: WrongHdfs, store: WebHdfsStore, wrong: object
) -> None:
    hdfs.next("DATA", wrong)  # type: ignore[arg-type]
    with Staging(store, TRIAL) as staging:
        with staging.create("part-0") as part:
            for number in range(20):
                part.write(bytes([number]) * 700_001)
        staging.commit()
    verify_checksums(store, TRIAL, read_manifest(store, TRIAL))


def test_a_large_upload_that_is_refused_ends_the_writing(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    hdfs.always["CREATE"] = refuses("AccessControlException", "no")

    def endless() -> None:
        with Staging(store, TRIAL) as staging:
            part = staging.create("part-0")
            while True:
                part.write(b"x" * 1_000_000)

    with pytest.raises(StoreError, match=r"trials/\.\.\./part-0 cannot be written: ada has no permission \(no\)"):
        endless()


def test_many_small_files_are_read_in_their_order(store: WebHdfsStore) -> None:
    for number in range(20):
        store.write(f"a/{number}", str(number).encode())
    assert list(store.read_each([f"a/{number}" for number in range(20)])) == [str(n).encode() for n in range(20)]


def test_many_small_files_do_not_pile_up_before_they_are_taken(hdfs: WrongHdfs, store: WebHdfsStore) -> None:
    paths = [f"a/{number}" for number in range(3 * MOST_AHEAD)]
    for path in paths:
        hdfs.namespace.add(f"{ROOT}/{path}", path.encode())
    hdfs.asked.clear()
    contents = store.read_each(paths)
    assert next(contents) == b"a/0"
    rest = list(islice(contents, MOST_AHEAD - 1))
    assert len({path for operation, path, _ in hdfs.asked if operation == "OPEN"}) == MOST_AHEAD
    assert [b"a/0", *rest, *contents] == [path.encode() for path in paths]


@pytest.mark.parametrize("path", ["a:b", "a//b", "a/*", "a?b", "a\nb"])
def test_a_path_that_hdfs_does_not_take_is_refused_here(hdfs: WrongHdfs, store: WebHdfsStore, path: str) -> None:
    with pytest.raises(StoreError, match="is not a path that HDFS takes"):
        store.write(path, b"x")
    assert hdfs.asked == []


def test_ten_thousand_files_are_one_request(hdfs: WrongHdfs, opened: Opened) -> None:
    for number in range(10_000):
        hdfs.namespace.add(f"{ROOT}/many/part-{number:05}", b"x")
    hdfs.asked.clear()
    store = opened(hdfs.address, read_seconds=60)  # the server is Python's, and may take its time for so many
    assert len(store.list("many")) == 10_000
    assert [operation for operation, _, _ in hdfs.asked] == ["LISTSTATUS"]
