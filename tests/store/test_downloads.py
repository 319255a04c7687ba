"""Local copies: fetched once, checked, bounded, and never taken away from a process that uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from store.downloads import Downloads
from store.errors import SettingError, StoreError
from store.publish import Staging
from store.webhdfs import WebHdfsStore
from tests.store.test_webhdfs import ROOT, TRIAL, Opened, hdfs, opened, publish, store  # noqa: F401  # fixtures
from tests.store.wrong_hdfs import WrongHdfs

USER = """
import sys
from pathlib import Path
from store.downloads import Downloads
downloads = Downloads(Path(sys.argv[1]), most_bytes=250)
print(downloads.copy("a", "name", bytes=100, fetch=lambda path: path.write_bytes(b"x" * 100)), flush=True)
sys.stdin.read()
"""


def copied(downloads: Downloads, key: str, size: int = 100) -> Path:
    return downloads.copy(key, "name", bytes=size, fetch=lambda path: path.write_bytes(b"x" * size) and None)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_copy_is_made_once(hdfs: WrongHdfs, store: WebHdfsStore) -> None:  # noqa: F811
    publish(store)
    first = store.local(f"{TRIAL}/part-0")
    assert first.read_bytes() == b"first"
    assert first.name == "part-0"
    hdfs.asked.clear()
    assert store.local(f"{TRIAL}/part-0") == first
    assert hdfs.operations() == ["GETFILESTATUS"]


def test_a_replaced_file_is_fetched_again(store: WebHdfsStore) -> None:  # noqa: F811
    for content in (b"one", b"two"):
        store.write("a/range.json", content)
        assert store.local("a/range.json").read_bytes() == content


def test_a_copy_that_is_not_what_the_manifest_says_is_refused(hdfs: WrongHdfs, store: WebHdfsStore) -> None:  # noqa: F811
    with Staging(store, TRIAL) as staging:
        staging.put("logs/app-1/events", b"right")
        staging.commit()
    hdfs.namespace.nodes[f"{ROOT}/{TRIAL}/logs/app-1/events"].data = b"wrong"
    for path in (f"{TRIAL}/logs/app-1/events", f"{TRIAL}/logs", TRIAL):
        with pytest.raises(
            StoreError, match=r"events: SHA-256 \w+\.\.\. is not the \w+\.\.\. of manifest\.json; remove"
        ):
            store.local(path)


def test_a_directory_is_copied_with_all_below(store: WebHdfsStore) -> None:  # noqa: F811
    with Staging(store, TRIAL) as staging:
        staging.put("part-0", b"x")
        staging.put("logs/app-1/events", b"yy")
        staging.commit()
    found = store.local(TRIAL)
    assert (found / "part-0").read_bytes() == b"x"
    assert (found / "logs" / "app-1" / "events").read_bytes() == b"yy"


def test_the_least_recently_used_one_makes_room(tmp_path: Path) -> None:
    downloads = Downloads(tmp_path, most_bytes=250)
    for key in ("a", "b", "a", "c"):
        copied(downloads, key)
        downloads.release()
    assert names(tmp_path) == {"a", "c"}


def test_what_a_process_uses_stays_until_it_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", USER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as user:
        assert user.stdout is not None
        assert user.stdout.readline()
        mine = Downloads(tmp_path, most_bytes=250)
        copied(mine, "b")
        with pytest.raises(SettingError, match=r"yarnstick\.store\.cache_gb = .* has no room for a copy of name"):
            copied(mine, "c")
        assert names(tmp_path) == {"a", "b"}
        user.kill()
    copied(mine, "c")
    assert names(tmp_path) == {"b", "c"}


def test_a_fetch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def half(path: Path) -> None:
        path.write_bytes(b"half")
        raise StoreError("cut")

    with pytest.raises(StoreError, match="cut"):
        Downloads(tmp_path, most_bytes=250).copy("a", "name", bytes=100, fetch=half)
    assert names(tmp_path) == set()


def test_copies_are_for_their_owner_alone(tmp_path: Path) -> None:
    copied(Downloads(tmp_path / "hdfs", most_bytes=250), "a")
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "hdfs", tmp_path / "hdfs" / "a")] == [0o700, 0o700]
