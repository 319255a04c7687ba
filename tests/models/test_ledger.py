"""Spark's event log as it grows, as it is cut, and as it is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.ledger import EventLog
from store.errors import DataError


def started(number: int, *, stage: int, name: str, at: int, group: str = "g") -> dict[str, Any]:
    return {
        "Event": "SparkListenerJobStart",
        "Job ID": number,
        "Submission Time": at,
        "Stage Infos": [{"Stage ID": stage, "Stage Name": name}],
        "Properties": {"spark.jobGroup.id": group},
    }


def task(stage: int, *, cpu: int) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task Info": {"Failed": False},
        "Task Metrics": {
            "Executor CPU Time": cpu,
            "Executor Deserialize CPU Time": 0,
            "Input Metrics": {"Bytes Read": 5},
        },
    }


def ended(number: int, *, at: int) -> dict[str, Any]:
    return {
        "Event": "SparkListenerJobEnd",
        "Job ID": number,
        "Completion Time": at,
        "Job Result": {"Result": "JobSucceeded"},
    }


def line(event: dict[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":")) + "\n"


PASS = "treeAggregate at GradientDescent.scala:247"


def test_jobs_with_their_times_and_their_tasks(tmp_path: Path) -> None:
    log = tmp_path / "eventlog_v2_app"
    log.mkdir()
    (log / "events_1_app").write_text(line(started(0, stage=0, name=PASS, at=1000)) + line(task(0, cpu=2_000_000_000)))
    reader = EventLog(log)
    assert reader.read().jobs[0].ended is None
    with (log / "events_1_app").open("a") as more:
        more.write(line(task(0, cpu=500_000_000)) + line(ended(0, at=3500)))
    job = reader.read().jobs[0]
    assert (job.began, job.ended, job.cpu_seconds, job.tasks, job.bytes_read) == (1.0, 3.5, 2.5, 2, 10)
    assert job.is_pass
    assert job.succeeded


def test_a_rolled_log_goes_on_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    log = tmp_path / "eventlog_v2_app"
    log.mkdir()
    for number in (10, 9, 1):
        event = started(number, stage=number, name="count at X.scala:1", at=number * 1000)
        (log / f"events_{number}_app").write_text(line(event))
    assert list(EventLog(log).read().jobs) == [1, 9, 10]


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "app"
    whole = line(started(0, stage=0, name=PASS, at=1000))
    log.write_text(whole[:40])
    reader = EventLog(log)
    assert reader.read().jobs == {}
    with log.open("a") as more:
        more.write(whole[40:])
    assert list(reader.read().jobs) == [0]


def test_a_damaged_event_names_the_file_and_the_byte(tmp_path: Path) -> None:
    log = tmp_path / "app"
    log.write_text('{"Event":"SparkListenerJobStart",,}\n')
    with pytest.raises(DataError, match=r"app: the event that ends at byte 36 is damaged"):
        EventLog(log).read()


def test_lost_executors_are_remembered(tmp_path: Path) -> None:
    log = tmp_path / "app"
    added = {"Event": "SparkListenerExecutorAdded", "Executor ID": "0", "Executor Info": {"Total Cores": 2}}
    removed = {"Event": "SparkListenerExecutorRemoved", "Executor ID": "0"}
    reader = EventLog(log)
    log.write_text(line(added))
    assert reader.read().executor_cores == {"0": 2}
    log.write_text(line(added) + line(removed))
    seen = reader.read()
    assert (seen.executor_cores, seen.lost_executors) == ({}, ["0"])
