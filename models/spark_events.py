"""What is read of Spark's events, by Spark's own names: the fields that are needed, of Spark 3 and 4 alike."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from models.event_files import LONGEST_LINE_BYTES
from store.errors import DataError

EVENT = re.compile(rb'\s*\{\s*"Event"\s*:\s*"(?:SparkListener)?([\w.$]*)"')


class LogStart(Struct):
    spark_version: str = field(name="Spark Version", default="")


class ApplicationStart(Struct):
    name: str = field(name="App Name", default="")
    id: str | None = field(name="App ID", default=None)
    at: int = field(name="Timestamp", default=0)


class ApplicationEnd(Struct):
    at: int = field(name="Timestamp", default=0)


class EnvironmentUpdate(Struct):
    spark: dict[str, Any] = field(name="Spark Properties", default_factory=dict)
    jvm: dict[str, Any] = field(name="JVM Information", default_factory=dict)


class ExecutorInfo(Struct):
    cores: int = field(name="Total Cores")
    host: str = field(name="Host", default="")


class ExecutorAdded(Struct):
    executor: str = field(name="Executor ID")
    info: ExecutorInfo = field(name="Executor Info")
    at: int = field(name="Timestamp", default=0)


class ExecutorRemoved(Struct):
    executor: str = field(name="Executor ID")
    at: int = field(name="Timestamp", default=0)
    reason: str = field(name="Removed Reason", default="")


class StageInfo(Struct):
    stage: int = field(name="Stage ID")
    name: str = field(name="Stage Name", default="")
    tasks: int = field(name="Number of Tasks", default=0)


class JobProperties(Struct):
    group: str | None = field(name="spark.jobGroup.id", default=None)


class JobStart(Struct):
    job: int = field(name="Job ID")
    at: int = field(name="Submission Time")
    stages: list[StageInfo] = field(name="Stage Infos", default_factory=list)
    properties: JobProperties | None = field(name="Properties", default=None)


class JobException(Struct):
    message: str = field(name="Message", default="")


class JobResult(Struct):
    result: str = field(name="Result")
    exception: JobException | None = field(name="Exception", default=None)


class JobEnd(Struct):
    job: int = field(name="Job ID")
    at: int = field(name="Completion Time")
    result: JobResult = field(name="Job Result")


class TaskInfo(Struct):
    """Milliseconds of the driver's clock."""

    index: int = field(name="Index", default=0)
    launched: int = field(name="Launch Time", default=0)
    finished: int = field(name="Finish Time", default=0)
    getting_result: int = field(name="Getting Result Time", default=0)  # when it began; 0: the result came along
    executor: str = field(name="Executor ID", default="")
    locality: str = field(name="Locality", default="")
    failed: bool = field(name="Failed", default=False)
    killed: bool = field(name="Killed", default=False)


class ShuffleRead(Struct):
    wait: int = field(name="Fetch Wait Time", default=0)  # milliseconds
    remote_bytes: int = field(name="Remote Bytes Read", default=0)
    local_bytes: int = field(name="Local Bytes Read", default=0)


class ShuffleWrite(Struct):
    nanoseconds: int = field(name="Shuffle Write Time", default=0)


class Input(Struct):
    bytes: int = field(name="Bytes Read", default=0)


class TaskMetrics(Struct):
    """Milliseconds of the executor, where no other unit is named."""

    deserialize: int = field(name="Executor Deserialize Time", default=0)
    deserialize_cpu_nanoseconds: int = field(name="Executor Deserialize CPU Time", default=0)
    run: int = field(name="Executor Run Time", default=0)
    cpu_nanoseconds: int = field(name="Executor CPU Time", default=0)
    gc: int = field(name="JVM GC Time", default=0)
    serialize_result: int = field(name="Result Serialization Time", default=0)
    input: Input | None = field(name="Input Metrics", default=None)
    shuffle_read: ShuffleRead | None = field(name="Shuffle Read Metrics", default=None)
    shuffle_write: ShuffleWrite | None = field(name="Shuffle Write Metrics", default=None)


class TaskEndReason(Struct):
    """Success has nothing but its name."""

    class_name: str = field(name="Class Name", default="")
    description: str = field(name="Description", default="")
    loss: str = field(name="Loss Reason", default="")  # of the task's executor


class TaskEnd(Struct):
    stage: int = field(name="Stage ID")
    attempt: int = field(name="Stage Attempt ID", default=0)
    reason: TaskEndReason | None = field(name="Task End Reason", default=None)
    info: TaskInfo = field(name="Task Info", default_factory=TaskInfo)
    metrics: TaskMetrics | None = field(name="Task Metrics", default=None)


class UnpersistRDD(Struct):
    """How a fit lets go of the rows it cached."""


KINDS: tuple[type[Struct], ...] = (
    LogStart,
    ApplicationStart,
    ApplicationEnd,
    EnvironmentUpdate,
    ExecutorAdded,
    ExecutorRemoved,
    JobStart,
    JobEnd,
    TaskEnd,
    UnpersistRDD,
)
DECODERS = {kind.__name__.encode(): msgspec.json.Decoder(kind) for kind in KINDS}


def decode(file: Path, number: int, line: bytes) -> Struct | None:
    """The event of a line; None of one that is not needed, which is not even parsed."""
    match = EVENT.match(line)
    if match is None:
        if line.isspace() or not line:
            return None
        raise DataError(f"{file} line {number}: {_shown(line)} begins no event; is this Spark's event log?")
    decoder = DECODERS.get(match[1])
    if decoder is None:
        return None
    if len(line) >= LONGEST_LINE_BYTES:
        raise DataError(f"{file} line {number}: an event of more than {LONGEST_LINE_BYTES >> 20} MiB; it is damaged")
    try:
        return decoder.decode(line)
    except RecursionError:
        raise DataError(f"{file} line {number}: the event is nested too deeply; it is damaged") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise DataError(f"{file} line {number}: the event is damaged ({error})") from None


def _shown(line: bytes) -> str:
    return ascii(line[:40].decode("utf-8", "replace"))
