"""A part of packed rows as Parquet: compressed where that makes them much smaller, else as they are."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from models.row_groups import FEATURES, LABEL

CODEC, LEVEL = "zstd", 1
WORTH_COMPRESSING = 0.75  # of the bytes as they are: less is lost again whenever they are read

Group = tuple[NDArray[np.uint8], NDArray[np.int64]]  # rows as the bytes they are kept in, and their labels


class PartWriter:
    """Of rows that are `width` bytes each, in groups; the first of them says how all are kept."""

    def __init__(self, sink: Any, *, width: int) -> None:
        self._sink = sink
        self._type = pa.binary(width)
        self._schema = pa.schema([(FEATURES, self._type), (LABEL, pa.int64())])
        self._stack = ExitStack()
        self._writer: pq.ParquetWriter | None = None

    def write(self, group: Group) -> None:
        features, labels = group
        if self._writer is None:
            self._writer = self._stack.enter_context(self._opened(features))
        rows = pa.FixedSizeBinaryArray.from_buffers(self._type, len(labels), [None, pa.py_buffer(features)])
        batch = pa.record_batch([rows, pa.array(labels)], schema=self._schema)
        self._writer.write_batch(batch, row_group_size=len(labels))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def _opened(self, features: NDArray[np.uint8]) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            self._sink,
            self._schema,
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
            **_form(features),
        )


def _form(features: NDArray[np.uint8]) -> dict[str, Any]:
    bare = pa.py_buffer(features)
    if pa.Codec(CODEC, compression_level=LEVEL).compress(bare).size <= WORTH_COMPRESSING * bare.size:
        return {"compression": CODEC, "compression_level": LEVEL}
    # One page for a group: that is in one piece then, and can be read at once.
    return {"compression": "none", "data_page_size": 2 * bare.size}
