"""The PNG reader on files that Pillow wrote, and on whatever else may lie there."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from pipeline.datasets import png
from pipeline.datasets.png import read_png
from store.errors import DataError

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 8, 3), np.uint8)


def encoded(pixels: np.ndarray = PIXELS, mode: str | None = None) -> bytes:
    file = io.BytesIO()
    picture = Image.fromarray(pixels)
    (picture.convert(mode) if mode else picture).save(file, "PNG")
    return file.getvalue()


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.png"


def test_a_picture_reads_back(file):
    file.write_bytes(encoded())
    assert np.array_equal(read_png(file, width=8, height=5), PIXELS)


@pytest.mark.parametrize("kind", range(5), ids=["none", "sub", "up", "average", "paeth"])
def test_each_of_the_format_s_filters_is_undone(file, kind):
    """Written here by the format's own definition, so that reader and writer are not one library."""
    rows = np.zeros((6, 9, 3), int)
    rows[1:, 1:] = PIXELS
    here, left, up, corner = rows[1:, 1:], rows[1:, :-1], rows[:-1, 1:], rows[:-1, :-1]
    guess = left + up - corner
    nearest = np.argmin(np.abs([guess - left, guess - up, guess - corner]), axis=0)
    predicted = [np.zeros_like(here), left, up, (left + up) // 2, np.choose(nearest, [left, up, corner])][kind]
    lines = b"".join(bytes([kind]) + line.astype(np.uint8).tobytes() for line in (here - predicted) % 256)
    header = struct.pack(">IIBBBBB", 8, 5, 8, 2, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    file.write_bytes(start + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
    assert np.array_equal(read_png(file, width=8, height=5), PIXELS)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "a.png is not a PNG file"),
        (b"\xff\xd8\xff\xe0 a photograph", "a.png is not a PNG file"),
        (encoded()[:20], "a.png is not a PNG file"),
        (encoded()[:-30], "a.png is damaged or cut off"),
        (encoded()[:60] + b"\0" + encoded()[61:], "a.png is damaged or cut off"),
        (encoded(np.zeros((5, 9, 3), np.uint8)), "a.png is 9 x 5 of 8 bits, colour type 2,.* expected is 8 x 5 of 8"),
        (encoded(mode="L"), "a.png is 8 x 5 of 8 bits, colour type 0"),
        (encoded(mode="RGBA"), "a.png is 8 x 5 of 8 bits, colour type 6"),
    ],
)
def test_what_is_wrong_is_said(file, data, sentence):
    file.write_bytes(data)
    with pytest.raises(DataError, match=sentence):
        read_png(file, width=8, height=5)


def test_a_header_that_promises_a_huge_picture_is_not_believed(file):
    huge = struct.pack(">II", 1 << 30, 1 << 30)
    file.write_bytes(encoded()[:16] + huge + encoded()[24:])
    with pytest.raises(DataError, match="1073741824 x 1073741824"):
        read_png(file, width=8, height=5)


def test_a_second_header_and_other_chunks_are_not_looked_at(file):
    second = chunk(b"IHDR", struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 2, 0, 0, 0))
    bomb = chunk(b"zTXt", b"comment\0\0" + zlib.compress(bytes(1 << 24)))
    file.write_bytes(encoded()[:33] + second + bomb + chunk(b"acTL", bytes(8)) + encoded()[33:])
    assert np.array_equal(read_png(file, width=8, height=5), PIXELS)


def test_a_file_that_is_missing_or_too_large(file, monkeypatch):
    with pytest.raises(DataError, match=r"a.png cannot be read: No such file"):
        read_png(file, width=8, height=5)
    file.write_bytes(encoded())
    monkeypatch.setattr(png, "LARGEST_BYTES", 10)
    with pytest.raises(DataError, match=r"a.png has more than 10 bytes"):
        read_png(file, width=8, height=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=60),
        st.binary(max_size=60).map(lambda data: encoded()[:33] + data),
        st.tuples(st.integers(0, len(encoded()) - 1), st.integers(0, 255)).map(
            lambda change: encoded()[: change[0]] + bytes([change[1]]) + encoded()[change[0] + 1 :]
        ),
        st.tuples(st.sampled_from([b"zTXt", b"iCCP", b"tRNS", b"PLTE", b"acTL", b"fcTL", b"eXIf"]), st.binary()).map(
            lambda odd: encoded()[:33] + chunk(*odd) + encoded()[33:]
        ),
    )
)
def test_any_bytes_are_a_picture_or_a_sentence(file, data):
    file.write_bytes(data)
    try:
        found = read_png(file, width=8, height=5)
    except DataError:
        return
    assert found.shape == (5, 8, 3)
