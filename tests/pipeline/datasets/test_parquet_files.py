"""Tables of one's own as Parquet: what is declared is read, every other cell is named with its file, row and column."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.datasets import parquet_files
from pipeline.datasets.csv_files import CsvFiles
from pipeline.datasets.ingest import ingest
from pipeline.datasets.normalize import find_range, normalize
from pipeline.datasets.pack import open_dataset, pack
from pipeline.datasets.parquet_files import ParquetFiles
from pipeline.datasets.sources import dataset_slug
from store.errors import DataError, YarnstickError

ROWS = 50
TABLE = {"a": list(range(ROWS)), "b": [row % 7 / 4 for row in range(ROWS)], "label": [row % 3 for row in range(ROWS)]}


@pytest.fixture
def opened(configured, told):
    def make(path: Path, *overrides: str) -> ParquetFiles:
        return ParquetFiles(str(path), configured(*(f"csv.{override}" for override in overrides)), progress=told)

    return make


@pytest.fixture
def file(tmp_path):
    def write(table: dict, name: str = "own.parquet", **options) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(pa.table(table), path, **options)
        return path

    return write


def lines(source, split: str) -> list[list[float]]:
    batches = list(source.rows(split))
    assert all(batch.endswith(b"\n") for batch in batches)
    return [[float(cell) for cell in line.split(b",")] for line in b"".join(batches).splitlines()]


def in_rows(table: dict) -> list[list[float]]:
    return [list(map(float, row)) for row in zip(*table.values(), strict=True)]


@pytest.mark.parametrize("cells", [1, 17, 1 << 19])
def test_it_is_split_as_the_same_csv_is(opened, file, configured, told, tmp_path, monkeypatch, cells):
    monkeypatch.setattr(parquet_files, "BATCH_CELLS", cells)
    source = opened(file(TABLE, row_group_size=13), "test_fraction=0.3", "split_seed=4")
    (tmp_path / "own.csv").write_text(
        "".join(",".join(map(repr, row)) + "\n" for row in zip(*TABLE.values(), strict=True))
    )
    settings = configured("csv.test_fraction=0.3", "csv.split_seed=4")
    same = CsvFiles(str(tmp_path / "own.csv"), settings, progress=told)
    described = source.description()
    assert (described.columns, described.classes, described.train_rows, described.test_rows) == (2, 3, 35, 15)
    for split in ("train", "test"):
        assert lines(source, split) == lines(same, split)
    assert sorted(lines(source, "train") + lines(source, "test")) == in_rows(TABLE)


def test_a_directory_and_a_pattern_are_their_files_by_name(opened, file, tmp_path):
    for name, part in (("b.parquet", slice(20, 50)), ("a.parquet", slice(0, 20))):
        file({key: values[part] for key, values in TABLE.items()}, f"all/{name}")
    (tmp_path / "all" / "_SUCCESS").touch()
    for path in (tmp_path / "all", tmp_path / "all" / "*.parquet"):
        source = opened(path)
        whole = opened(file(TABLE))
        assert lines(source, "test") == lines(whole, "test")


def test_the_label_may_stand_first_and_be_a_text(opened, file):
    table = {"kind": pa.array(["dog", "cat", "dog", "cow"]).dictionary_encode(), "x": [1.5, 2.5, 3.5, 4.5]}
    source = opened(file(table), "label=first")
    assert source.description().labels == ("cat", "cow", "dog")
    assert sorted(lines(source, "train") + lines(source, "test")) == [[1.5, 2], [2.5, 0], [3.5, 2], [4.5, 1]]


@pytest.mark.parametrize(
    "kind",
    [pa.uint8(), pa.int64(), pa.float16(), pa.float32(), pa.decimal128(30, 2), pa.dictionary(pa.int8(), pa.int32())],
)
def test_every_kind_of_number_is_a_feature(opened, file, kind):
    numbers = pa.array([1, 2, 3, 255]).cast(kind.value_type if pa.types.is_dictionary(kind) else kind)
    if pa.types.is_dictionary(kind):
        numbers = numbers.dictionary_encode()
    source = opened(file({"x": numbers, "label": [0, 1, 0, 1]}))
    assert sorted(lines(source, "train") + lines(source, "test")) == [[1, 0], [2, 1], [3, 0], [255, 1]]


def test_a_float32_is_written_as_the_number_that_it_is(opened, file):
    values = np.array([0.1, 1e-30, 3e38, 7], np.float32)
    source = opened(file({"x": values, "label": [0, 1, 0, 1]}))
    assert {row[0] for row in lines(source, "train") + lines(source, "test")} == set(map(float, values))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
def test_the_text_of_any_float64_is_read_back_as_it(opened, file, values):
    source = opened(file({"x": values, "label": [0] * len(values)}), "classes=2")
    found = lines(source, "train") + lines(source, "test")
    assert sorted(row[0] for row in found) == sorted(values)


def test_the_whole_way_to_packed_rows(opened, file, configured, store):
    pixels = np.random.default_rng(0).integers(0, 256, (300, 5), np.uint8)
    table = {f"p{column}": pixels[:, column] for column in range(5)} | {"label": np.arange(300) % 4}
    settings, source = configured(), opened(file(table))
    ingest(source, store, "p")
    find_range(store, "p", settings)
    normalize(store, "p", settings)
    pack(store, "p", settings)
    dataset = open_dataset(store, "p", source.name)
    found, labels = dataset.read_train(1.0)
    assert (dataset.dtype, len(labels), dataset.classes) == ("uint8", 240, 4)
    rows = set(map(tuple, np.column_stack([pixels, np.arange(300) % 4]).tolist()))
    assert set(map(tuple, np.column_stack([found, labels]).tolist())) <= rows


@pytest.mark.parametrize(
    ("table", "overrides", "sentence"),
    [
        ({"x": [1, None], "label": [0, 1]}, (), "own.parquet, row 2: column 'x' is empty, but every feature needs"),
        ({"x": [1.0, math.nan], "label": [0, 1]}, (), "own.parquet, row 2: column 'x' holds nan, but only finite"),
        ({"x": [1.0, -math.inf], "label": [0, 1]}, (), "own.parquet, row 2: column 'x' holds -inf, but only finite"),
        ({"x": ["1", "2"], "label": [0, 1]}, (), "own.parquet: column 'x' is of type string, but features are numbers"),
        (
            {"x": [True, False], "label": [0, 1]},
            (),
            "own.parquet: column 'x' is of type bool, but features are numbers",
        ),
        ({"x": [[1], [2]], "label": [0, 1]}, (), "own.parquet: column 'x' is of type list"),
        ({"x": [1, 2], "label": [0, None]}, (), "own.parquet, row 2: column 'label' is empty, but the label"),
        ({"x": [1, 2], "label": ["a", None]}, (), "own.parquet, row 2: column 'label' is empty, but the label"),
        ({"x": [1, 2], "label": [0, -1]}, (), "row 2: column 'label' holds the label -1, outside 0.."),
        ({"x": [1, 2], "label": [1, 2]}, (), r"row 2: column 'label' holds the label 2, which is outside 0..1 \(there"),
        ({"x": [1, 2], "label": [1, 5]}, ("classes=5",), r"row 2: .* 5, which is outside 0..4 \(yarnstick.csv.classes"),
        (
            {"x": [1, 2, 3], "label": ["a", "b", "c"]},
            ("classes=2",),
            "has 3 different labels, but yarnstick.csv.classes",
        ),
        ({"x": [1, 2], "label": [0.0, 1.0]}, (), "column 'label' is of type double, but .*yarnstick.csv.label = last"),
        ({"kind": ["a", "b"], "x": [1, 2]}, (), "column 'kind' is of type string, but features are numbers"),
        ({"x": [1, 300], "label": [0, 1]}, ("maximum=255",), "row 2: column 'x' holds 300, above the maximum of 255"),
        ({"x": [1, -1], "label": [0, 1]}, ("minimum=0",), "row 2: column 'x' holds -1, below the minimum of 0"),
        ({"label": [0, 1]}, (), "own.parquet has 1 columns, but at least two are needed"),
        ({"x": pa.array([], pa.int64()), "label": pa.array([], pa.int64())}, (), "own.parquet holds no row"),
        ({"x": [1], "label": [0]}, ("classes=2",), "holds one row, but at least two"),
    ],
)
def test_what_is_wrong_is_named_with_its_row_and_column(opened, file, table, overrides, sentence):
    with pytest.raises(DataError, match=sentence):
        opened(file(table), *overrides).description()


def test_the_first_bad_row_is_named_by_its_number_in_its_file(opened, file, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "BATCH_CELLS", 30)
    file(TABLE, "all/a.parquet")
    bad = [*TABLE["b"][:30], None, *TABLE["b"][31:]]
    worse = [*TABLE["a"][:40], None, *TABLE["a"][41:]]
    file(TABLE | {"a": worse, "b": bad}, "all/b.parquet")
    with pytest.raises(DataError, match=r"all/b.parquet, row 31: column 'b' is empty"):
        opened(tmp_path / "all").description()


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"a": [1], "c": [2], "label": [0]}, r"b.parquet has 3 columns \('a', 'c', 'label'\), but .*a.parquet has 3"),
        ({"a": [1], "label": [0]}, r"b.parquet has 2 columns"),
        ({"a": [1], "b": [2], "label": ["x"]}, r"b.parquet: the label is string, but not so in .*a.parquet"),
    ],
)
def test_files_of_one_dataset_have_the_same_columns(opened, file, tmp_path, other, sentence):
    file(TABLE, "all/a.parquet")
    file(other, "all/b.parquet")
    with pytest.raises(DataError, match=sentence):
        opened(tmp_path / "all").description()


def test_files_that_are_none_or_cut_off_are_refused(opened, file, tmp_path):
    path = file(TABLE)
    content = path.read_bytes()
    for data in (b"", b"a,b\n1,2\n", content[: len(content) // 2], content[:-1]):
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"own.parquet is not a Parquet file, or is damaged"):
            opened(path).description()
    with pytest.raises(DataError, match="no such file"):
        opened(tmp_path / "none.parquet").description()


def test_too_many_different_labels_point_at_the_declaration(opened, file):
    path = file({"x": np.arange(10_001), "label": np.arange(10_001)})
    with pytest.raises(DataError, match=r"more than 10000 different labels; is yarnstick.csv.label = last right"):
        opened(path).description()


def test_a_description_is_kept_until_file_or_declaration_change(opened, file, told, configured):
    path = file(TABLE)
    first = dataset_slug(opened(path), configured())
    told.lines.clear()
    assert dataset_slug(opened(path), configured()) == first
    assert told.lines == []
    assert dataset_slug(opened(path, "classes=9"), configured()) != first
    file(TABLE | {"a": TABLE["b"]})
    assert dataset_slug(opened(path), configured()) != first


def test_a_file_that_grows_while_it_is_read_is_refused(opened, file):
    path = file(TABLE)
    source = opened(path)
    rows = source.rows("train")
    next(rows)
    file({key: values * 2 for key, values in TABLE.items()})
    with pytest.raises(DataError, match="was changed while it was read"):
        list(rows)


def _encoded() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(TABLE), sink)
    return sink.getvalue().to_pybytes()


WHOLE = _encoded()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=60),
        st.binary(max_size=60).map(lambda data: b"PAR1" + data + b"PAR1"),
        st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)).map(
            lambda change: WHOLE[: change[0]] + bytes([change[1]]) + WHOLE[change[0] + 1 :]
        ),
        st.integers(0, len(WHOLE)).map(lambda size: WHOLE[:size]),
    )
)
def test_any_bytes_are_rows_or_a_sentence(opened, tmp_path, data):
    (tmp_path / "any.parquet").write_bytes(data)
    source = opened(tmp_path / "any.parquet")
    try:
        described = source.description()
        found = lines(source, "train") + lines(source, "test")
    except YarnstickError:
        return
    assert len(found) == described.train_rows + described.test_rows
