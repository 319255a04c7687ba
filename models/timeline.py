"""When each task of an application ran, where, and what it read: the rows of a figure, and of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from models.critical_path import slots
from models.event_log import Job, read_event_log
from models.fits import epochs_of, fits
from models.outcome import EVENT_LOGS, OUTCOME, Outcome
from models.spark_events import TaskEnd

# Where the rows of a task lay. Spark does not say how many bytes came over the network, but where it put the task.
REMOTE = ("RACK_LOCAL", "ANY")
MILLIS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpan:
    """Times in seconds since the application began."""

    executor: str
    slot: int  # of its executor; Spark names none, so the lowest that was free
    launched: float
    ended: float
    job: int
    stage: int
    kind: str  # load | pass | other
    group: str | None  # of the fit that it belongs to
    epoch: int | None
    bytes_read: int  # of its input, be that a file or what is cached
    locality: str  # PROCESS_LOCAL | NODE_LOCAL | RACK_LOCAL | NO_PREF | ANY
    shuffle_local_bytes: int
    shuffle_remote_bytes: int
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What it took until the rows lay in the executors' memory."""

    group: str | None
    executors: int
    cores: int
    seconds: float  # of the jobs that read and cached the rows
    bytes_read: int
    remote_bytes_read: int | None  # by tasks that ran far from their rows; None: no task had a preference


def timeline(path: Path) -> list[TaskSpan]:
    """Every task of a log, by when it was launched.

    How many passes an epoch had, its outcome says beside the log of one of our trials. Elsewhere an epoch is a pass.
    """
    tasks: list[tuple[Job, TaskEnd]] = []
    application = read_event_log(path, listener=lambda job, task: tasks.append((job, task)))
    known = _passes_beside(path)
    tasks.sort(key=lambda pair: (pair[1].info.launched, pair[1].info.finished))
    kinds: dict[int, str] = {}
    epochs: dict[int, int] = {}
    groups: dict[int, str | None] = {}
    for fit in fits(application):
        kinds |= {job.number: "load" for job in fit.loading} | {job.number: "pass" for job in fit.passes}
        groups |= {job.number: fit.group for job in (*fit.loading, *fit.passes)}
        epochs |= epochs_of(fit, known.get(fit.group or ""))
    first = tasks[0][1].info.launched / MILLIS if tasks else 0.0
    began = first if application.began is None else application.began
    return [
        TaskSpan(
            executor=task.info.executor,
            slot=slot,
            launched=round(task.info.launched / MILLIS - began, 3),
            ended=round(task.info.finished / MILLIS - began, 3),
            job=job.number,
            stage=task.stage,
            kind=kinds.get(job.number, "other"),
            group=groups.get(job.number),
            epoch=epochs.get(job.number),
            locality=task.info.locality,
            failed=task.info.failed,
            **_bytes(task),
        )
        for (job, task), slot in zip(tasks, slots([task for _, task in tasks], room=application.room), strict=True)
    ]


def columns(spans: Iterable[TaskSpan]) -> dict[str, list[Any]]:
    """The same as columns, as polars and pyarrow take them."""
    names = [each.name for each in fields(TaskSpan)]
    rows = [astuple(span) for span in spans]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def loads(path: Path) -> list[Load]:
    """Of each fit in a log: seconds and bytes until its rows were cached, by how many executors there were."""
    of_job: dict[int, list[TaskEnd]] = {}
    application = read_event_log(path, listener=lambda job, task: of_job.setdefault(job.number, []).append(task))
    found = []
    for fit in fits(application):
        there = application.executors_at(fit.passes[0].began)
        tasks = [task for job in fit.loading for task in of_job.get(job.number, [])]
        placed = [task for task in tasks if task.info.locality != "NO_PREF"]
        found.append(
            Load(
                group=fit.group,
                executors=len(there),
                cores=sum(each.cores for each in there),
                seconds=round(sum((job.ended or job.began) - job.began for job in fit.loading), 3),
                bytes_read=sum(_bytes(task)["bytes_read"] for task in tasks),
                remote_bytes_read=sum(_bytes(task)["bytes_read"] for task in placed if task.info.locality in REMOTE)
                if placed
                else None,
            )
        )
    return found


def _bytes(task: TaskEnd) -> dict[str, int]:
    metrics = task.metrics
    shuffle = metrics.shuffle_read if metrics else None
    return {
        "bytes_read": metrics.input.bytes if metrics and metrics.input else 0,
        "shuffle_local_bytes": shuffle.local_bytes if shuffle else 0,
        "shuffle_remote_bytes": shuffle.remote_bytes if shuffle else 0,
    }


def _passes_beside(path: Path) -> dict[str, list[int]]:
    """Of the trial whose log this is, if it lies where a run has it."""
    beside = path.absolute().parent
    if beside.name != EVENT_LOGS or not (beside.parent / OUTCOME).is_file():
        return {}
    outcome = Outcome.decode((beside.parent / OUTCOME).read_bytes())
    counts = [record.passes for record in outcome.records if record.passes is not None]
    return {outcome.spec.slug: counts} if counts and outcome.records[0].clock == "eventlog" else {}
