"""What a fit's rows took, from the lines of an event log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bench.fractions import Kept, _kept

FIT, NEXT = (f"mllib-mlp-784-64-10-gd-1x2-0123456{digit}-t2-a1" for digit in "78")


def line(event: str, **about: Any) -> bytes:
    return json.dumps({"Event": f"SparkListener{event}", **about}).encode()


def block(name: str, memory: int, disk: int) -> bytes:
    return line("BlockUpdated", **{"Block Updated Info": {"Block ID": name, "Memory Size": memory, "Disk Size": disk}})


def job(group: str, *during: bytes) -> Iterator[bytes]:
    yield line("JobStart", Properties={"spark.jobGroup.id": group})
    yield from during
    yield line("JobEnd")


def test_blocks_are_counted_as_they_were_at_the_end_of_a_fit() -> None:
    """The first block left memory for the disk when the second came; Spark tells of one's end by that of its RDD."""
    spilled = line("TaskEnd", **{"Task Metrics": {"Disk Bytes Spilled": 7}})
    lines = [
        line("ApplicationStart"),
        *job(FIT, block("rdd_1_0", 100, 0), block("broadcast_1", 50, 0), spilled),
        *job(FIT, block("rdd_1_0", 0, 60), block("rdd_1_1", 100, 0), spilled),
        line("UnpersistRDD", **{"RDD ID": 1}),
        *job("blas"),
        *job(NEXT, block("rdd_9_0", 30, 0)),
    ]
    assert dict(_kept(lines)) == {
        FIT: Kept(in_memory=100, on_disk=60, spilled=14),
        NEXT: Kept(in_memory=30, on_disk=0, spilled=0),
    }
