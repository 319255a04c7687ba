"""Event logs as Spark writes them: made events, and the forms that bytes can have."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from models.event_files import BLOCK

RECORDED = Path(__file__).parent.parent / "data" / "recorded"
GD = "treeAggregate at GradientDescent.scala:247"
L_BFGS = "treeAggregate at LBFGS.scala:261"
COUNT = "count at GradientDescent.scala:217"
START = {"Event": "SparkListenerLogStart", "Spark Version": "3.5.1"}


def application(name: str = "theirs", *, at: int = 0) -> dict[str, Any]:
    return {"Event": "SparkListenerApplicationStart", "App Name": name, "App ID": "app-1", "Timestamp": at}


def application_end(*, at: int) -> dict[str, Any]:
    return {"Event": "SparkListenerApplicationEnd", "Timestamp": at}


def environment(**spark: str) -> dict[str, Any]:
    named = {key.replace("_", "."): value for key, value in spark.items()}
    return {
        "Event": "SparkListenerEnvironmentUpdate",
        "JVM Information": {"Java Version": "17.0.1"},
        "Spark Properties": named,
    }


def added(executor: str, *, cores: int = 1, at: int = 0) -> dict[str, Any]:
    info = {"Total Cores": cores, "Host": f"node-{executor}"}
    return {
        "Event": "SparkListenerExecutorAdded",
        "Timestamp": at,
        "Executor ID": executor,
        "Executor Info": info,
    }


def removed(executor: str, *, at: int = 0, why: str = "") -> dict[str, Any]:
    return {"Event": "SparkListenerExecutorRemoved", "Timestamp": at, "Executor ID": executor, "Removed Reason": why}


def started(number: int, *, stage: int, name: str, at: int, group: str | None = "g", tasks: int = 1) -> dict[str, Any]:
    return {
        "Event": "SparkListenerJobStart",
        "Job ID": number,
        "Submission Time": at,
        "Stage Infos": [{"Stage ID": stage, "Stage Name": name, "Number of Tasks": tasks}],
        "Properties": {} if group is None else {"spark.jobGroup.id": group},
    }


def task(
    stage: int, *, at: int = 0, until: int = 0, executor: str = "0", index: int = 0, cpu: int = 0, **metrics: int
) -> dict[str, Any]:
    """`metrics` in milliseconds: run, deserialize, serialize, gc, wait; getting is when the result was fetched."""
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Stage Attempt ID": 0,
        "Task Info": {
            "Index": index,
            "Launch Time": at,
            "Finish Time": until,
            "Executor ID": executor,
            "Getting Result Time": metrics.get("getting", 0),
            "Locality": "NODE_LOCAL",
            "Failed": False,
            "Accumulables": [{"ID": 1, "Name": "ignored", "Update": "7"}],
        },
        "Task Metrics": {
            "Executor Deserialize Time": metrics.get("deserialize", 0),
            "Executor Deserialize CPU Time": 0,
            "Executor Run Time": metrics.get("run", 0),
            "Executor CPU Time": cpu,
            "JVM GC Time": metrics.get("gc", 0),
            "Result Serialization Time": metrics.get("serialize", 0),
            "Shuffle Read Metrics": {"Fetch Wait Time": metrics.get("wait", 0), "Remote Bytes Read": 3},
            "Input Metrics": {"Bytes Read": 5},
        },
    }


def ended(number: int, *, at: int, failure: str | None = None) -> dict[str, Any]:
    result: dict[str, Any] = {"Result": "JobSucceeded"}
    if failure is not None:
        result = {"Result": "JobFailed", "Exception": {"Message": failure, "Stack Trace": []}}
    return {"Event": "SparkListenerJobEnd", "Job ID": number, "Completion Time": at, "Job Result": result}


def unpersisted() -> dict[str, Any]:
    return {"Event": "SparkListenerUnpersistRDD", "RDD ID": 3}


def job(number: int, *, name: str, at: int, until: int, group: str | None = "g") -> list[dict[str, Any]]:
    """One with one task, which takes all of its time."""
    return [
        started(number, stage=number, name=name, at=at, group=group),
        task(number, at=at, until=until, run=until - at),
        ended(number, at=until),
    ]


def gd_fit(passes: int, *, first: int = 0, at: int = 1000, group: str | None = "g") -> list[dict[str, Any]]:
    """A count and then passes of a second each, half a second apart."""
    events = job(first, name=COUNT, at=at, until=at + 200, group=group)
    for number in range(passes):
        begin = at + 1000 + 1500 * number
        events += job(first + 1 + number, name=GD, at=begin, until=begin + 1000, group=group)
    return events


def whole(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """An application with one executor of one core around these."""
    return [START, application(), environment(), added("0"), *events]


def lines(events: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events)


def zstd_frames(data: bytes, *, size: int = 1 << 14) -> bytes:
    """A frame after each flush."""
    return b"".join(_arrow(data[start : start + size], "zstd") for start in range(0, len(data), size))


def lz4_frame(data: bytes) -> bytes:
    return _arrow(data, "lz4")


def lz4_blocks(data: bytes, *, size: int = 1 << 13, level: int = 5) -> bytes:
    """Blocks as LZ4BlockOutputStream has them, stored where compression gains nothing; two streams of them."""
    codec, found = pa.Codec("lz4_raw"), b""
    for start in range(0, len(data), size):
        plain = data[start : start + size]
        packed = codec.compress(plain, asbytes=True)
        method, block = (0x20, packed) if len(packed) < len(plain) else (0x10, plain)
        found += BLOCK.pack(b"LZ4Block", method | level, len(block), len(plain), 0) + block
        if start == size:
            found += BLOCK.pack(b"LZ4Block", 0x10 | level, 0, 0, 0)
    return found + BLOCK.pack(b"LZ4Block", 0x10 | level, 0, 0, 0)


def gzip_members(data: bytes) -> bytes:
    half = len(data) // 2
    return gzip.compress(data[:half]) + gzip.compress(data[half:])


def _arrow(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".zstd": zstd_frames,
    ".lz4": lz4_blocks,
    ".gz": gzip_members,
    ".lz4-frame": lz4_frame,
}
