"""mrjob's questions to HDFS, answered by a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from mapreduce.store_filesystem import StoreFilesystem
from store.local import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    made = LocalStore(tmp_path / "store")
    for name in ("in/part-0", "in/part-1", "in/deep/part-2", "in/other"):
        made.write(name, name.encode())
    return made


def test_it_lists_by_patterns_and_through_directories(store: LocalStore) -> None:
    files = StoreFilesystem(store)
    assert files.can_handle_path(f"{store.url}/in")
    assert not files.can_handle_path(f"{store.url}-other/in")
    assert not files.can_handle_path("/in")
    assert list(files.ls(f"{store.url}/in/part-*")) == [f"{store.url}/in/part-0", f"{store.url}/in/part-1"]
    assert list(files.ls(f"{store.url}/in")) == [
        f"{store.url}/in/{name}" for name in ("deep/part-2", "other", "part-0", "part-1")
    ]
    assert files.exists(f"{store.url}/in/p*")
    assert not files.exists(f"{store.url}/in/q*")


def test_it_writes_reads_and_removes(store: LocalStore, tmp_path: Path) -> None:
    files = StoreFilesystem(store)
    (tmp_path / "local").write_bytes(b"content")
    files.mkdir(f"{store.url}/new")
    files.put(str(tmp_path / "local"), f"{store.url}/new/file")
    assert b"".join(files.cat(f"{store.url}/new/file")) == b"content"
    files.rm(f"{store.url}/new")
    assert not store.exists("new")
