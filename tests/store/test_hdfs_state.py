"""What a NameNode tells of itself, and what older or closed ones do not. A real one is asked in tests/cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from store.addresses import Place
from store.errors import StoreError
from store.hdfs_state import Quota, quotas_of, state_of
from store.namenodes import Access
from store.retry import Patience
from tests.store.wrong_hdfs import Handler, WrongHdfs, refuses, says, serving

ACCESS = Access(security="insecure", user="ada", patience=Patience(seconds=0))
BEAN = {"FSState": "Operational", "CapacityRemaining": 1000, "NumLiveDataNodes": 2, "SoftwareVersion": "3.1.1"}
NO_SUCH = refuses("IllegalArgumentException", "Invalid value for webhdfs parameter", status=400)


def beans(**values: object) -> bytes:
    return json.dumps({"beans": [values]}).encode()


@pytest.fixture
def hdfs() -> Iterator[WrongHdfs]:
    with serving() as server:
        server.always[""] = says(200, beans(**BEAN))
        server.always["GETSERVERDEFAULTS"] = says(200, b'{"FsServerDefaults":{"replication":2}}')
        yield server


def place(hdfs: WrongHdfs, root: str = "/user/ada/yarnstick") -> Place:
    return Place(url=f"hdfs://demo{root}", root=root, namenodes=(hdfs.address,))


def test_a_namenode_tells_its_state(hdfs: WrongHdfs) -> None:
    state = state_of(place(hdfs), ACCESS)
    assert (state.namenode, state.version, state.is_safe) == (hdfs.address, "3.1.1", False)
    assert (state.free_bytes, state.datanodes, state.replication) == (1000, 2, 2)
    assert state.ahead_seconds == pytest.approx(0, abs=2)


def test_safe_mode_is_seen(hdfs: WrongHdfs) -> None:
    hdfs.always[""] = says(200, beans(FSState="safeMode"))
    assert state_of(place(hdfs), ACCESS).is_safe


@pytest.mark.parametrize("answer", [says(403), says(200), says(200, b'{"beans":[]}'), says(200, beans(FSState=3))])
def test_what_only_administrators_may_see_is_left_open(hdfs: WrongHdfs, answer: object) -> None:
    hdfs.always[""] = hdfs.always["GETSERVERDEFAULTS"] = answer  # type: ignore[assignment]
    state = state_of(place(hdfs), ACCESS)
    assert (state.version, state.is_safe, state.free_bytes, state.replication) == ("", None, None, None)


def test_another_clock_is_told(hdfs: WrongHdfs) -> None:
    def an_hour_ahead(handler: Handler, right: object) -> None:
        handler.date_time_string = lambda timestamp=None: "Wed, 18 Nov 2099 16:44:55 GMT"  # type: ignore[method-assign]
        handler.send(200, b"{}")

    hdfs.next("GETFILESTATUS", an_hour_ahead)
    ahead = state_of(place(hdfs), ACCESS).ahead_seconds
    assert ahead is not None
    assert ahead > 3600
    hdfs.next("GETFILESTATUS", lambda handler, right: _undated(handler))
    assert state_of(place(hdfs), ACCESS).ahead_seconds is None


def _undated(handler: Handler) -> None:
    handler.date_time_string = lambda timestamp=None: "some day"  # type: ignore[method-assign]
    handler.send(200, b"{}")


def test_quotas_at_and_above_the_store_count(hdfs: WrongHdfs) -> None:
    usage = {"fileAndDirectoryCount": 9, "quota": 10, "spaceConsumed": 30, "spaceQuota": 100}
    none = {"fileAndDirectoryCount": 9, "quota": -1, "spaceConsumed": 30, "spaceQuota": -1}
    told = [says(200, json.dumps({"QuotaUsage": each}).encode()) for each in (usage, none)]
    hdfs.next("GETQUOTAUSAGE", *told)
    assert quotas_of(place(hdfs), ACCESS) == [Quota(path="/user/ada", names_left=1, bytes_left=70)]
    assert [path for operation, path, _ in hdfs.asked if operation == "GETQUOTAUSAGE"] == [
        "/user/ada",
        "/user/ada/yarnstick",
    ], "nothing is counted high up"


def test_an_older_server_is_asked_otherwise(hdfs: WrongHdfs) -> None:
    hdfs.always["GETQUOTAUSAGE"] = NO_SUCH
    summary = {"fileCount": 3, "directoryCount": 2, "quota": 7, "spaceQuota": -1, "spaceConsumed": 1}
    hdfs.always["GETCONTENTSUMMARY"] = says(200, json.dumps({"ContentSummary": summary}).encode())
    assert quotas_of(place(hdfs, "/a/b"), ACCESS) == [Quota(path="/a/b", names_left=2, bytes_left=None)]


def test_what_is_not_there_or_not_ours_has_no_quota(hdfs: WrongHdfs) -> None:
    hdfs.next("GETQUOTAUSAGE", refuses("AccessControlException"), refuses("FileNotFoundException", status=404))
    assert quotas_of(place(hdfs), ACCESS) == []


def test_a_namenode_that_refuses_is_one_sentence(hdfs: WrongHdfs) -> None:
    hdfs.always["GETFILESTATUS"] = says(401)
    with pytest.raises(
        StoreError, match=r"hdfs://demo/\S+ cannot be asked: .* does not accept who we are; it wants Ke"
    ):
        state_of(place(hdfs), ACCESS)
