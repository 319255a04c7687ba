"""Ingest, range, normalize and pack over real files, up to what a platform reads."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipeline.datasets import ingest as ingest_module
from pipeline.datasets.ingest import ingest
from pipeline.datasets.normalize import find_range, normalize
from pipeline.datasets.pack import open_dataset, pack
from pipeline.datasets.sources import dataset_slug, source
from store.errors import DataError, StoreError
from store.manifest import read_manifest, verify_checksums

TOP = Path(__file__).parent.parent.parent.parent


@pytest.fixture
def prepared(configured, store, told):
    """Everything from a name to the packed dataset; the slug."""

    def run(name: str, *overrides: str) -> str:
        settings = configured(*overrides)
        made = source(name, settings, progress=told)
        slug = dataset_slug(made, settings)
        ingest(made, store, slug)
        find_range(store, slug, settings)
        normalize(store, slug, settings)
        pack(store, slug, settings)
        return slug

    return run


@pytest.fixture
def own(tmp_path):
    def write(rows: np.ndarray, labels: np.ndarray) -> str:
        pairs = zip(rows.tolist(), labels.tolist(), strict=True)
        (tmp_path / "own.csv").write_text("".join(",".join(map(str, row)) + f",{label}\n" for row, label in pairs))
        return f"csv:{tmp_path / 'own.csv'}"

    return write


def values_of(store, slug: str, split: str) -> np.ndarray:
    """The normalized CSV."""
    path = f"data/{slug}/normalized/{split}"
    text = b"".join(store.read(f"{path}/{part.name}") for part in read_manifest(store, path).parts)
    return np.array([line.split(b",") for line in text.splitlines()], float)


def check(store, slug: str, dtype: str) -> None:
    """What is packed is what was normalized, row by row, and every file is as its manifest says."""
    dataset = open_dataset(store, slug, "own")
    assert dataset.dtype == dtype
    for split, read in (("train", lambda: dataset.read_train(1.0)), ("test", dataset.read_test)):
        packed, labels = read()
        expected = values_of(store, slug, split)
        assert np.array_equal(labels, expected[:, -1])
        if dtype == "uint8":
            assert np.array_equal(dataset.values(packed, "float64"), expected[:, :-1])
        else:
            assert np.array_equal(packed, expected[:, :-1].astype(np.float32))
        for step in ("csv", "normalized", "packed"):
            path = f"data/{slug}/{step}/{split}"
            manifest = read_manifest(store, path)
            verify_checksums(store, path, manifest)
            assert manifest.rows == len(labels)


@pytest.mark.parametrize(("scale", "runner"), [("global", "inline"), ("pixel", "inline"), ("pixel", "local")])
def test_synthetic_rows_become_bytes(prepared, store, scale, runner):
    slug = prepared("synthetic:300x20x4", f"scale={scale}", f"mapreduce.runner={runner}")
    check(store, slug, "uint8")
    found = json.loads(store.read(f"data/{slug}/range.json"))
    assert list(found) == ["rows", "minimum", "maximum"]
    assert found["rows"] == 300


def test_the_facts_are_kept_with_the_data(prepared, store):
    slug = prepared("synthetic:30x5x3")
    facts = read_manifest(store, f"data/{slug}/csv/train").facts
    assert (facts["name"], facts["columns"], facts["classes"]) == ("synthetic:30x5x3", 5, 3)
    assert facts["pixel_range"] == [0, 255]
    dataset = open_dataset(store, slug, "synthetic:30x5x3")
    assert (dataset.columns, dataset.classes, dataset.train_rows, dataset.test_rows) == (5, 3, 30, 6)
    assert (dataset.offset, dataset.divisor, dataset.split_seed) == ((0.0,), (255.0,), 0)


def test_text_labels_are_numbers_in_the_rows_and_texts_in_the_facts(prepared, store, tmp_path):
    (tmp_path / "own.csv").write_text("1,dog\n2,cat\n3,dog\n4,cat\n5,cow\n" * 4)
    slug = prepared(f"csv:{tmp_path / 'own.csv'}")
    check(store, slug, "uint8")
    for step in ("csv", "packed"):
        assert read_manifest(store, f"data/{slug}/{step}/test").facts["labels"] == ["cat", "cow", "dog"]


@pytest.mark.parametrize("scale", ["global", "pixel"])
@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0, 1, "uint8"),
        (3, 200, "uint8"),
        (-100, 100, "uint8"),
        (1000, 1200, "uint8"),
        (0, 300, "float32"),
        (7, 7, "uint8"),
    ],
)
def test_whole_numbers_of_a_small_span_are_bytes(prepared, store, own, scale, low, high, dtype):
    random = np.random.default_rng(0)
    rows = random.integers(low, high, (200, 3), endpoint=True)
    rows[:10] = high
    rows[10:20] = low
    check(store, prepared(own(rows, random.integers(0, 2, 200)), f"scale={scale}"), dtype)


@pytest.mark.parametrize("scale", ["global", "pixel"])
def test_real_numbers_are_float32(prepared, store, own, scale):
    random = np.random.default_rng(0)
    check(store, prepared(own(random.normal(size=(60, 4)), random.integers(0, 2, 60)), f"scale={scale}"), "float32")


def test_one_value_between_the_bytes_makes_all_of_it_float32(prepared, store, own):
    rows = np.random.default_rng(0).integers(0, 256, (20_000, 2)).astype(float)
    rows[-1, 1] = 0.5
    check(store, prepared(own(rows, np.arange(20_000) % 2)), "float32")


def test_a_value_of_test_outside_of_the_range_of_train_is_kept(prepared, store, own):
    is_test = np.zeros(50, bool)
    is_test[np.random.default_rng(0).permutation(50)[:10]] = True
    rows = np.random.default_rng(1).integers(50, 100, (50, 3))
    rows[is_test] = [0, 255, 7]
    slug = prepared(own(rows, np.arange(50) % 2))
    check(store, slug, "uint8")
    assert values_of(store, slug, "test")[:, :-1].max() > 1
    assert values_of(store, slug, "test")[:, :-1].min() < 0


@pytest.mark.parametrize("scale", ["global", "pixel"])
def test_there_is_room_for_values_of_test_on_both_sides_of_train_s(prepared, store, own, scale):
    is_test = np.zeros(50, bool)
    is_test[np.random.default_rng(0).permutation(50)[:10]] = True
    rows = np.random.default_rng(1).integers(-100, 101, (50, 3))
    rows[:20:2], rows[1:20:2] = -100, 100
    rows[is_test] = [-120, 120, 0]
    check(store, prepared(own(rows, np.arange(50) % 2), f"scale={scale}"), "uint8")


def test_a_constant_column_is_zero(prepared, store, own):
    rows = np.random.default_rng(0).integers(0, 256, (50, 3))
    rows[:, 1] = 9
    slug = prepared(own(rows, np.arange(50) % 2), "scale=pixel")
    check(store, slug, "uint8")
    assert not values_of(store, slug, "train")[:, 1].any()


def test_row_groups_are_of_one_size_and_parts_are_whole(prepared, store, monkeypatch):
    monkeypatch.setattr("pipeline.datasets.pack.PART_BYTES", 3 * 8192 * 2)
    slug = prepared("synthetic:50000x2x2")
    files = [pq.ParquetFile(path) for path in open_dataset(store, slug, "x").train]
    groups = [[file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] for file in files]
    schemas = {str(file.schema_arrow) for file in files}
    for file in files:
        file.close()
    assert groups == [[8192] * 3, [8192] * 3, [848]]
    assert schemas == {"features: fixed_size_binary[2]\nlabel: int64"}
    check(store, slug, "uint8")


def test_ingest_makes_parts_of_whole_rows(prepared, store, monkeypatch):
    monkeypatch.setattr(ingest_module, "PART_BYTES", 50_000)
    slug = prepared("synthetic:50000x2x2")
    parts = read_manifest(store, f"data/{slug}/csv/train").parts
    assert [part.name for part in parts] == [f"part-{number:05d}" for number in range(len(parts))]
    assert all(50_000 <= part.bytes < 100_000 for part in parts[:-1])
    assert len(parts) > 5
    check(store, slug, "uint8")


@pytest.mark.parametrize("damage", ["cut", "flip", "zero"])
def test_a_corrupt_parquet_file_is_named(prepared, store, damage):
    slug = prepared("synthetic:20000x50x2")
    dataset = open_dataset(store, slug, "x")
    path = Path(dataset.train[0])
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[:-100]
    elif damage == "zero":
        content = bytearray()
    else:
        content[5000:6000] = bytes(1000)
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"{path} is damaged"):
        dataset.read_train(1.0)
    if damage != "flip":
        with pytest.raises(StoreError, match=r"part-00000.parquet: \d+ bytes, but manifest.json lists"):
            open_dataset(store, slug, "x")


def test_splits_of_different_packings_are_refused(prepared, store):
    slug = prepared("synthetic:20x5x2")
    manifest = Path(store.local(f"data/{slug}/packed/test/manifest.json"))
    manifest.write_text(manifest.read_text().replace("255.0", "254.0"))
    with pytest.raises(DataError, match="do not belong together"):
        open_dataset(store, slug, "x")


def test_a_missing_part_is_refused_by_the_next_step(prepared, configured, store):
    slug = prepared("synthetic:20x5x2")
    store.remove(f"data/{slug}/csv/train/part-00000")
    with pytest.raises(StoreError, match="part-00000: no such file"):
        find_range(store, slug, configured())


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_a_row_that_went_bad_in_the_store_is_named_and_nothing_is_published(configured, store, runner):
    settings = configured(f"mapreduce.runner={runner}")
    ingest(source("synthetic:500x5x2", settings), store, "x")
    path = Path(store.local("data/x/csv/train/part-00000"))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[400] = b"1;" + lines[400][2:]
    path.write_bytes(b"".join(lines))
    with pytest.raises(DataError, match=r"^\S+/part-00000:401: (\d columns, but 6|column 1 holds)"):
        find_range(store, "x", settings)
    assert not store.exists("data/x/range.json")
    store.write("data/x/range.json", b'{"rows": 1, "minimum": [0,0,0,0,0], "maximum": [9,9,9,9,9]}')
    with pytest.raises(DataError, match=r"part-00000:401: "):
        normalize(store, "x", settings)
    assert store.list("data/x/normalized") == []


def test_a_source_that_breaks_off_publishes_nothing(configured, store):
    class Broken:
        name = "broken"

        def description(self):
            return source("synthetic:10x5x2", configured()).description()

        def rows(self, split):
            if split == "test":
                raise DataError("own.csv:7: no")
            yield from source("synthetic:10x5x2", configured()).rows(split)

    with pytest.raises(DataError, match=r"own.csv:7"):
        ingest(Broken(), store, "x")
    assert not store.exists("data/x/csv/train")
    assert list(Path(store.local("data/x/csv")).iterdir()) == []


def test_a_source_with_fewer_rows_than_it_said_publishes_nothing(configured, store):
    made = source("synthetic:10x5x2", configured())
    whole = made.rows
    made.rows = lambda split: iter([]) if split == "test" else whole(split)
    with pytest.raises(DataError, match=r"synthetic:10x5x2 has 0 rows to test, but 2 are expected"):
        ingest(made, store, "x")
    assert not store.exists("data/x/csv/train")


def test_a_normalized_file_that_is_no_longer_rows_is_not_packed(prepared, store, configured):
    slug = prepared("synthetic:20x5x2")
    for split in ("train", "test"):
        store.remove(f"data/{slug}/packed/{split}")
    part = Path(store.local(f"data/{slug}/normalized/test/part-00000"))
    part.write_bytes(part.read_bytes().replace(b",", b";", 1))
    with pytest.raises(DataError, match=r"normalized/test/part-00000:1: 5 columns, but 6"):
        pack(store, slug, configured())
    assert store.list(f"data/{slug}/packed") == []


def test_steps_that_are_done_are_left_alone(prepared, store):
    slug = prepared("synthetic:20x5x2")
    before = [store.local(f"data/{slug}/{step}/train").stat().st_ino for step in ("csv", "normalized", "packed")]
    prepared("synthetic:20x5x2")
    after = [store.local(f"data/{slug}/{step}/train").stat().st_ino for step in ("csv", "normalized", "packed")]
    assert before == after


def test_the_runner_s_directory_is_private(prepared, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    modes = []
    mkdir = os.mkdir

    def seen(path, *arguments, **options):
        mkdir(path, *arguments, **options)
        if Path(path).parent == folder:
            modes.append(stat.S_IMODE(os.stat(path).st_mode))

    monkeypatch.setattr(os, "mkdir", seen)
    prepared("synthetic:20x5x2")
    assert set(modes) == {0o700}
    assert list(folder.iterdir()) == []


MEASURED = """
from pathlib import Path
from pipeline.config import read_settings
from pipeline.datasets import ingest, normalize, pack, sources
from store.local import LocalStore
settings, store = read_settings("quick"), LocalStore(Path("store"))
source = sources.source("synthetic:%dx100x10", settings)
ingest.ingest(source, store, "x")
normalize.find_range(store, "x", settings)
normalize.normalize(store, "x", settings)
pack.pack(store, "x", settings)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(int(status["VmHWM"].split()[0]) >> 10)
"""


def test_memory_does_not_grow_with_the_rows(tmp_path):
    """From source to packed in one process, in MiB: the text of the added rows alone would show."""
    peaks, texts = [], []
    for rows in (100_000, 200_000):
        folder = tmp_path / str(rows)
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", MEASURED % rows],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(TOP)},
            capture_output=True,
            timeout=280,
            check=True,
        )
        peaks.append(int(done.stdout))
        texts.append(sum(part.stat().st_size for part in folder.glob("store/data/x/normalized/*/part-*")) >> 20)
    assert peaks[1] < 600
    assert peaks[1] - peaks[0] < 0.8 * (texts[1] - texts[0])
