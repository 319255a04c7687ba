"""Every fault of a row has its sentence, and whatever the bytes are, nothing but rows or that sentence comes out."""

import io
import math
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mapreduce import rows
from mapreduce.rows import Batch, Declared, Origin, byte_lines, parse, read_batches, scan
from store.errors import DataError

HERE = Origin(name="f.csv")
ANYTHING = Declared()
NUMBER = re.compile(rb"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")


def read(data: bytes, declared: Declared = ANYTHING, **options) -> tuple[list[list[float]], list[int]]:
    features, labels = [], []
    columns = declared.columns
    for batch in read_batches(io.BytesIO(data), origin=HERE, **options):
        columns = columns or rows.width(batch)
        found = parse(batch, Declared(**{**_fields(declared), "columns": columns}))
        features += found.features.tolist()
        labels += found.labels.tolist()
    return features, labels


def _fields(declared: Declared) -> dict:
    return {name: getattr(declared, name) for name in Declared.__slots__}


def reference(data: bytes) -> tuple[list[list[float]], list[int]] | None:
    """The same in plain Python; None where something is wrong."""
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = (data.removesuffix(b"\n") if data.endswith(b"\n") else data).split(b"\n") if data else []
    features, labels = [], []
    for line in lines:
        *cells, label = line.removeprefix(b"\xef\xbb\xbf").split(b",")
        if not cells or (features and len(cells) != len(features[0])):
            return None
        if not all(NUMBER.fullmatch(cell) and math.isfinite(float(cell)) for cell in cells):
            return None
        if not re.fullmatch(rb"[ \t]*[0-9]+[ \t]*", label) or len(label) > 4000 or int(label) > 2**31 - 1:
            return None
        features.append([float(cell) for cell in cells])
        labels.append(int(label))
    return features, labels


def test_whole_numbers_become_bytes_and_others_float64():
    whole = parse(Batch(data=b"0,255,3\n7,8,9\n", origin=HERE, line=1), Declared())
    assert whole.features.dtype == np.uint8
    assert whole.features.tolist() == [[0, 255], [7, 8]]
    assert whole.labels.tolist() == [3, 9]
    real = parse(Batch(data=b"0,256,3\n7,8.5,9\n", origin=HERE, line=1), Declared())
    assert real.features.dtype == np.float64
    assert real.features.tolist() == [[0, 256], [7, 8.5]]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"1,2,0\n1,2,3,0\n", "f.csv:2: 4 columns, but 3 are expected"),
        (b"1,2,0\n1,0\n", "f.csv:2: 2 columns, but 3 are expected"),
        (b"1,2,0\n1,2,3,4,0\n1,0\n", "f.csv:2: 5 columns, but 3 are expected"),
        (b"1,2,0\n\n1,2,0\n", "f.csv:2: the line is empty"),
        (b"1,2,0\n\r\r1,2,0\n", "f.csv:2: the line is empty"),
        (b"1,2,0\n1,2,0\n\n", "f.csv:3: the line is empty"),
        (b"1,2,0\n1,a,0\n", "f.csv:2: column 2 holds 'a', which is not a number"),
        (b"1,2,0\n1,,0\n", "f.csv:2: column 2 holds '', which is not a number"),
        (b"1,2,0\n0x1F,2,0\n", "f.csv:2: column 1 holds '0x1F', which is not a number"),
        (b'1,2,0\n"1",2,0\n', "f.csv:2: column 1 holds '\"1\"', which is not a number"),
        (b"1,2,0\n1_0,2,0\n", "f.csv:2: column 1 holds '1_0', which is not a number"),
        (b"1,2,0\n\xff\xfe,2,0\n", r"f.csv:2: column 1 holds '\\xff\\xfe', which is not a number"),
        (b"1,2,0\n" + b"a" * 99 + b",2,0\n", "f.csv:2: column 1 holds '" + "a" * 40 + "...', which is not a number"),
        (b"1,2,0\n1,nan,0\n", "f.csv:2: column 2 holds 'nan', but only finite numbers"),
        (b"nan,nan,0\n", "f.csv:1: column 1 holds 'nan', but only finite numbers"),
        (b"1,2,0\n-inf,2,0\n", "f.csv:2: column 1 holds '-inf', but only finite numbers"),
        (b"1,2,0\nInfinity,2,0\n", "f.csv:2: column 1 holds 'Infinity', but only finite numbers"),
        (b"1,2,0\n1e999,2,0\n", "f.csv:2: column 1 holds '1e999', which is too large"),
        (b"1,2,0\n1,2,\n", "f.csv:2: the label is missing"),
        (b"1,2,0\n1,2,x\n", "f.csv:2: the label 'x' is not a whole number of 0..9"),
        (b"1,2,0\n1,2,-1\n", "f.csv:2: the label '-1' is not a whole number of 0..9"),
        (b"1,2,0\n1,2,1.0\n", "f.csv:2: the label '1.0' is not a whole number of 0..9"),
        (b"1,2,0\n1,2,0x1\n", "f.csv:2: the label '0x1' is not a whole number of 0..9"),
        (b"1,2,0\n1,2,10\n", "f.csv:2: the label '10' is outside 0..9"),
        (b"1,2,0\n1,2," + b"9" * 5000 + b"\n", "f.csv:2: the label '" + "9" * 40 + "...' is outside 0..9"),
        (b"1,2,0\n1,256,0\n", "f.csv:2: column 2 holds '256', above the maximum of 255"),
        (b"1,2,0\n1,-1,0\n", "f.csv:2: column 2 holds '-1', below the minimum of 0"),
        (b"1,2,0\n1,255.5,0\n", "f.csv:2: column 2 holds '255.5', above the maximum of 255"),
        (b"1x1,1x2,label\n1,2,0\n", "f.csv:1: '1x1' is not a number; .* set yarnstick.csv.header = true"),
        (b"7\n", "f.csv:1: no comma"),
    ],
)
def test_the_first_bad_line_is_named(data, sentence):
    declared = Declared(classes=10, minimum=0, maximum=255)
    with pytest.raises(DataError, match=re.escape(sentence) if ".*" not in sentence else sentence):
        read(data, declared)


def test_a_label_that_stands_first_is_taken_from_there():
    declared = Declared(columns=2, classes=4, label_first=True)
    found = parse(Batch(data=b"3,1,2\n", origin=HERE, line=1), declared)
    assert (found.features.tolist(), found.labels.tolist()) == ([[1, 2]], [3])
    with pytest.raises(DataError, match=r"f.csv:1: column 3 holds 'x'"):
        parse(Batch(data=b"3,1,x\n", origin=HERE, line=1), declared)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize(
    "data",
    [
        b"1,2,0\r\n3,4,1\r\n",
        b"1,2,0\r3,4,1\r",
        b"1,2,0\r3,4,1",
        b"\xef\xbb\xbf1,2,0\n3,4,1\n",
        b"\xef\xbb\xbf1,2,0\r\n\xef\xbb\xbf3,4,1",
        b"1,2,0\n3,4,1",
    ],
)
def test_line_ends_and_byte_order_marks_make_no_difference(data, size):
    assert read(data, size=size) == ([[1, 2], [3, 4]], [0, 1])


@pytest.mark.parametrize("size", [1, 5, 64, 1 << 20])
def test_a_line_that_is_too_long_is_refused_wherever_it_stands(size):
    fine = b"1,2,0\n" * 3
    with pytest.raises(DataError, match=r"f.csv:4: the line is longer than 1024 bytes \(yarnstick.csv.longest"):
        read(fine + b"1," * 512 + b"1\n" + fine, longest_line_bytes=1024, size=size)
    as_long_as_may_be = b"0" * 1020 + b",2,0\n"
    assert len(read(fine + as_long_as_may_be, longest_line_bytes=1024, size=size)[1]) == 4


def test_a_line_without_end_is_read_no_further_than_the_limit():
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size=-1):
            self.given += size
            return b"7" * size

    file = Endless()
    with pytest.raises(DataError, match=r"f.csv:1: the line is longer than 1048576 bytes"):
        list(read_batches(file, origin=HERE, longest_line_bytes=1 << 20, size=1 << 16))
    assert file.given <= (1 << 20) + (2 << 16)


def test_an_empty_file_has_no_batch():
    assert list(read_batches(io.BytesIO(b""), origin=HERE)) == []


def test_a_header_is_left_out_and_counted():
    assert read(b"a,b,c\n1,2,0\n", header=True) == ([[1, 2]], [0])
    with pytest.raises(DataError, match=r"f.csv:2: column 1 holds 'x'"):
        read(b"a,b,c\nx,2,0\n", header=True, size=4)


def test_the_line_of_a_part_of_a_file_is_that_of_the_file(tmp_path):
    path = tmp_path / "whole.csv"
    path.write_bytes(b"1,2,0\r\n3,4,1\r5,6,0\n7,x,1\n")
    origin = Origin(name="whole.csv", path=str(path), start=13)
    (batch,) = read_batches(io.BytesIO(path.read_bytes()[13:]), origin=origin)
    with pytest.raises(DataError, match=r"whole.csv:4: column 2"):
        parse(batch, Declared())
    away = Batch(data=b"7,x,1\n", origin=Origin(name="hdfs://n/f", start=13), line=1)
    with pytest.raises(DataError, match="hdfs://n/f, line 1 from byte 13: column 2"):
        parse(away, Declared())


def test_lines_are_counted_alike_wherever_the_blocks_end(tmp_path, monkeypatch):
    path = tmp_path / "whole.csv"
    path.write_bytes(b"1,2,0\r\n3,4,1\r5,6,0\n\r\n7,x,1\n")
    for size in range(1, 12):
        monkeypatch.setattr(rows, "BATCH_BYTES", size)
        assert Origin(name="f", path=str(path), start=22).where(1) == "f:5"


def test_a_scan_takes_texts_for_labels():
    batch = Batch(data=b"1,2, cat \n0x,4,dog\n", origin=HERE, line=1)
    with pytest.raises(DataError, match=r"f.csv:2: column 1 holds '0x'"):
        scan(batch, Declared())
    assert scan(Batch(data=b"1,2, cat \n3,4,dog\n", origin=HERE, line=1), Declared()) == (2, {b"cat", b"dog"})
    with pytest.raises(DataError, match=r"f.csv:2: the label is missing"):
        scan(Batch(data=b"1,2,cat\n3,4,\n", origin=HERE, line=1), Declared())


def test_byte_lines_are_the_rows_as_text():
    pixels = np.arange(256, dtype=np.uint8).reshape(2, 128)
    lines = bytes(byte_lines(pixels, np.array([0, 1023])))
    assert read(lines) == (pixels.tolist(), [0, 1023])


CELLS = st.one_of(
    st.integers(0, 300).map(lambda value: b"%d" % value),
    st.floats().map(lambda value: repr(value).encode()),
    st.sampled_from(
        [b"", b" 5 ", b"\t7", b"+5", b"-0", b"1.", b".5", b".", b"1e5", b"1e", b"0x1F", b"nan", b"1e400", b"1e-400"]
    ),
    st.sampled_from([b"007", b"1_0", b"--1", b"5 5", b"9" * 30, b"\xef\xbb\xbf1", b'"1"', b"TRUE", b"\0", b"1\x0b"]),
)
LINES = st.lists(st.one_of(CELLS, st.binary(max_size=6)), min_size=1, max_size=4).map(b",".join)
FILES = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r", b""]))).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


@settings(max_examples=600)
@given(data=st.one_of(FILES, st.binary(max_size=40)), size=st.sampled_from([1, 3, 1 << 20]))
@example(data=b"1,2\n\n", size=1 << 20)
@example(data=b"\xef\xbb\xbf", size=1 << 20)
@example(data=b"1e-400,0\n", size=1 << 20)
@example(data=b"0,-0\n", size=1 << 20)
def test_any_bytes_are_rows_as_plain_python_reads_them_or_a_sentence(data, size):
    expected = reference(data)
    try:
        found = read(data, size=size)
    except DataError as error:
        found, said = None, str(error)
    else:
        said = ""
    assert found == expected, said
    assert "\n" not in said


@settings(max_examples=200)
@given(data=FILES)
def test_a_scan_refuses_what_is_no_row_and_nothing_else(data):
    def scanned() -> bool:
        columns = None
        for batch in read_batches(io.BytesIO(data), origin=HERE):
            columns = columns or rows.width(batch)
            scan(batch, Declared(columns=columns))
        return True

    texts = [line.split(b",")[-1] for line in data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")]
    if reference(data) is not None:
        assert scanned()
    elif all(re.fullmatch(rb"[ \t]*[0-9]{1,9}[ \t]*", text) for text in texts if text):
        with pytest.raises(DataError):
            scanned()
