"""Faults that only a real process and a real file system show: kill -9, a full disk, names of others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from store.errors import StoreError
from store.local import LocalStore
from store.publish import ABANDONED_SECONDS, Staging, temporary_name, temporary_owner

STAGES = {
    "before anything is written": "signal_now()",
    "in the middle of a part": "part = staging.create('part-0'); part.write(b'x' * 100_000); signal_now()",
    "after a part": "staging.put('part-0', b'x'); signal_now()",
    "after the manifest": "staging.put('part-0', b'x'); store.rename = lambda *_: signal_now(); staging.commit()",
}
CHILD = """
import os, sys, time
from pathlib import Path
from store.local import LocalStore
from store.publish import Staging

def signal_now():
    print("here", flush=True)
    time.sleep(60)

store = LocalStore(Path(sys.argv[1]))
with Staging(store, "runs/a") as staging:
    {stage}
"""


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES.keys())
def test_a_killed_process_leaves_nothing_visible_and_is_cleaned_up_after(tmp_path: Path, stage: str) -> None:
    store = LocalStore(tmp_path)
    command = [sys.executable, "-c", CHILD.format(stage=stage), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n"
        assert store.collect() == 0, "its owner still lives"
        os.kill(child.pid, signal.SIGKILL)
    assert not store.exists("runs/a")
    assert store.list("runs") == []
    left = list(tmp_path.glob("runs/.tmp.*"))
    assert store.collect() == len(left) == (0 if stage == "signal_now()" else 1)
    assert [path for path in tmp_path.rglob("*") if path.name != "runs"] == []
    with Staging(store, "runs/a") as staging:
        staging.put("part-0", b"again")
        assert staging.commit()


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: the kernel refuses the write either way."""
    script = """
import resource, sys
from pathlib import Path
from store.errors import StoreError
from store.local import LocalStore
from store.publish import Staging

resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
store = LocalStore(Path(sys.argv[1]))
try:
    with Staging(store, "runs/a") as staging:
        staging.create("small").write(b"x" * 100)
        staging.put("part-0", b"x" * 100_000)
        staging.commit()
except StoreError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert (
        done.stdout == "part-0 cannot be written: File too large; nothing of it is kept, so make room and run again\n"
    )
    assert [path for path in tmp_path.rglob("*") if path.name != "runs"] == []


def test_a_temporary_name_tells_its_owner() -> None:
    owner = temporary_owner(temporary_name())
    assert owner is not None
    assert owner.pid == os.getpid()


@pytest.mark.parametrize("name", [".tmp.", ".tmp.x", ".tmp.host.word.1", ".tmp.host.\u0663.1", f".tmp.h.{'9' * 30}.1"])
def test_a_foreign_hidden_file_is_left_alone_until_it_is_old(tmp_path: Path, name: str) -> None:
    store = LocalStore(tmp_path)
    store.write("a/published", b"x")
    foreign = tmp_path / "a" / name
    foreign.write_bytes(b"")
    assert store.collect() == 0
    old = time.time() - ABANDONED_SECONDS - 60
    os.utime(foreign, (old, old))
    assert store.collect() == 1
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["published"]


def test_another_hosts_leftover_goes_by_its_age(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    leftover = tmp_path / ".tmp.some.other-host.1.abcd1234"
    (leftover / "deep").mkdir(parents=True)
    assert store.collect() == 0
    old = time.time() - ABANDONED_SECONDS - 60
    os.utime(leftover, (old, old))
    assert store.collect() == 1
    assert not leftover.exists()


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"a file, where the store should be")
    store = LocalStore(tmp_path / "store")
    with pytest.raises(StoreError, match="cannot be written: Not a directory"):
        store.write("a/b", b"x")
    with pytest.raises(StoreError, match="cannot be listed: Not a directory"):
        store.list("a")
    with pytest.raises(StoreError, match="cannot be published: Not a directory"):
        store.rename("a", "b/c")


def test_the_address_is_an_absolute_url(tmp_path: Path) -> None:
    assert LocalStore(tmp_path / "a b").url == f"{tmp_path.as_uri()}/a%20b"
