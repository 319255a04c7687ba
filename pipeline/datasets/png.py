"""PNG, as image sets of a package registry come: 8 bits of red, green and blue, of a size that is known before."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from store.errors import DataError

LARGEST_BYTES = 64 << 20
START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
HEADER_END = len(START) + 13 + 4
RGB = 2


def read_png(path: Path, *, width: int, height: int) -> NDArray[np.uint8]:
    """height x width x 3. The size is looked at before anything is unpacked, so that no file can ask for more."""
    from PIL import Image

    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > LARGEST_BYTES:
        raise DataError(f"{path} has more than {LARGEST_BYTES} bytes")
    header = data[len(START) : len(START) + 13]
    if not data.startswith(START) or len(header) < 13:
        raise DataError(f"{path} is not a PNG file")
    if struct.unpack(">IIBBBBB", header) != (width, height, 8, RGB, 0, 0, 0):
        shown = "{} x {} of {} bits, colour type {}, compression {}, filter {}, interlace {}"
        raise DataError(
            f"{path} is {shown.format(*struct.unpack('>IIBBBBB', header))}; expected is "
            f"{shown.format(width, height, 8, RGB, 0, 0, 0)}"
        )
    try:
        with Image.open(io.BytesIO(_pixels_only(data)), formats=["PNG"]) as picture:
            pixels = np.asarray(picture)
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, struct.error, zlib.error) as error:
        # SyntaxError is what Pillow raises for a chunk that is broken.
        raise DataError(f"{path} is damaged or cut off: {error}") from None
    if pixels.shape != (height, width, 3):
        raise DataError(f"{path} is {pixels.shape}, not {(height, width, 3)}")
    return pixels


def _pixels_only(data: bytes) -> bytes:
    """Without what else a PNG may hold, as texts, profiles, frames or another header: nothing of it is unpacked."""
    view, at = memoryview(data), HEADER_END
    kept = [view[:at]]
    while at + 8 <= len(view):
        length, kind = struct.unpack_from(">I4s", view, at)
        if kind in (b"IDAT", b"IEND"):
            kept.append(view[at : at + 12 + length])
        at += 12 + length
    return b"".join(kept)
