"""IDX, the format that MNIST and its relatives come in: a header with the sizes, then bytes."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from store.errors import DataError

UNSIGNED_BYTES = 0x08
LARGEST_BYTES = 1 << 30
BLOCK = 1 << 20


def read_idx_file(path: Path) -> NDArray[np.uint8]:
    """A file, plain or gzip."""
    try:
        with path.open("rb") as file:
            if file.peek(2)[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=file) as unpacked:
                    return read_idx(cast(IO[bytes], unpacked), name=str(path))
            return read_idx(file, name=str(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def read_idx(file: IO[bytes], *, name: str) -> NDArray[np.uint8]:
    """The array of a stream. What the header promises is believed only as far as the bytes are there."""
    try:
        magic = file.read(4)
        if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] != UNSIGNED_BYTES or magic[3] not in (1, 2, 3):
            raise DataError(f"{name} is not an IDX file of bytes: it starts with {magic.hex(' ') or 'nothing'}")
        header = file.read(4 * magic[3])
        if len(header) < 4 * magic[3]:
            raise DataError(f"{name} ends in its header, after {4 + len(header)} bytes of {4 + 4 * magic[3]}")
        shape = struct.unpack(f">{magic[3]}I", header)
        promised = math.prod(shape)
        if promised > LARGEST_BYTES:
            raise DataError(f"{name}: the header promises {promised} bytes; at most {LARGEST_BYTES} are read")
        content = bytearray()
        while len(content) <= promised and (block := file.read(min(BLOCK, promised + 1 - len(content)))):
            content += block
    except (EOFError, zlib.error) as error:
        raise DataError(f"{name} is damaged or cut off: {error}") from None
    if len(content) != promised:
        found = "more follow" if len(content) > promised else f"{len(content)} are there"
        raise DataError(f"{name}: the header promises {promised} bytes after it, but {found}")
    return np.frombuffer(content, np.uint8).reshape(shape)
