"""Spark's event log as it grows, as it is cut, and as it is damaged."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from models import spark_events
from models.event_log import Application, EventLog, Job, read_event_log
from store.errors import DataError
from tests.models.spark_logs import GD, RECORDED, added, ended, environment, lines, removed, started, task, whole


def written(path: Path, *events: dict[str, Any]) -> Path:
    path.write_bytes(lines(list(events)))
    return path


def test_jobs_with_their_times_and_their_tasks(tmp_path: Path) -> None:
    log = tmp_path / "eventlog_v2_app"
    log.mkdir()
    written(log / "events_1_app", started(0, stage=0, name=GD, at=1000), task(0, cpu=2_000_000_000))
    reader = EventLog(log)
    assert reader.read().jobs[0].ended is None
    with (log / "events_1_app").open("ab") as more:
        more.write(lines([task(0, cpu=500_000_000), ended(0, at=3500)]))
    job = reader.read().jobs[0]
    assert (job.began, job.ended, job.cpu_seconds, job.tasks, job.bytes_read) == (1.0, 3.5, 2.5, 2, 10)
    assert job.is_pass
    assert job.succeeded


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "app"
    text = lines([started(0, stage=0, name=GD, at=1000)])
    log.write_bytes(text[:40])
    reader = EventLog(log)
    assert reader.read().jobs == {}
    with log.open("ab") as more:
        more.write(text[40:])
    assert list(reader.read().jobs) == [0]


@pytest.mark.parametrize("read", [read_event_log, lambda path: EventLog(path).read()])
def test_a_damaged_event_names_the_file_and_the_line(tmp_path: Path, read: Any) -> None:
    log = tmp_path / "app"
    log.write_bytes(lines([added("0")]) + b'{"Event":"SparkListenerJobStart",,}\n')
    with pytest.raises(DataError, match=r"app line 2: the event is damaged \("):
        read(log)


def test_an_event_without_what_it_needs_is_damaged(tmp_path: Path) -> None:
    log = tmp_path / "app"
    log.write_bytes(b'{"Event":"SparkListenerJobStart","Job ID":"one"}\n')
    with pytest.raises(DataError, match=r"app line 1: the event is damaged \(Expected `int`, got `str`"):
        read_event_log(log)


def test_a_line_that_is_no_event_is_told(tmp_path: Path) -> None:
    log = tmp_path / "app"
    log.write_bytes(lines([added("0")]) + b"label,pixel0\n")
    with pytest.raises(DataError, match="app line 2: 'label,pixel0' begins no event"):
        read_event_log(log)


@pytest.mark.parametrize("deep", [b"[" * 200_000, b"[" * 200_000 + b"]" * 200_000, b'{"a":' * 200_000])
def test_deep_nesting_is_a_sentence(tmp_path: Path, deep: bytes) -> None:
    log = tmp_path / "app"
    log.write_bytes(b'{"Event":"SparkListenerTaskEnd","Stage ID":0,"x":' + deep + b"}\n")
    with pytest.raises(DataError, match="app line 1: the event is "):
        read_event_log(log)


def test_an_event_that_is_too_long_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_events, "LONGEST_LINE_BYTES", 1000)
    log = written(tmp_path / "app", environment(spark_x="y" * 2000))
    with pytest.raises(DataError, match="app line 1: an event of more than"):
        read_event_log(log)


def test_spaces_between_the_words_change_nothing(tmp_path: Path) -> None:
    log = tmp_path / "app"
    events = [started(0, stage=0, name=GD, at=1000), ended(0, at=2000)]
    log.write_text("".join(" " + json.dumps(event) + "\r\n\r\n" for event in events))
    assert read_event_log(log).jobs[0].ended == 2.0


def test_a_field_that_spark_3_does_not_write_is_not_needed(tmp_path: Path) -> None:
    """A failed task of an old version has no metrics; a job may have no properties."""
    start = started(0, stage=0, name=GD, at=1000) | {"Properties": None}
    end = {"Event": "SparkListenerTaskEnd", "Stage ID": 0, "Task Info": {"Failed": True}, "Task Metrics": None}
    job = read_event_log(written(tmp_path / "app", start, end, ended(0, at=2000))).jobs[0]
    assert (job.group, job.tasks, job.failures) == (None, 1, [])


def test_events_of_jobs_that_the_log_lacks_are_passed_over(tmp_path: Path) -> None:
    """Compaction drops a job's beginning."""
    log = written(tmp_path / "app", task(7), ended(7, at=3), started(8, stage=8, name=GD, at=5))
    assert list(read_event_log(log).jobs) == [8]


def test_lost_executors_are_remembered(tmp_path: Path) -> None:
    log = written(tmp_path / "app", added("0", cores=2))
    reader = EventLog(log)
    assert reader.read().executor_cores == {"0": 2}
    written(log, added("0", cores=2), removed("0", at=3000, why="Command exited with code 52"))
    seen = reader.read()
    assert seen.executor_cores == {}
    assert [each.name for each in seen.losses(since=0.0)] == ["0"]
    assert seen.losses(since=1e12) == []
    assert [executor.name for executor in seen.executors_at(2.0)] == ["0"]
    assert seen.executors_at(3.0) == []
    assert [executor.why for executor in seen.losses(since=0.0)] == ["Command exited with code 52"]


def test_tasks_that_failed_tell_why(tmp_path: Path) -> None:
    failed = []
    for index, reason in enumerate(
        (
            {
                "Reason": "ExceptionFailure",
                "Class Name": "java.lang.OutOfMemoryError",
                "Description": "Java heap space",
            },
            {"Reason": "ExecutorLostFailure", "Executor ID": "1", "Loss Reason": "Command exited with code 137"},
        )
    ):
        event = task(0, index=index, executor=str(index)) | {"Task End Reason": reason}
        event["Task Info"]["Failed"] = True
        failed.append(event)
    log = written(tmp_path / "app", started(0, stage=0, name=GD, at=0, tasks=2), *failed, task(0))
    job = read_event_log(log).jobs[0]
    assert [(each.executor, each.why) for each in job.failures] == [
        ("0", "java.lang.OutOfMemoryError: Java heap space"),
        ("1", "Command exited with code 137"),
    ]


def test_a_failed_job_tells_why(tmp_path: Path) -> None:
    log = written(tmp_path / "app", started(0, stage=0, name=GD, at=0), ended(0, at=1, failure="out of memory\nat X"))
    job = read_event_log(log).jobs[0]
    assert (job.succeeded, job.failure) == (False, "out of memory")


def test_the_recorded_log_is_read_whole() -> None:
    log = next(RECORDED.glob("trials/*-gd-*/eventlog/*"))
    application = read_event_log(log)
    assert (application.name, application.spark_version) == ("yarnstick", "4.3.0")
    assert application.executor_cores == {"0": 1, "1": 1}
    assert not application.cut
    groups = {job.group for job in application.jobs.values() if job.is_pass}
    assert groups == {folder.name for folder in (RECORDED / "trials").iterdir()}


LOG = lines(whole(started(0, stage=0, name=GD, at=1000), task(0, at=1010, until=1900, run=800), ended(0, at=2000)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(seed=st.integers(0, 1 << 32), changes=st.integers(1, 30))
@example(seed=0, changes=1)
def test_no_damage_ends_in_anything_but_a_sentence(tmp_path: Path, seed: int, changes: int) -> None:
    rng = random.Random(seed)
    damaged = bytearray(LOG)
    for _ in range(changes):
        place = rng.randrange(len(damaged))
        damaged[place : place + rng.choice((0, 1, 3))] = rng.choice(
            (b"", b"-", b"9" * 25, b"null", b'"', b"{", b"[]", b"\n", b"\xff", b"1e400", bytes([rng.randrange(256)]))
        )
    log = tmp_path / "app"
    log.write_bytes(bytes(damaged))
    found = read_or_refuse(log)
    if isinstance(found, str):
        assert "\n" not in found
    else:
        assert all(min(job.parts.values(), default=0) >= 0 for job in found.jobs.values() if lasted(job))


def read_or_refuse(log: Path) -> Application | str:
    try:
        return read_event_log(log)
    except DataError as error:
        return str(error)


def lasted(job: Job) -> bool:
    return job.ended is not None and job.ended >= job.began
