"""Data that lies on a real HDFS already, as CSV and as Parquet, by each kind of address; in bounded memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.lifecycle import Cluster
from pipeline.config import read_settings
from pipeline.datasets.sources import dataset_slug, source
from pipeline.opening import open_store
from pipeline.settings import Settings
from store.errors import DataError, StoreError
from store.protocol import Store
from tests.pipeline.place import TOP

ROWS = [b"%d,%d,%d" % (row, row % 7, row % 3) for row in range(50)]
TEXT = b"\n".join(ROWS) + b"\n"
LINE = b",".join([b"17"] * 784) + b",%d\n"
LARGE_ROWS = 80_000  # some 190 MB
MEMORY_MIB = 120  # beyond what the process has before it reads


@pytest.fixture
def settings(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name, value in cluster.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return read_settings("quick", overrides=[f"cache={tmp_path / 'cache'}"])


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    store = open_store(settings)
    yield store
    store.remove("own")


@pytest.fixture
def addresses(cluster: Cluster, store: Store) -> dict[str, str]:
    """The same directory in all spellings."""
    _, _, rest = store.url.partition("://")
    authority, _, path = rest.partition("/")
    from store.addresses import place_of

    web = place_of(store.url, namenodes=()).namenodes[0].replace("http://", "webhdfs://")
    return {
        "whole": f"hdfs://{authority}/{path}/own",
        "of the configuration": f"hdfs:///{path}/own",
        "by http": f"{web}/{path}/own",
    }


def rows(name: str, settings: Settings) -> list[bytes]:
    given = source(name, settings)
    return sorted(line for split in ("train", "test") for batch in given.rows(split) for line in batch.splitlines())  # type: ignore[arg-type]


@pytest.mark.parametrize("spelled", ["whole", "of the configuration", "by http"])
def test_files_directories_and_patterns(
    settings: Settings, store: Store, addresses: dict[str, str], spelled: str
) -> None:
    for day, content in {"day=0": ROWS[:20], "day=1": ROWS[20:]}.items():
        store.write(f"own/{day}/part-0", b"\n".join(content) + b"\n")
    store.write("own/day=0/_SUCCESS", b"")
    where = addresses[spelled]
    assert rows(f"csv:{where}/day=0/part-0", settings) == rows(f"csv:{where}/day=0", settings) == sorted(ROWS[:20])
    assert rows(f"csv:{where}/day=*/part-*", settings) == sorted(ROWS)
    with pytest.raises(DataError, match="no such file"):
        source(f"csv:{where}/day=2/*", settings).description()


def test_parquet_with_several_row_groups(settings: Settings, store: Store, addresses: dict[str, str]) -> None:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"a": list(range(50)), "b": [n % 7 for n in range(50)], "label": [n % 3 for n in range(50)]})
    written = io.BytesIO()
    pq.write_table(table, written, row_group_size=9)
    store.write("own/a.parquet", written.getvalue())
    assert rows(f"parquet:{addresses['whole']}/a.parquet", settings) == sorted(ROWS)


def test_changed_data_is_other_data(settings: Settings, store: Store, addresses: dict[str, str]) -> None:
    name = f"csv:{addresses['whole']}/a.csv"
    slugs = []
    for content in (TEXT, TEXT, TEXT + b"1,2,0\n"):
        store.write("own/a.csv", content)
        slugs.append(dataset_slug(source(name, settings), settings))
    assert slugs[0] == slugs[1] != slugs[2]


def test_what_may_not_be_read_is_said(settings: Settings, store: Store, addresses: dict[str, str]) -> None:
    store.write("own/a.csv", TEXT)
    folder = f"/{addresses['whole'].partition('://')[2].partition('/')[2]}"
    subprocess.run(["hadoop", "fs", "-chmod", "000", f"{folder}/a.csv"], check=True, capture_output=True)
    name = addresses["by http"]
    as_another = read_settings("quick", overrides=["store.user=somebody", f"cache={Path.cwd() / 'cache'}"])
    with pytest.raises(StoreError, match=r"own/a\.csv cannot be read: .*user=somebody"):
        source(f"csv:{name}/a.csv", as_another).description()


READ = """
import json, re, sys
from pathlib import Path
from pipeline.config import read_settings
from pipeline.datasets.sources import source
import mapreduce.rows, pipeline.datasets.csv_files, store.webhdfs

settings = read_settings("quick", overrides=[f"cache={sys.argv[2]}"])
most = lambda: int(re.search("VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])  # of this program alone
before = most()
given = source(sys.argv[1], settings)
read = sum(batch.count(b"\\n") for split in ("train", "test") for batch in given.rows(split))
print(json.dumps({"rows": read, "mib": (most() - before) / 1024}))
"""


def test_memory_is_bounded(settings: Settings, addresses: dict[str, str], tmp_path: Path, store: Store) -> None:
    from store.publish import Staging

    with Staging(store, "own/large") as staging:
        with staging.create("part-0") as part:
            for row in range(LARGE_ROWS):
                part.write(LINE % (row % 10))
        staging.commit()
    told = subprocess.run(
        [sys.executable, "-c", READ, f"csv:{addresses['whole']}/large/part-*", str(tmp_path / "other")],
        env=os.environ | {"PYTHONPATH": str(TOP)},
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(told.stdout)
    assert found["rows"] == LARGE_ROWS
    assert found["mib"] < MEMORY_MIB, found
