"""Rows as Spark keeps MLlib's vectors in Parquet: executors read them without Python or conversion."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from models.dataset import Dataset

BLOCK_ROWS = 4096
SPARSE, DENSE = 0, 1  # VectorUDT's words

FEATURES = pa.struct(
    [
        pa.field("type", pa.int8(), nullable=False),
        pa.field("size", pa.int32()),
        pa.field("indices", pa.list_(pa.field("element", pa.int32(), nullable=False))),
        pa.field("values", pa.list_(pa.field("element", pa.float64(), nullable=False))),
    ]
)
SCHEMA = pa.schema([pa.field("label", pa.float64(), nullable=False), pa.field("features", FEATURES)])


def write_vectors(data: Dataset, *, fraction: float, partitions: int, create: Callable[[str], Any]) -> None:
    """A fraction of train as one file a partition, equal in rows to one; in float64, as MLlib computes.

    `create` opens a file to write to.
    """
    bounds = np.linspace(0, data.rows(fraction), partitions + 1).astype(int).tolist()
    for number, (start, stop) in enumerate(pairwise(bounds)):
        name = f"part-{number:05d}.parquet"
        with create(name) as file, pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
            for low in range(start, stop, BLOCK_ROWS):
                writer.write_batch(_batch(data, fraction, low, min(stop, low + BLOCK_ROWS)))


def _batch(data: Dataset, fraction: float, start: int, stop: int) -> pa.RecordBatch:
    features, labels = data.read_span(fraction, start, stop)
    values = data.values(features, "float64")
    is_set = values != 0.0
    # The rule of MLlib's own `Vector.compressed`. Pixels are zeros for the most part, and MLlib unfolds a sparse vector
    # where it stacks rows to matrices: reading is all that they make shorter.
    is_sparse = 1.5 * (is_set.sum(axis=1) + 1.0) < data.columns
    kept = is_set | ~is_sparse[:, None]
    listed = is_set & is_sparse[:, None]
    vectors = pa.StructArray.from_arrays(
        [
            pa.array(np.where(is_sparse, SPARSE, DENSE).astype(np.int8)),
            pa.array(np.full(stop - start, data.columns, np.int32), mask=~is_sparse),
            pa.ListArray.from_arrays(
                _offsets(listed),
                pa.array(np.nonzero(listed)[1].astype(np.int32)),
                type=FEATURES.field("indices").type,
                mask=pa.array(~is_sparse),
            ),
            pa.ListArray.from_arrays(_offsets(kept), pa.array(values[kept]), type=FEATURES.field("values").type),
        ],
        fields=list(FEATURES),
    )
    return pa.RecordBatch.from_arrays([pa.array(labels.astype(np.float64)), vectors], schema=SCHEMA)


def _offsets(chosen: np.ndarray) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int32))
