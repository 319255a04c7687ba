"""Numbers from the driver's JVM through a file: Py4J would send pickled, base64 text, at megabytes a second."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUFFER_BYTES = 1 << 16


def doubles(java_array: Any, *, jvm: Any, folder: Path) -> NDArray[np.float64]:
    """What a `double[]` holds that Py4J knows by reference. Java's serialization puts a short header before it."""
    handle, name = tempfile.mkstemp(dir=folder, prefix="doubles.")
    os.close(handle)
    path = Path(name)
    try:
        file = jvm.java.io.BufferedOutputStream(jvm.java.io.FileOutputStream(name), BUFFER_BYTES)
        stream = jvm.java.io.ObjectOutputStream(file)
        try:
            stream.writeObject(java_array)
        finally:
            stream.close()
        return np.fromfile(path, dtype=">f8", offset=path.stat().st_size - 8 * len(java_array)).astype(np.float64)
    finally:
        path.unlink()
