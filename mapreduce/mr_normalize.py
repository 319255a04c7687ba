"""Every pixel as (value - minimum) / (maximum - minimum), the label as it was; --range is what MRPixelRange found."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mrjob.protocol import BytesValueProtocol

from mapreduce.batch_job import BatchJob
from mapreduce.rows import Rows
from mapreduce.scaling import Scaling


class MRNormalize(BatchJob):
    OUTPUT_PROTOCOL = BytesValueProtocol

    def configure_args(self) -> None:
        super().configure_args()
        self.add_file_arg("--range", help="range.json")
        self.add_passthru_arg("--scale", choices=("global", "pixel"), default="global")

    def mapper_init(self) -> None:
        with open(self.options.range, encoding="utf-8") as file:
            self.scaling = Scaling.of(json.load(file), scale=self.options.scale)
        self.options.columns = self.scaling.columns

    def prepare(self, rows: Rows) -> memoryview:
        return self.scaling.lines(rows)

    def mapper(self, _: None, lines: memoryview) -> Iterator[tuple[None, memoryview]]:
        yield None, lines


if __name__ == "__main__":
    MRNormalize.run()
