"""Every pixel as (value - minimum) / (maximum - minimum), the label as it was; --range is what MRPixelRange found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar

from mrjob.protocol import BytesValueProtocol

from mapreduce.batch_job import BatchJob
from mapreduce.rows import Rows
from mapreduce.scaling import Scaling


class MRNormalize(BatchJob):
    OUTPUT_PROTOCOL = BytesValueProtocol
    # On Hadoop a file is one map, whose output is named like it: by itself Hadoop numbers parts by the size of their
    # input, and the order of the rows would be lost.
    HADOOP_OUTPUT_FORMAT = "org.apache.hadoop.mapred.lib.MultipleTextOutputFormat"
    JOBCONF: ClassVar[dict[str, str]] = {
        **BatchJob.JOBCONF,
        "stream.map.output.field.separator": ",",
        "mapred.outputformat.numOfTrailingLegs": "1",
        "mapreduce.input.fileinputformat.split.minsize": str(1 << 60),
    }

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
