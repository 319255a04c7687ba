"""The `luigi` line: the same main job for schedulers, with exit codes that tell the truth and sentences for errors."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import luigi
import pytest

from pipeline.tasks import Report
from tests.pipeline.place import LUIGI, PROFILE, Place, assert_one_error

LINE = ("--profile", "tiny", "--run-id", "R")


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The task of a run that was just begun."""
    place = Place(tmp_path / "begun", PROFILE.replace("steady", "torch-cpu").replace("threads = 1", "threads = 1 2"))
    monkeypatch.chdir(place.folder)
    monkeypatch.setattr("pipeline.experiment.usable_cores", lambda: 2)
    return Report(profile="tiny", run_id=tmp_path.name, settings="{}")


def settings(**values: str) -> tuple[str, str]:
    return "--settings", json.dumps({key.replace("__", "."): value for key, value in values.items()})


def errors(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The sentences among what Luigi logs; a traceback is none."""
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("Error: ")]


def test_a_failing_run_exits_with_a_failure_and_a_good_one_with_0(place: Place) -> None:
    """This ./luigi.cfg has no [retcode] section: Luigi alone would always exit with 0."""
    assert "[retcode]" not in (place.folder / "luigi.cfg").read_text()
    given = settings(profile__tiny__platforms="fickle steady", profile__tiny__cores="1")
    place.fails.touch()
    failing = place.run(*LINE, "--local-scheduler", *given, command=LUIGI)
    assert failing.returncode == 1, failing.stderr
    [error] = errors(failing)
    assert "2 of 4 trials failed, the first with: RuntimeError: boom" in error
    assert "report.html" in place.report("R")
    for step in ("reads the raw data", "finds the range of its values", "normalizes", "packs"):
        assert f"synthetic:200x6x3: {step}" in failing.stderr
    place.fails.unlink()
    good = place.run(*LINE, "--local-scheduler", *given, command=LUIGI)
    assert good.returncode == 0, good.stderr
    assert errors(good) == []
    trained = place.trained()
    assert place.run(*LINE, "--local-scheduler", *given, command=LUIGI).returncode == 0
    assert place.trained() == trained
    # One run, whether Luigi's line or ours continues it.
    ours = place.run("run", *LINE, "--set", "profile.tiny.platforms=fickle steady", "--set", "profile.tiny.cores=1")
    assert ours.returncode == 0, ours.stderr
    assert "run R is complete" in ours.stdout


def test_it_runs_from_any_directory_with_several_workers(place: Place, tmp_path: Path) -> None:
    """What LUIGI_CONFIG_PATH names is enough, and trials never run side by side."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    named = str(place.folder / "luigi.cfg")
    command = ["env", "-C", str(other), *LUIGI]
    done = place.run(*LINE, "--local-scheduler", "--workers", "2", command=command, LUIGI_CONFIG_PATH=named)
    assert done.returncode == 0, done.stderr
    assert errors(done) == []
    assert len(place.trained()) == len(set(place.trained())) == 4
    assert (other / "build" / "store" / "runs" / "R" / "report" / "report.html").is_file()


def test_without_a_configuration_it_says_what_to_do(tmp_path: Path) -> None:
    place = Place(tmp_path, settings="")
    done = place.run("--profile", "quick", "--run-id", "R", "--local-scheduler", command=LUIGI)
    assert done.returncode != 0
    assert errors(done) == ["Error: no ./luigi.cfg and no LUIGI_CONFIG_PATH; write one with yarnstick init"]
    assert not (tmp_path / "build").exists()


def test_a_data_error_is_one_sentence_and_nothing_is_published(place: Place) -> None:
    (place.folder / "mine.csv").write_text("1,2,0\n3,4,1\n5,6\n")
    given = settings(profile__tiny__datasets=f"csv:{place.folder / 'mine.csv'}", csv__classes="2")
    done = place.run(*LINE, "--local-scheduler", *given, command=LUIGI)
    assert done.returncode == 1, done.stderr
    [error] = errors(done)
    assert "mine.csv" in error
    assert re.search(r"\b3\b", error), "the line"
    assert not (place.store / "data").exists()


def test_an_error_inside_a_step_is_one_sentence(place: Place) -> None:
    """Found while Luigi runs the step, not before."""
    blocked = place.store / "data"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where a directory has to be")
    done = place.run(*LINE, "--local-scheduler", command=LUIGI)
    assert done.returncode == 1, done.stderr
    [error] = errors(done)
    assert str(place.store) in error
    ours = place.run("run", *LINE)
    assert_one_error(ours, str(place.store))


def test_wrong_settings_are_one_sentence(place: Place) -> None:
    for given, word in (("{", "--settings"), ('{"profile.tiny.epoch": 3}', "epochs"), ('{"sed": 3}', "seed")):
        done = place.run(*LINE, "--local-scheduler", "--settings", given, command=LUIGI)
        assert done.returncode == 1, done.stderr
        [error] = errors(done)
        assert word in error


def test_the_graph_is_the_one_of_the_design(report: Report) -> None:
    graph: dict[str, set[str]] = {}
    tasks = [report]
    while tasks:
        task = tasks.pop()
        following = luigi.task.flatten(task.requires())
        graph.setdefault(type(task).__name__, set()).update(type(each).__name__ for each in following)
        tasks += following
    assert graph == {
        "Report": {"Merge"},
        "Merge": {"Trial"},
        "Trial": {"Pack"},
        "Pack": {"Normalize"},
        "Normalize": {"PixelRange"},
        "PixelRange": {"Ingest"},
        "Ingest": set(),
    }


def test_bad_data_is_found_before_the_first_trial_and_trials_run_in_their_order(report: Report) -> None:
    trials = luigi.task.flatten(report.requires().requires())
    assert [trial.place for trial in trials] == [1, 2, 3, 4]
    priorities = [trial.priority for trial in trials]
    assert priorities == sorted(priorities, reverse=True)
    assert min(priorities) > 0
    assert all(data.priority > priorities[0] for data in trials[0].requires())
