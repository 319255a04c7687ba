"""csv: and parquet: of files on HDFS: found as here, read as here, and refused with the same words.

A real HDFS reads them in tests/cluster/test_own_data.py.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.config import read_settings
from pipeline.datasets.own_places import own_place
from pipeline.datasets.sources import Source, dataset_slug, source
from pipeline.settings import Settings
from store.errors import DataError, SettingError, StoreError
from tests.store.wrong_hdfs import WrongHdfs, cuts, serving, stops_after

ROWS = [b"%d,%d,%d" % (row, row % 7, row % 3) for row in range(50)]
TEXT = b"\n".join(ROWS) + b"\n"
COLUMNS = {
    "a": list(range(50)),
    "b": [row % 7 for row in range(50)],
    "label": [row % 3 for row in range(50)],
}


@pytest.fixture
def hdfs() -> Iterator[WrongHdfs]:
    with serving() as server:
        yield server


@pytest.fixture
def url(hdfs: WrongHdfs) -> str:
    return hdfs.address.replace("http://", "webhdfs://")


@pytest.fixture
def settings(configured: Callable[..., Settings]) -> Settings:
    return configured("store.security=insecure", "store.user=ada", "store.retry_seconds=5")


def parquet() -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table(COLUMNS), written, row_group_size=20)
    return written.getvalue()


def rows(source: Source) -> list[bytes]:
    """Of both splits."""
    return sorted(line for split in ("train", "test") for batch in source.rows(split) for line in batch.splitlines())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [("csv", "a.csv", TEXT), ("csv", "a.csv.gz", gzip.compress(TEXT)), ("parquet", "a.parquet", parquet())],
)
def test_the_same_rows_as_of_a_file_here(
    hdfs: WrongHdfs, url: str, settings: Settings, tmp_path: Path, kind: str, name: str, content: bytes
) -> None:
    hdfs.namespace.add(f"/data/{name}", content)
    (tmp_path / name).write_bytes(content)
    there, here = source(f"{kind}:{url}/data/{name}", settings), source(f"{kind}:{tmp_path / name}", settings)
    assert rows(there) == rows(here) == sorted(ROWS)
    assert there.description() == here.description()
    assert there.fetch() == f"{url}/data/{name}"
    assert {given["user.name"] for _, _, given in hdfs.asked if "data" not in given} == {"ada"}


def test_a_connection_that_is_cut_is_taken_up_again(hdfs: WrongHdfs, url: str, settings: Settings) -> None:
    hdfs.namespace.add("/a.csv", TEXT)
    hdfs.next("DATA", stops_after(100), cuts)
    assert rows(source(f"csv:{url}/a.csv", settings)) == sorted(ROWS)


def test_a_directory_and_patterns_are_their_files_by_name(hdfs: WrongHdfs, url: str, settings: Settings) -> None:
    for path in ("day=2/b", "day=1/a", "day=1/_SUCCESS", "day=1/.part", "day=1/more/c", "day=10/d", "other/e"):
        hdfs.namespace.add(f"/data/{path}", TEXT)

    def found(path: str) -> list[str]:
        return [str(file).removeprefix(f"{url}/data/") for file in own_place(f"{url}{path}", settings).files()]

    assert found("/data/day=1") == found("/data/day=1/") == ["day=1/a"]
    assert found("/data/day=*/[a-c]") == ["day=1/a", "day=2/b"]
    assert found("/data/day=?/?") == ["day=1/a", "day=2/b"]
    assert found("/d*/day=1*/[!m]*") == ["day=1/a", "day=10/d"]
    assert found("/data/day=1/_*") == ["day=1/_SUCCESS"]
    assert found("/data/o*") == ["other/e"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/data/nothing.csv", "no such file"),
        ("/data/no*", "no such file"),
        ("/nothing/*.csv", "no such file"),
        ("/data/empty", "the directory holds no file"),
        ("/data/*", "empty is a directory, and the pattern leads to several things"),
    ],
)
def test_what_is_not_there_is_said(hdfs: WrongHdfs, url: str, settings: Settings, path: str, said: str) -> None:
    hdfs.namespace.add("/data/empty", None)
    hdfs.namespace.add("/data/a.csv", TEXT)
    with pytest.raises(DataError, match=said):
        source(f"csv:{url}{path}", settings).description()


@pytest.mark.parametrize("path", ["hdfs://a b/x", "webhdfs:///x", "hdfs://nn/a:b", "hdfs://nn/../x", "hdfs://nn/{a,b}"])
def test_no_address_is_said(settings: Settings, path: str) -> None:
    with pytest.raises(SettingError, match=r"that is no address on HDFS; write hdfs://NAME/path"):
        source(f"csv:{path}", settings)


def test_messages_name_the_file_and_its_line(hdfs: WrongHdfs, url: str, settings: Settings) -> None:
    hdfs.namespace.add("/a.csv", TEXT + b"1,x,2\n")
    with pytest.raises(DataError) as raised:
        source(f"csv:{url}/a.csv", settings).description()
    assert str(raised.value) == f"{url}/a.csv:51: column 2 holds 'x', which is not a number"
    hdfs.namespace.add("/a.csv.gz", gzip.compress(TEXT)[:-20])
    with pytest.raises(DataError, match=rf"{url}/a.csv.gz is damaged or cut off"):
        source(f"csv:{url}/a.csv.gz", settings).description()
    hdfs.namespace.add("/a.parquet", parquet()[:200])
    with pytest.raises(DataError, match=rf"{url}/a.parquet is not a Parquet file, or is damaged"):
        source(f"parquet:{url}/a.parquet", settings).description()


def test_a_writer_that_is_still_at_it_is_waited_for_by_nobody(hdfs: WrongHdfs, url: str, settings: Settings) -> None:
    hdfs.namespace.add("/a.csv", TEXT)
    hdfs.namespace.open.add("/a.csv")
    with pytest.raises(StoreError, match="was never closed"):
        source(f"csv:{url}/a.csv", settings).description()


def test_the_same_content_is_the_same_data_and_is_read_once(hdfs: WrongHdfs, url: str, settings: Settings) -> None:
    hdfs.namespace.add("/a.csv", TEXT)
    name = f"csv:{url}/a.csv"
    first = dataset_slug(source(name, settings), settings)
    hdfs.asked.clear()
    assert dataset_slug(source(name, settings), settings) == first
    assert "OPEN" not in hdfs.operations()
    hdfs.namespace.add("/a.csv", TEXT)  # written again: another file with the same content
    assert dataset_slug(source(name, settings), settings) == first
    assert "OPEN" in hdfs.operations()
    hdfs.namespace.add("/a.csv", TEXT + b"1,2,0\n")
    assert dataset_slug(source(name, settings), settings) != first


def test_a_file_that_changes_while_it_is_read_is_refused(hdfs: WrongHdfs, url: str, settings: Settings) -> None:
    hdfs.namespace.add("/a.csv", TEXT)
    given = source(f"csv:{url}/a.csv", settings)
    given.description()
    batches = given.rows("train")
    next(batches)
    hdfs.namespace.add("/a.csv", TEXT)
    with pytest.raises(DataError, match="was changed while it was read"):
        list(batches)


def test_nothing_stays_of_a_copy(hdfs: WrongHdfs, url: str, settings: Settings) -> None:
    hdfs.namespace.add("/a.parquet", parquet())
    rows(source(f"parquet:{url}/a.parquet", settings))
    assert [path.name for path in settings.main.cache.iterdir()] == ["parquet"]  # what the pass over the file found


def test_a_path_of_the_settings_file_is_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    named = ["csv:hdfs://nn/data/*.csv", "parquet:webhdfs://nn:9870/x", "csv:own.csv"]
    given = read_settings("quick", overrides=[f"profile.quick.datasets={' '.join(named)}"])
    assert given.profile.datasets == (*named[:2], f"csv:{tmp_path / 'own.csv'}")
