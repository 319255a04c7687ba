"""A copy of an event log that grows elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.event_mirror import EventMirror
from store.errors import TrialError
from store.local import LocalStore

LOG = "runs/a/logs/eventlog_v2_application_1_1"


def test_each_time_what_is_new_is_copied(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    mirror = EventMirror(store, "runs/a/logs", tmp_path / "copy")
    mirror.fetch()
    with pytest.raises(TrialError, match="runs/a/logs has no event log of application_1_1"):
        mirror.log_of("application_1_1")
    store.write(f"{LOG}/appstatus_application_1_1.inprogress", b"")
    store.write(f"{LOG}/events_1_application_1_1", b"one\ntw")
    mirror.fetch()
    copy = mirror.log_of("application_1_1") / "events_1_application_1_1"
    assert copy.read_bytes() == b"one\ntw"
    store.write(f"{LOG}/events_1_application_1_1", b"one\ntwo\n")
    store.write(f"{LOG}/events_2_application_1_1", b"three\n")
    mirror.fetch()
    mirror.fetch()
    assert copy.read_bytes() == b"one\ntwo\n"
    assert copy.with_name("events_2_application_1_1").read_bytes() == b"three\n"
