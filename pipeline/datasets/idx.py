"""IDX, the format that MNIST and its relatives come in: a header with the sizes, then bytes."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from pipeline.datasets.images import Block, Layout
from pipeline.datasets.sources import Split
from store.errors import DataError

UNSIGNED_BYTES = 0x08
LARGEST_BYTES = 1 << 30
BLOCK = 1 << 20
SIDE = 28


def idx_layout(names: Mapping[Split, tuple[str, str]], *, inside: str = "", is_transposed: bool = False) -> Layout:
    """Images of 28 x 28 and their labels in files of their own, by the split that they are of."""

    def read(paths: Mapping[str, Path], split: Split) -> Iterator[Block]:
        images, labels = (paths[name] for name in names[split])
        read_labels = read_idx_file(labels)
        if read_labels.ndim != 1:
            raise DataError(f"{labels} is of {read_labels.shape}, but labels are a row of numbers")
        start = 0
        for pixels in read_idx_rows(images):
            if pixels.shape[1:] != (SIDE, SIDE):
                raise DataError(f"{images}: an image is {pixels.shape[1:]}, not {(SIDE, SIDE)}")
            if is_transposed:
                pixels = pixels.transpose(0, 2, 1)
            some = read_labels[start : start + len(pixels)]
            start += len(pixels)
            if len(some) != len(pixels):
                break
            yield Block(pixels.reshape(len(pixels), SIDE * SIDE), some)
        if start != len(read_labels):
            found = f"{start} or more" if start > len(read_labels) else f"{start}"
            raise DataError(f"{images} holds {found} images, but {labels} {len(read_labels)} labels")

    files = tuple(name for pair in names.values() for name in pair)
    return Layout(files=files, read=read, inside=inside)


def read_idx_file(path: Path) -> NDArray[np.uint8]:
    """A file, plain or gzip."""
    with _opened(path) as file:
        return read_idx(file, name=str(path))


def read_idx_rows(path: Path) -> Iterator[NDArray[np.uint8]]:
    """The same in blocks along the first axis. What the header promises is compared at the end."""
    with _opened(path) as file, _sentences(str(path)):
        shape = _shape(file, name=str(path))
        row_bytes = math.prod(shape[1:])
        if row_bytes == 0 or shape[0] == 0:
            raise DataError(f"{path} is of {shape}: it holds no byte")
        step = max(1, BLOCK // row_bytes)
        for content in _content(file, math.prod(shape), block=step * row_bytes, name=str(path)):
            yield np.frombuffer(content, np.uint8).reshape(-1, *shape[1:])


def read_idx(file: IO[bytes], *, name: str) -> NDArray[np.uint8]:
    """The array of a stream. What the header promises is believed only as far as the bytes are there."""
    with _sentences(name):
        shape = _shape(file, name=name)
        content = bytearray()
        for block in _content(file, math.prod(shape), block=BLOCK, name=name):
            content += block
    return np.frombuffer(content, np.uint8).reshape(shape)


def _shape(file: IO[bytes], *, name: str) -> tuple[int, ...]:
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] != UNSIGNED_BYTES or magic[3] not in (1, 2, 3):
        raise DataError(f"{name} is not an IDX file of bytes: it starts with {magic.hex(' ') or 'nothing'}")
    header = file.read(4 * magic[3])
    if len(header) < 4 * magic[3]:
        raise DataError(f"{name} ends in its header, after {4 + len(header)} bytes of {4 + 4 * magic[3]}")
    shape: tuple[int, ...] = struct.unpack(f">{magic[3]}I", header)
    if math.prod(shape) > LARGEST_BYTES:
        raise DataError(f"{name}: the header promises {math.prod(shape)} bytes; at most {LARGEST_BYTES} are read")
    return shape


def _content(file: IO[bytes], promised: int, *, block: int, name: str) -> Iterator[bytes]:
    """Exactly the bytes that are promised, in blocks of one size but for the last."""
    left = promised
    while left:
        content = bytearray()
        wanted = min(block, left)
        while len(content) < wanted and (part := file.read(wanted - len(content))):
            content += part
        if len(content) < wanted:
            found = promised - left + len(content)
            raise DataError(f"{name}: the header promises {promised} bytes after it, but {found} are there")
        left -= wanted
        yield bytes(content)
    if file.read(1):
        raise DataError(f"{name}: the header promises {promised} bytes after it, but more follow")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as file:
            if file.peek(2)[:2] == b"\x1f\x8b":
                with _sentences(str(path)), gzip.GzipFile(fileobj=file) as unpacked:
                    yield cast(IO[bytes], unpacked)
            else:
                yield file
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


@contextmanager
def _sentences(name: str) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{name} is damaged or cut off: {error}") from None
