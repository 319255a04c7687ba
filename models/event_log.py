"""Spark's event log as jobs: when each began and ended, what its tasks did, and which executors there were."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import Struct

from models import spark_events as spark
from models.critical_path import parts
from models.event_files import Lines, LogFiles

MOST_FAILURES = 100  # whose words are kept

# The job in which MLlib's solvers sum the gradient over all rows.
PASS = re.compile(r"treeAggregate at (LBFGS|GradientDescent|RDDLossFunction)\.scala")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Of one task, in Spark's words."""

    executor: str
    why: str


@dataclass(slots=True, kw_only=True)
class Job:
    """Times in seconds of the driver's wall clock."""

    number: int
    name: str
    group: str | None
    began: float
    ended: float | None = None
    succeeded: bool = False
    failure: str | None = None
    followed: bool = False  # by a job, by the release of cached rows, or by the application's end
    cpu_seconds: float = 0.0  # of its tasks, deserialisation included
    bytes_read: int = 0
    tasks: int = 0
    failures: list[Failure] = field(default_factory=list)  # of the first of these
    partitions: int | None = None  # tasks of its first stage
    parts: dict[str, float] = field(default_factory=dict)  # seconds by what they went to; once it has ended

    @property
    def is_pass(self) -> bool:
        return PASS.match(self.name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    name: str
    cores: int
    host: str
    added: float
    removed: float | None = None
    why: str = ""  # it was removed, in Spark's words

    def gone_by(self, moment: float) -> bool:
        return self.removed is not None and self.removed <= moment


@dataclass(slots=True, kw_only=True)
class Application:
    """What an event log tells so far."""

    id: str | None = None
    name: str = ""
    spark_version: str = ""
    java_version: str = ""
    began: float | None = None
    ended: float | None = None
    properties: dict[str, str] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    executors: list[Executor] = field(default_factory=list)  # all there ever were
    compacted: bool = False  # events of ended jobs may be missing
    cut: bool = False  # the last line is not whole

    def group(self, name: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.group == name]

    def executors_at(self, moment: float) -> list[Executor]:
        return [each for each in self.executors if each.added <= moment and not each.gone_by(moment)]

    @property
    def room(self) -> dict[str, int]:
        """How many tasks each executor can run at a time."""
        of_task = self.properties.get("spark.task.cpus", "1")
        cpus = int(of_task) if of_task.isdecimal() and int(of_task) else 1
        return {each.name: max(1, each.cores // cpus) for each in self.executors}

    @property
    def executor_cores(self) -> dict[str, int]:
        """Of those that are there."""
        return {each.name: each.cores for each in self.executors if each.removed is None}

    def losses(self, *, since: float) -> list[Executor]:
        """YARN may have given others for those that were lost before."""
        return [each for each in self.executors if each.removed is not None and each.removed >= since]


# Given each task of a job when it is read.
TaskListener = Callable[[Job, spark.TaskEnd], None]


def read_event_log(path: Path, *, listener: TaskListener | None = None) -> Application:
    """A whole log that is no longer written, in any of Spark's forms. Its tasks are kept no longer than their jobs."""
    log = LogFiles.at(path)
    lines = Lines(log)
    taken = _Events(listener)
    for file, number, line in lines:
        if (event := spark.decode(file, number, line)) is not None:
            taken.take(event)
    taken.application.compacted = log.compacted
    taken.application.cut = lines.cut
    return taken.application


class EventLog:
    """Reads a plain event log as it grows: each `read` goes on where the last one ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[Path, tuple[int, int]] = {}  # of each file bytes and lines
        self._events = _Events(None)

    @property
    def application(self) -> Application:
        return self._events.application

    def read(self) -> Application:
        for file in LogFiles.at(self._path).files:
            offset, number = self._read.get(file, (0, 0))
            with file.open("rb") as lines:
                lines.seek(offset)
                for line in lines:
                    if not line.endswith(b"\n"):
                        break  # still being written
                    offset, number = offset + len(line), number + 1
                    self._read[file] = offset, number
                    if (event := spark.decode(file, number, line)) is not None:
                        self._events.take(event)
        return self.application


class _Events:
    """Makes an application of events in their order."""

    def __init__(self, listener: TaskListener | None) -> None:
        self.application = Application()
        self._listener = listener
        self._stage_jobs: dict[int, int] = {}
        self._stage_tasks: dict[int, int] = {}  # how many a stage has
        self._tasks: dict[int, list[spark.TaskEnd]] = {}  # of the jobs that run
        self._last: Job | None = None

    def take(self, event: Struct) -> None:
        match event:
            case spark.TaskEnd():
                self._take_task(event)
            case spark.JobStart():
                self._begin(event)
            case spark.JobEnd():
                self._end(event)
            case spark.ExecutorAdded():
                self._add(event)
            case spark.ExecutorRemoved():
                self._remove(event)
            case _:
                self._take_fact(event)

    def _begin(self, event: spark.JobStart) -> None:
        self._follow()
        stages = sorted(event.stages, key=lambda stage: stage.stage)
        job = Job(
            number=event.job,
            name=stages[-1].name if stages else "",
            group=event.properties.group if event.properties else None,
            began=event.at / 1000,
            partitions=stages[0].tasks if stages else None,
        )
        self._last = self.application.jobs[event.job] = job
        self._tasks[event.job] = []
        for stage in stages:
            self._stage_jobs[stage.stage] = event.job
            self._stage_tasks[stage.stage] = stage.tasks

    def _end(self, event: spark.JobEnd) -> None:
        job = self.application.jobs.get(event.job)
        if job is None:
            return  # its beginning was dropped when the log was compacted
        job.ended = event.at / 1000
        job.succeeded = event.result.result == "JobSucceeded"
        if not job.succeeded:
            message = event.result.exception.message if event.result.exception else ""
            job.failure = (message.strip() or "no reason is given").splitlines()[0]
        tasks = self._tasks.pop(event.job, [])
        began = round(job.began * 1000)
        room = self.application.room
        spent = parts(tasks, room=room, began=began, ended=event.at, complete=self._has_all(tasks))
        job.parts = {part: milliseconds / 1000 for part, milliseconds in spent.items()}

    def _has_all(self, tasks: list[spark.TaskEnd]) -> bool:
        """A busy driver drops events: then nothing says what was between the others."""
        seen: dict[int, set[int]] = {}
        for task in tasks:
            seen.setdefault(task.stage, set()).add(task.info.index)
        return bool(seen) and all(len(indexes) >= self._stage_tasks[stage] for stage, indexes in seen.items())

    def _take_task(self, event: spark.TaskEnd) -> None:
        job = self.application.jobs.get(self._stage_jobs.get(event.stage, -1))
        if job is None:
            return
        job.tasks += 1
        if event.info.failed and event.reason is not None and len(job.failures) < MOST_FAILURES:
            said = event.reason.loss or f"{event.reason.class_name}: {event.reason.description}"
            job.failures.append(Failure(executor=event.info.executor, why=said))
        if event.metrics:
            nanoseconds = event.metrics.cpu_nanoseconds + event.metrics.deserialize_cpu_nanoseconds
            job.cpu_seconds += nanoseconds / 1e9
            job.bytes_read += event.metrics.input.bytes if event.metrics.input else 0
        if (running := self._tasks.get(job.number)) is not None:
            running.append(event)
        if self._listener is not None:
            self._listener(job, event)

    def _add(self, event: spark.ExecutorAdded) -> None:
        info = event.info
        executor = Executor(name=event.executor, cores=info.cores, host=info.host, added=event.at / 1000)
        self.application.executors.append(executor)

    def _remove(self, event: spark.ExecutorRemoved) -> None:
        for place, each in enumerate(self.application.executors):
            if each.name == event.executor and each.removed is None:
                self.application.executors[place] = replace(each, removed=event.at / 1000, why=event.reason)

    def _take_fact(self, event: Struct) -> None:
        application = self.application
        match event:
            case spark.LogStart():
                application.spark_version = event.spark_version
            case spark.ApplicationStart():
                application.id, application.name = event.id, event.name
                application.began = event.at / 1000
            case spark.EnvironmentUpdate():
                application.properties |= {name: str(value) for name, value in event.spark.items()}
                application.java_version = str(event.jvm.get("Java Version", ""))
            case spark.ApplicationEnd():
                application.ended = event.at / 1000
                self._follow()
            case spark.UnpersistRDD():
                self._follow()

    def _follow(self) -> None:
        if self._last is not None and self._last.ended is not None:
            self._last.followed = True
