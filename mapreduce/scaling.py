"""How a pixel is scaled, and the text of the result: shared by the job that writes it and Pack, which reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mapreduce.rows import BYTES, MOST_LABEL_TEXTS, Rows, to_csv
from store.errors import DataError


@dataclass(slots=True, kw_only=True)
class Scaling:
    """The minimum and the span of each column; of all columns alike, where the scale is global."""

    columns: int
    minimum: NDArray[np.float64]  # one, or one each
    span: NDArray[np.float64]
    texts: pa.Array | None  # of every byte in every column that has a scale of its own, then of the labels

    @classmethod
    def of(cls, found: Mapping[str, Any], *, scale: str) -> Scaling:
        """From range.json."""
        minimum, maximum = (np.array(found[name], np.float64) for name in ("minimum", "maximum"))
        columns = len(minimum)
        if scale == "global":
            minimum, maximum = minimum.min(keepdims=True), maximum.max(keepdims=True)
        with np.errstate(over="ignore"):
            span = maximum - minimum
        if not np.isfinite(span).all():
            raise DataError(f"values from {minimum.min():g} to {maximum.max():g} lie too far apart to be scaled")
        scaling = cls(columns=columns, minimum=minimum, span=span, texts=None)
        every_byte = np.broadcast_to(np.arange(BYTES)[:, None], (BYTES, len(minimum)))
        values = scaling._scaled(every_byte)
        if not np.isfinite(values).all():
            return scaling
        cells = number_texts(values.T.reshape(-1))
        labels = pa.array([f"{label}\n" for label in range(MOST_LABEL_TEXTS)])
        scaling.texts = pa.concat_arrays([pc.binary_join_element_wise(cells, "", ","), labels])
        return scaling

    def scaled(self, features: NDArray[Any]) -> NDArray[np.float64]:
        values = self._scaled(features)
        if not np.isfinite(values).all():
            raise DataError("a value lies too far outside the range of the training rows to be scaled")
        return values

    def _scaled(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """A column that is constant in train becomes 0."""
        constant = self.span == 0
        with np.errstate(over="ignore"):
            values = (features - self.minimum) / np.where(constant, 1.0, self.span)
        if constant.any():
            values = np.where(constant, 0.0, values)
        return values

    def lines(self, rows: Rows) -> memoryview:
        """The scaled rows as CSV, the label last, without the newline at the end."""
        if self.texts is not None and rows.features.dtype == np.uint8 and rows.labels.max() < MOST_LABEL_TEXTS:
            return self._lines_of_bytes(rows)
        cells = np.column_stack([self.scaled(rows.features), rows.labels])
        count, width = cells.shape
        lists = pa.ListArray.from_arrays(
            np.arange(0, cells.size + 1, width, dtype=np.int32), number_texts(cells.reshape(-1))
        )
        lines = pa.ListArray.from_arrays(np.array([0, count], np.int32), pc.binary_join(lists, ","))
        return memoryview(pc.binary_join(lines, "\n")[0].as_buffer())

    def _lines_of_bytes(self, rows: Rows) -> memoryview:
        """Each byte has one text, or one in each column: the lines are looked up, not computed."""
        tables = BYTES * len(self.minimum)
        codes = np.empty((len(rows.labels), self.columns + 1), np.int32 if len(self.minimum) > 1 else np.uint16)
        codes[:, :-1] = np.ascontiguousarray(rows.features)
        if len(self.minimum) > 1:
            codes[:, :-1] += np.arange(0, tables, BYTES, dtype=np.int32)
        codes[:, -1] = rows.labels + tables
        return to_csv(codes, self.texts)[:-1]


def number_texts(values: NDArray[np.float64]) -> pa.Array:
    """The shortest text that reads back the same: as Python writes a float, but whole numbers without `.0`."""
    values = values + 0.0  # there is no -0 in the result
    texts = pa.array(values).cast(pa.string())
    size = np.abs(values)
    # Arrow and Python change to the exponent at different sizes.
    odd = ((size < 1e-4) & (size > 0)) | (size >= 1e10)
    if odd.any():
        texts = pc.replace_with_mask(texts, odd, [repr(value).removesuffix(".0") for value in values[odd].tolist()])
    return texts
