"""One's own files: what is declared is read, what is not declared is never guessed."""

import gzip
import os
import re

import numpy as np
import pytest

from pipeline.datasets.csv_files import CsvFiles
from store.errors import DataError

ROWS = [b"%d,%d,%d" % (row, row % 7, row % 3) for row in range(50)]
TEXT = b"\n".join(ROWS) + b"\n"


@pytest.fixture
def opened(configured, told):
    def make(path, *overrides: str) -> CsvFiles:
        return CsvFiles(str(path), configured(*(f"csv.{override}" for override in overrides)), progress=told)

    return make


@pytest.fixture
def file(tmp_path):
    def write(data: bytes, name: str = "own.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(data)
        return path

    return write


def lines(source: CsvFiles, split: str) -> list[bytes]:
    batches = list(source.rows(split))
    assert all(batch.endswith(b"\n") for batch in batches)
    return b"".join(batches).splitlines()


def test_every_row_is_in_train_or_test_in_its_order(opened, file):
    source = opened(file(TEXT), "test_fraction=0.3")
    described = source.description()
    assert (described.columns, described.classes, described.train_rows, described.test_rows) == (2, 3, 35, 15)
    train, test = lines(source, "train"), lines(source, "test")
    assert len(test) == 15
    assert [row for row in ROWS if row in set(test)] == test
    assert [row for row in ROWS if row not in set(test)] == train


def test_the_split_is_that_of_numpy_by_its_seed(opened, file):
    path = file(TEXT)
    for seed in (0, 1):
        drawn = np.sort(np.random.default_rng(seed).permutation(50)[:10])
        assert lines(opened(path, f"split_seed={seed}"), "test") == [ROWS[row] for row in drawn]


@pytest.mark.parametrize(("fraction", "expected"), [("0.001", 1), ("0.999", 3), ("0.5", 2)])
def test_each_side_has_at_least_one_row(opened, file, fraction, expected):
    source = opened(file(b"1,0\n2,1\n3,0\n4,1\n"), f"test_fraction={fraction}")
    assert len(lines(source, "test")) == expected
    assert len(lines(source, "train")) == 4 - expected


def test_one_row_is_too_few(opened, file):
    with pytest.raises(DataError, match="holds one row, but at least two"):
        opened(file(b"1,0\n")).description()


def test_the_label_may_stand_first_and_be_a_text(opened, file):
    path = file(b"name,a,b\ndog,1,2\ncat, 3,4\r\n dog ,5,6\ncow,7,8.5\n")
    source = opened(path, "label=first", "header=true", "test_fraction=0.25")
    assert source.description().labels == ("cat", "cow", "dog")
    assert source.description().classes == 3
    found = sorted(lines(source, "train") + lines(source, "test"))
    assert found == [b" 3,4,0", b"1,2,2", b"5,6,2", b"7,8.5,1"]


def test_a_directory_and_a_pattern_are_their_files_by_name(opened, file, tmp_path):
    for name, rows in (("b.csv", ROWS[20:]), ("a.csv", ROWS[:20]), (".hidden", [b"x"]), ("_SUCCESS", [])):
        file(b"a,b,c\n" + b"\n".join(rows), f"all/{name}")
    for path in (tmp_path / "all", tmp_path / "all" / "*.csv"):
        source = opened(path, "header=true")
        assert sorted(lines(source, "train") + lines(source, "test")) == sorted(ROWS)


@pytest.mark.parametrize(
    "data",
    [
        TEXT.replace(b"\n", b"\r\n"),
        TEXT.replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + TEXT,
        gzip.compress(TEXT),
        gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:101]) + gzip.compress(TEXT[101:]),
    ],
)
def test_however_it_is_wrapped_it_is_the_same(opened, file, data):
    plain, wrapped = opened(file(TEXT)), opened(file(data, "wrapped"))
    assert wrapped.description() == plain.description()
    assert lines(wrapped, "test") == lines(plain, "test")


@pytest.mark.parametrize(
    ("data", "overrides", "sentence"),
    [
        (b"", (), "own.csv is empty: it holds no row"),
        (b"a,b\n", ("header=true",), "own.csv is empty: it holds no row"),
        (b"1,2,0\n3,0\n", (), "own.csv:2: 2 columns, but 3 are expected"),
        (b"1,2,0\n3,x,0\n", (), "own.csv:2: column 2 holds 'x', which is not a number"),
        (b"1,2,0\n3,NaN,0\n", (), "own.csv:2: column 2 holds 'NaN', but only finite"),
        (b"1,2,0\n3,4,\n", (), "own.csv:2: the label is missing"),
        (b"a,b,label\n1,2,0\n", (), "own.csv:1: 'a' is not a number; .*yarnstick.csv.header = true"),
        (b"0,1,label\n1,2,0\n", (), "own.csv:2: the label '0' is a whole number, but .*'label'; .*header = true"),
        (b"1,2,0\n3,4,cat\n", (), "own.csv:2: the label 'cat' is a text, but those before are whole numbers"),
        (b"1,2,1\n3,4,2\n", (), r"own.csv:2: the label '2' is outside 0..1 \(there are 2 different labels"),
        (
            b"1,2,1\n3,4,0\n5,6,5\n",
            ("classes=5",),
            r"own.csv:3: the label '5' is outside 0..4 \(yarnstick.csv.classes = 5",
        ),
        (b"1,2,-1\n3,4,0\n", (), "own.csv:2: the label '0' is a whole number, but before there is '-1'"),
        (b"1,2,0\n3,4," + b"9" * 5000, (), "own.csv:2: the label '9*...' is outside 0..1"),
        (b"1,2,a\n3,4,b\n5,6,c\n", ("classes=2",), "has 3 different labels, but yarnstick.csv.classes = 2"),
        (b"1,2,a\n3,4,\xff\n", (), r"own.csv:2: the label '\\\\xff' is not UTF-8"),
        (
            b"1,2,0\n3,256,1\n",
            ("minimum=0", "maximum=255"),
            "own.csv:2: column 2 holds '256', above the maximum of 255",
        ),
        (b"1,2,0\n3,-1,1\n", ("minimum=0",), "own.csv:2: column 2 holds '-1', below the minimum of 0"),
        (b"1,2,0\n" + b"1" * 2000 + b",2,0\n", ("longest_line_bytes=1024",), "own.csv:2: the line is longer than 1024"),
        (gzip.compress(TEXT)[:-9], (), "own.csv is damaged or cut off"),
        (gzip.compress(TEXT) + b"rubbish", (), "own.csv is damaged or cut off"),
        (gzip.compress(TEXT)[:-8] + bytes(8), (), "own.csv is damaged or cut off"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(opened, file, data, overrides, sentence):
    with pytest.raises(DataError, match=sentence):
        opened(file(data), *overrides).description()


def test_an_empty_file_among_others_is_named(opened, file, tmp_path):
    file(TEXT, "all/a.csv")
    file(b"", "all/b.csv")
    with pytest.raises(DataError, match=r"all/b.csv is empty"):
        opened(tmp_path / "all").description()


@pytest.mark.parametrize("between", [0, 5_000, 50_000])
def test_the_first_fault_is_named_even_if_a_later_one_is_noticed_first(opened, file, between):
    path = file(TEXT + b"x,2,0\n" + TEXT * between + b"1" * 3_000_000 + b",2,0\n" + TEXT)
    with pytest.raises(DataError, match=r"own.csv:51: column 1 holds 'x'"):
        opened(path, "longest_line_bytes=100000").description()


def test_a_path_that_is_not_there(opened, tmp_path):
    with pytest.raises(DataError, match=re.escape(f"{tmp_path}/no*: no such file")):
        opened(tmp_path / "no*").description()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="the directory holds no file"):
        opened(tmp_path / "empty").description()


def test_too_many_different_labels_point_at_the_declaration(opened, file):
    path = file(b"".join(b"%d,%d.5\n" % (row, row) for row in range(10_001)))
    with pytest.raises(DataError, match=r"more than 10000 different labels; is yarnstick.csv.label = last right"):
        opened(path).description()


def test_a_description_is_kept_until_file_or_declaration_change(opened, file, told):
    path = file(TEXT)
    opened(path).description()
    told.lines.clear()
    assert opened(path).description().classes == 3
    assert told.lines == []
    assert opened(path, "classes=9").description().classes == 9
    path.write_bytes(TEXT + b"1,2,2\n")
    assert opened(path).description().checksum != opened(file(TEXT, "b.csv")).description().checksum


def test_a_file_that_changes_while_it_is_read_is_refused(opened, file):
    path = file(TEXT)
    batches = opened(path).rows("train")
    path.write_bytes(TEXT + b"1,2,2\n")
    os.utime(path, ns=(0, 0))
    source = opened(path)
    source.description()
    with pytest.raises(DataError, match="was changed while it was read"):
        _read_and_touch(source, path)
    del batches


def _read_and_touch(source: CsvFiles, path) -> None:
    for _ in source.rows("train"):
        os.utime(path, ns=(1, 1))
