"""IDX files: what the header promises is compared with what is there, byte for byte."""

import gzip
import io
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.datasets.idx import idx_layout, read_idx, read_idx_file, read_idx_rows
from store.errors import DataError

IMAGES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def encoded(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_reads_back(tmp_path, pack):
    (tmp_path / "images").write_bytes(pack(encoded(IMAGES)))
    assert np.array_equal(read_idx_file(tmp_path / "images"), IMAGES)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (encoded(IMAGES)[:-1], "promises 24 bytes after it, but 23 are there"),
        (encoded(IMAGES) + b"\0", "promises 24 bytes after it, but more follow"),
        (encoded(IMAGES)[:9], "ends in its header, after 9 bytes of 16"),
        (b"", "is not an IDX file of bytes: it starts with nothing"),
        (b"\x89PNG....", "is not an IDX file of bytes: it starts with 89 50 4e 47"),
        (b"\0\0\x0d\1" + bytes(8), "is not an IDX file of bytes"),
        (b"\0\0\x08\3" + b"\xff" * 12, "promises 79228162458924105385300197375 bytes; at most"),
    ],
)
def test_what_is_missing_is_counted(tmp_path, data, sentence):
    (tmp_path / "images").write_bytes(data)
    with pytest.raises(DataError, match=f"images.*{sentence}"):
        read_idx_file(tmp_path / "images")


def test_a_gzip_that_was_cut_off_is_refused(tmp_path):
    (tmp_path / "images.gz").write_bytes(gzip.compress(encoded(np.zeros((100, 28, 28), np.uint8)))[:-9])
    with pytest.raises(DataError, match=r"images.gz is damaged or cut off"):
        read_idx_file(tmp_path / "images.gz")
    (tmp_path / "images.gz").write_bytes(b"\x1f\x8bnonsense")
    with pytest.raises(DataError, match=r"images.gz"):
        read_idx_file(tmp_path / "images.gz")


def test_a_promise_of_a_gigabyte_takes_no_memory():
    with pytest.raises(DataError, match=f"promises {1 << 30} bytes after it, but 3 are there"):
        read_idx(io.BytesIO(b"\0\0\x08\1" + struct.pack(">I", 1 << 30) + b"abc"), name="labels")


@given(
    st.one_of(
        st.binary(max_size=40),
        st.tuples(st.integers(0, 4), st.binary(max_size=30)).map(lambda parts: bytes([0, 0, 8, parts[0]]) + parts[1]),
    )
)
def test_any_bytes_are_an_array_or_a_sentence(data):
    try:
        array = read_idx(io.BytesIO(data), name="f")
    except DataError:
        return
    assert encoded(array) == data


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=40),
        st.tuples(st.integers(0, 4), st.binary(max_size=30)).map(lambda parts: bytes([0, 0, 8, parts[0]]) + parts[1]),
        st.tuples(st.integers(1, 5), st.integers(1, 4)).map(lambda shape: encoded(np.ones(shape, np.uint8))),
        st.binary(max_size=40).map(gzip.compress),
    )
)
def test_read_in_blocks_any_bytes_are_the_same_array_or_a_sentence(tmp_path, data):
    (tmp_path / "f").write_bytes(data)
    try:
        array = read_idx_file(tmp_path / "f")
    except DataError:
        with pytest.raises(DataError):
            list(read_idx_rows(tmp_path / "f"))
        return
    if array.size:
        assert np.array_equal(np.concatenate(list(read_idx_rows(tmp_path / "f"))), array)


@pytest.mark.parametrize(
    ("images", "labels", "sentence"),
    [
        (3, 2, "images holds 3 or more images, but .*labels 2 labels"),
        (2, 3, "images holds 2 images, but .*labels 3 labels"),
    ],
)
def test_images_and_labels_are_as_many(tmp_path, images, labels, sentence):
    (tmp_path / "images").write_bytes(encoded(np.zeros((images, 28, 28), np.uint8)))
    (tmp_path / "labels").write_bytes(encoded(np.zeros(labels, np.uint8)))
    layout = idx_layout({"train": ("images", "labels"), "test": ("images", "labels")})
    found = {name: tmp_path / name for name in ("images", "labels")}
    with pytest.raises(DataError, match=sentence):
        list(layout.read(found, "train"))
    (tmp_path / "images").write_bytes(encoded(IMAGES))
    with pytest.raises(DataError, match=r"images: an image is \(3, 4\), not \(28, 28\)"):
        list(layout.read(found, "train"))
