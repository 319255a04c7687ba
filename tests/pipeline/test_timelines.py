"""Archived event logs as timelines: one good trial for each configuration, and only its own tasks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import pipeline.timelines
from models.outcome import Outcome
from pipeline.timelines import timelines
from store.local import LocalStore
from tests.models.spark_logs import gd_fit, lines, whole
from tests.report.made import mllib, outcomes, torch

TRIALS = "runs/R/trials"


def archive(folder: Path, outcome: Outcome, *events: dict[str, object]) -> None:
    log = folder / TRIALS / outcome.spec.slug / "eventlog" / "app-1"
    log.parent.mkdir(parents=True)
    log.write_bytes(lines(whole(*events)))


def test_the_first_good_trial_stands_for_its_configuration(tmp_path: Path) -> None:
    found = outcomes([mllib(1, 1, 2.0), torch(1, 0.5)], trials=3)
    mine = [each for each in found if each.spec.platform == "mllib"]
    given = [replace(each, noisy=True) if each is mine[0] else each for each in found]
    for each in mine:
        archive(tmp_path, each, *gd_fit(3, group=each.spec.slug))
    (made,), there = timelines(LocalStore(tmp_path), TRIALS, given)
    assert (made.trial, there) == (2, 1)
    assert {task.group for task in made.tasks} == {mine[1].spec.slug}
    assert [task.epoch for task in made.tasks if task.kind == "pass"][:2] == [1, 2]
    assert made.load is not None


def test_a_sessions_log_holds_trials_that_are_not_ours(tmp_path: Path) -> None:
    (mine,) = outcomes([mllib(1, 1, 2.0)], trials=1)
    other = gd_fit(3, group="another")
    archive(tmp_path, mine, *other, *gd_fit(3, first=len(other), at=100_000, group=mine.spec.slug))
    (made,), _ = timelines(LocalStore(tmp_path), TRIALS, [mine])
    assert {task.group for task in made.tasks} == {mine.spec.slug}


def test_a_damaged_log_costs_only_its_picture(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one, two = outcomes([mllib(1, 1, 2.0), mllib(2, 1, 2.0)], trials=1)
    archive(tmp_path, one, *gd_fit(3, group=one.spec.slug))
    archive(tmp_path, two, {"Event": "SparkListenerJobStart", "Job ID": "x"})
    found, there = timelines(LocalStore(tmp_path), TRIALS, [one, two])
    assert (len(found), there) == (1, 2)
    assert f"no timeline of trial {two.spec.slug}" in caplog.text


def test_logs_that_are_not_read_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline.timelines, "MOST_LOGS", 1)
    found = outcomes([mllib(1, 1, 2.0), mllib(2, 1, 2.0)], trials=1)
    for each in found:
        archive(tmp_path, each, *gd_fit(3, group=each.spec.slug))
    read, there = timelines(LocalStore(tmp_path), TRIALS, found)
    assert (len(read), there) == (1, 2)


def test_without_a_log_there_is_none(tmp_path: Path) -> None:
    assert timelines(LocalStore(tmp_path), TRIALS, outcomes()) == ([], 0)
