"""The checks of an HDFS, by a NameNode that answers as told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.checks import hdfs
from pipeline.config import read_settings
from pipeline.doctor import examine
from pipeline.settings import Settings
from tests.store.wrong_hdfs import Handler, WrongHdfs, says, serving

PLENTY = 10**13


@pytest.fixture
def namenode() -> Iterator[WrongHdfs]:
    with serving() as server:
        tells(server)
        server.always["GETQUOTAUSAGE"] = says(200, b'{"QuotaUsage":{}}')
        yield server


def tells(server: WrongHdfs, *, state: str = "Operational", free: int = PLENTY, datanodes: int = 2) -> None:
    bean = {
        "FSState": state,
        "CapacityRemaining": free,
        "NumLiveDataNodes": datanodes,
        "SoftwareVersion": "3.1.1",
    }
    server.always[""] = says(200, json.dumps({"beans": [bean]}).encode())


@pytest.fixture
def settings(namenode: WrongHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return configured(namenode)


def configured(namenode: WrongHdfs, *overrides: str) -> Settings:
    return read_settings("quick", store=url(namenode), overrides=[*ALWAYS, *overrides])


def url(namenode: WrongHdfs) -> str:
    return f"webhdfs://127.0.0.1:{namenode.server_port}/user/ada/yarnstick"


ALWAYS = (
    "store.security=insecure",
    "profile.quick.datasets=synthetic:10x2x2",
    "profile.quick.platforms=torch-cpu",
    "probe_seconds=0",
)


def test_one_that_is_well_is_ok(namenode: WrongHdfs, settings: Settings) -> None:
    found = hdfs.namenode(settings)
    assert (found.word, found.detail) == ("ok", f"{namenode.address}, Hadoop 3.1.1, 2 live DataNodes")
    room = hdfs.room(settings)
    assert room.ok
    assert room.detail.startswith("10.0 TB free; at most 3.0 GB are needed, 1.0 GB in 3 copies")
    assert hdfs.clock(settings).detail == "the NameNode's and ours are within 5 s"


def test_safe_mode_fails_and_so_do_no_datanodes(namenode: WrongHdfs, settings: Settings) -> None:
    tells(namenode, state="safeMode")
    found = hdfs.namenode(settings)
    assert (found.ok, found.advice) == (
        False,
        "wait until it has left it, or ask whoever runs HDFS why (hdfs dfsadmin -safemode get)",
    )
    tells(namenode, datanodes=0)
    assert "0 live DataNodes, so nothing can be written" in hdfs.namenode(settings).detail


def test_one_that_keeps_its_state_to_itself_is_no_failure(namenode: WrongHdfs, settings: Settings) -> None:
    namenode.always[""] = says(403)
    assert hdfs.namenode(settings).detail == f"{namenode.address}; whether it is in safe mode it does not tell"
    assert hdfs.room(settings).detail.startswith("it does not tell what is free; at most")


def test_too_little_room_fails(namenode: WrongHdfs, settings: Settings) -> None:
    tells(namenode, free=10**9)
    assert hdfs.room(settings).advice == "make room on HDFS"
    tells(namenode)
    usage = {"fileAndDirectoryCount": 9, "quota": 5000, "spaceConsumed": 30, "spaceQuota": 10**9}
    namenode.always["GETQUOTAUSAGE"] = says(200, json.dumps({"QuotaUsage": usage}).encode())
    found = hdfs.room(settings)
    assert not found.ok
    assert "1000.0 MB and 4,991 files within the quota of /user/ada and" in found.detail
    assert found.advice == "make room below /user/ada, or have its quota raised"
    usage |= {"spaceQuota": -1, "quota": 10}
    namenode.always["GETQUOTAUSAGE"] = says(200, json.dumps({"QuotaUsage": usage}).encode())
    assert "1 file within" in hdfs.room(settings).detail
    assert not hdfs.room(settings).ok


def test_another_clock_is_a_note_and_with_kerberos_a_failure(
    namenode: WrongHdfs, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behind(handler: Handler, right: Callable[[], None]) -> None:
        handler.date_time_string = lambda timestamp=None: "Wed, 18 Nov 2015 16:44:55 GMT"  # type: ignore[method-assign]
        right()

    namenode.always["GETFILESTATUS"] = behind
    found = hdfs.clock(settings)
    assert found.word == "note"
    assert found.detail.endswith(" s behind ours")
    # Who we are to it matters to the answer, and not to what is made of it.
    state = hdfs._state(settings)
    monkeypatch.setattr(hdfs, "_state", lambda _: state)
    found = hdfs.clock(configured(namenode, "store.security=kerberos"))
    assert (found.ok, found.advice) == (False, "set this clock by NTP")


def test_one_that_does_not_answer_is_asked_once_and_the_rest_goes_on(tmp_path: Path) -> None:
    with serving() as gone:
        given = url(gone)
        overrides = [*ALWAYS, "store.retry_seconds=0", f"lease={tmp_path / 'lease'}", f"cache={tmp_path / 'cache'}"]
    found = {each.check: each for each in examine("quick", store=given, overrides=overrides)}
    assert not found["namenode"].ok
    assert "takes no connection" in found["namenode"].detail
    assert str(found["namenode"].advice).startswith("start HDFS, or correct yarnstick.store.url")
    assert not found.keys() & {"store", "disk", "hdfs room", "hdfs clock", "leftovers", "dataset"}
    assert found.keys() >= {"java", "matrix product"}
    assert all("this check itself broke" not in str(each.advice) for each in found.values())
