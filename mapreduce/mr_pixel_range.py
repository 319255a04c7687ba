"""The smallest and largest value of every pixel, over all rows, as one line of JSON; the label is the last column."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from mrjob.protocol import StandardJSONProtocol, StandardJSONValueProtocol

from mapreduce.batch_job import BatchJob
from mapreduce.rows import Origin, Rows
from store.errors import DataError

Pair = tuple[Any, dict[str, Any]]


class MRPixelRange(BatchJob):
    INTERNAL_PROTOCOL = StandardJSONProtocol
    OUTPUT_PROTOCOL = StandardJSONValueProtocol
    JOBCONF: ClassVar[dict[str, str]] = {**BatchJob.JOBCONF, "mapreduce.job.reduces": "1"}

    def mapper_init(self) -> None:
        self.rows, self.minimum, self.maximum = 0, np.empty(0), np.empty(0)

    def prepare(self, rows: Rows) -> tuple[int, np.ndarray, np.ndarray]:
        return len(rows.labels), rows.features.min(axis=0), rows.features.max(axis=0)

    def mapper(self, _: None, batch: tuple[int, np.ndarray, np.ndarray]) -> None:
        rows, low, high = batch
        self.minimum = np.minimum(self.minimum, low) if self.rows else low
        self.maximum = np.maximum(self.maximum, high) if self.rows else high
        self.rows += rows

    def mapper_final(self) -> Iterator[Pair]:
        if self.rows:
            columns = {"minimum": _numbers(self.minimum), "maximum": _numbers(self.maximum)}
            yield "range", {"rows": self.rows, **columns, "origin": dataclasses.asdict(self.origin())}

    def reducer(self, _: str, ranges: Iterator[dict[str, Any]]) -> Iterator[Pair]:
        merged = next(ranges)
        for each in ranges:
            if len(each["minimum"]) != len(merged["minimum"]):
                here, there = (Origin(**part["origin"]).where(1) for part in (each, merged))
                widths = len(each["minimum"]) + 1, len(merged["minimum"]) + 1
                raise DataError(f"{here}: {widths[0]} columns, but {there} has {widths[1]}")
            merged["rows"] += each["rows"]
            merged["minimum"] = [*map(min, merged["minimum"], each["minimum"])]
            merged["maximum"] = [*map(max, merged["maximum"], each["maximum"])]
        yield None, {name: merged[name] for name in ("rows", "minimum", "maximum")}


def _numbers(values: np.ndarray) -> list[int | float]:
    """Whole numbers as such; JSON writes the others in the shortest text that reads back the same."""
    return [int(value) if value.is_integer() else value for value in values.astype(float).tolist()]


if __name__ == "__main__":
    MRPixelRange.run()
