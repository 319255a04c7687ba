"""Spark's event log: which jobs a fit ran, and when each began and ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from store.errors import DataError

# The job in which MLlib's solvers sum the gradient over all rows.
PASS = re.compile(r"treeAggregate at (?:LBFGS|GradientDescent)\.scala")
WANTED = re.compile(rb'^\{"Event":"SparkListener(?:JobStart|JobEnd|TaskEnd|ExecutorAdded|ExecutorRemoved)"')


@dataclass(slots=True, kw_only=True)
class Job:
    """Times in seconds of the driver's wall clock."""

    number: int
    name: str
    group: str | None
    began: float
    ended: float | None = None
    succeeded: bool = False
    cpu_seconds: float = 0.0  # of its tasks, deserialisation included
    bytes_read: int = 0
    tasks: int = 0
    failed_tasks: int = 0

    @property
    def is_pass(self) -> bool:
        return PASS.match(self.name) is not None


@dataclass(slots=True, kw_only=True)
class Application:
    """What an event log tells so far."""

    jobs: dict[int, Job] = field(default_factory=dict)
    executor_cores: dict[str, int] = field(default_factory=dict)  # of those that are there
    lost_executors: list[str] = field(default_factory=list)

    def group(self, name: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.group == name]


class EventLog:
    """Reads an event log as it grows: each `read` goes on where the last one ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: dict[Path, int] = {}
        self._stage_jobs: dict[int, int] = {}
        self.application = Application()

    def read(self) -> Application:
        for file in self._files():
            for event in self._new_events(file):
                self._take(event)
        return self.application

    def _files(self) -> list[Path]:
        if self._path.is_file():
            return [self._path]
        return sorted(self._path.glob("events_*"), key=lambda file: int(file.name.split("_")[1]))

    def _new_events(self, file: Path) -> Iterator[dict[str, Any]]:
        with file.open("rb") as lines:
            lines.seek(self._offsets.get(file, 0))
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # still being written
                self._offsets[file] = self._offsets.get(file, 0) + len(line)
                if WANTED.match(line):
                    try:
                        yield msgspec.json.decode(line)
                    except msgspec.DecodeError as error:
                        at = self._offsets[file]
                        raise DataError(f"{file}: the event that ends at byte {at} is damaged ({error})") from None

    def _take(self, event: dict[str, Any]) -> None:
        kind = event["Event"].removeprefix("SparkListener")
        if kind == "JobStart":
            stages = event["Stage Infos"]
            number = event["Job ID"]
            self.application.jobs[number] = Job(
                number=number,
                name=max(stages, key=lambda stage: stage["Stage ID"])["Stage Name"] if stages else "",
                group=event.get("Properties", {}).get("spark.jobGroup.id"),
                began=event["Submission Time"] / 1000,
            )
            for stage in stages:
                self._stage_jobs[stage["Stage ID"]] = number
        elif kind == "JobEnd":
            job = self.application.jobs[event["Job ID"]]
            job.ended = event["Completion Time"] / 1000
            job.succeeded = event["Job Result"]["Result"] == "JobSucceeded"
        elif kind == "TaskEnd":
            self._take_task(event)
        elif kind == "ExecutorAdded":
            self.application.executor_cores[event["Executor ID"]] = event["Executor Info"]["Total Cores"]
        elif kind == "ExecutorRemoved":
            self.application.executor_cores.pop(event["Executor ID"], None)
            self.application.lost_executors.append(event["Executor ID"])

    def _take_task(self, event: dict[str, Any]) -> None:
        job = self.application.jobs[self._stage_jobs[event["Stage ID"]]]
        job.tasks += 1
        job.failed_tasks += event["Task Info"]["Failed"]
        if metrics := event.get("Task Metrics"):
            job.cpu_seconds += (metrics["Executor CPU Time"] + metrics["Executor Deserialize CPU Time"]) / 1e9
            job.bytes_read += metrics["Input Metrics"]["Bytes Read"]
