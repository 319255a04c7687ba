"""`yarnstick runs`: the list tells how each run ended, two runs are compared, and cleaning takes only what it may."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline.presence import Presence, Present, gone, present
from pipeline.runs import columns
from store.local import LocalStore
from tests.pipeline.conftest import Finished
from tests.pipeline.place import TOP, Place, assert_one_error, eventually, finish

RUN = ("run", "--profile", "tiny")
NO_PROCESS = 2**22 + 1  # above the largest id that Linux gives


@pytest.fixture
def copied(finished: Finished, tmp_path: Path) -> Place:
    """With the run R that ended well, to do with as one likes."""
    place = Place(tmp_path / "copied", (finished.place.folder / "luigi.cfg").read_text())
    shutil.copytree(finished.place.store, place.store)
    return place


@pytest.fixture
def measuring(copied: Place) -> Iterator[subprocess.Popen[str]]:
    """A process that measures the run M, and goes on for as long as the test."""
    process = copied.start(*RUN, "--run-id", "M", MADE_SLEEP="600", MADE_HOW="")
    eventually(lambda: copied.trained())
    yield process
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def states(place: Place) -> dict[str, dict[str, object]]:
    done = place.run("runs", "list", "--json")
    assert done.returncode == 0, done.stderr
    return {state["run_id"]: state for state in json.loads(done.stdout)}


def out(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_list_says_how_each_run_ended(copied: Place) -> None:
    steady = ("--set", "profile.tiny.platforms=steady")
    copied.hold()
    killed = copied.start(*RUN, *steady, "--run-id", "killed")
    eventually(lambda: copied.trials("killed"))
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    copied.hold()
    stopped = copied.start(*RUN, *steady, "--run-id", "stopped")
    eventually(lambda: copied.trials("stopped"))
    stopped.send_signal(signal.SIGINT)
    assert finish(stopped).returncode == 130
    copied.go_on()
    copied.fails.touch()
    fickle = ("--set", "profile.tiny.platforms=fickle", "--run-id", "failed")
    assert copied.run(*RUN, *fickle).returncode == 1
    (copied.store / "runs" / "bad").mkdir()
    (copied.store / "runs" / "bad" / "run.json").write_text("{")
    found = states(copied)
    assert {name: state["status"] for name, state in found.items()} == {
        "R": "finished",
        "killed": "interrupted",
        "stopped": "partial",
        "failed": "failed",
        "bad": "damaged",
    }
    assert list(found) == ["failed", "stopped", "killed", "R", "bad"], "the newest first"
    assert (found["R"]["done"], found["R"]["planned"]) == (6, 6)
    assert "an epoch (synthetic:200x6x3)" in str(found["R"]["fastest"])
    assert found["killed"]["done"] == len(copied.trials("killed"))
    shown = out(copied.run("runs", "list"))
    assert [line.split()[0] for line in shown.splitlines()] == ["run", *found]
    assert "run.json is damaged" in shown


def test_a_run_that_is_measured_says_by_whom_and_stays(copied: Place, measuring: subprocess.Popen[str]) -> None:
    state = states(copied)["M"]
    assert state["status"] == "measuring"
    assert f"process {measuring.pid} on " in str(state["detail"])
    assert_one_error(
        copied.run("runs", "clean", "M"), "run M is being measured", f"process {measuring.pid}", "end that"
    )
    done = out(copied.run("runs", "clean", "--older-than", "0"))
    assert "removed run R" in done
    assert "run M" not in done
    assert copied.runs() == ["M"]
    assert measuring.poll() is None
    os.killpg(measuring.pid, signal.SIGKILL)
    measuring.wait()
    assert states(copied)["M"]["status"] == "interrupted"
    assert "removed run M" in out(copied.run("runs", "clean", "M"))
    assert copied.runs() == []


def test_no_run_yet_says_how_to_start(place: Place) -> None:
    assert "start with yarnstick run" in out(place.run("runs", "list"))
    assert out(place.run("runs", "list", "--json")).strip() == "[]"
    assert not (place.folder / "build").exists(), "looking makes nothing"


def test_a_run_is_shown_with_what_is_special_about_it(copied: Place) -> None:
    shown = out(copied.run("runs", "show", "R"))
    assert shown.startswith("run R of profile tiny: finished, 6/6 trials\n")
    assert "  profile.tiny.epochs = 2\n" in shown
    assert "  yarnstick.noisy_repeats = 0\n" in shown
    assert "yarnstick.seed" not in shown, "as shipped"
    assert f"Report: {copied.store}/runs/R/report/report.html" in shown
    verdict = json.loads((copied.store / "runs" / "R" / "report" / "verdict.json").read_text())
    assert "\n".join(verdict["first_lines"]) in shown, "as its report has them"
    told = json.loads(out(copied.run("runs", "show", "R", "--json")))
    assert told["settings"]["profile.tiny.epochs"] == 2
    assert told["report"].endswith("report.html")
    shutil.rmtree(copied.store / "runs" / "R" / "report")
    assert "no report yet" in out(copied.run("runs", "show", "R"))


@pytest.mark.parametrize("arguments", [("show", "Q"), ("compare", "R", "Q"), ("clean", "Q")])
def test_an_unknown_run_is_one_sentence(arguments: tuple[str, ...], finished: Finished) -> None:
    assert_one_error(finished.place.run("runs", *arguments), "run Q is not in", "known are R")


def test_of_many_runs_the_nearest_is_named(copied: Place) -> None:
    for name in ("quick-1", "quick-2", "full-1", "full-2", "other"):
        shutil.copytree(copied.store / "runs" / "R", copied.store / "runs" / name)
    assert_one_error(copied.run("runs", "show", "qick-2"), "the nearest of 6 is quick-2", "yarnstick runs list")


def test_two_runs_are_compared_by_their_trials(copied: Place) -> None:
    """Other numbers are put into a copy: the same runs, one of them half as fast and of another machine."""
    slower = copied.store / "runs" / "S"
    shutil.copytree(copied.store / "runs" / "R", slower)
    for path in slower.glob("trials/*/outcome.json"):
        outcome = json.loads(path.read_text())
        for record in outcome["records"]:
            # Not all the same: a test needs some variance.
            record["seconds"] *= 2 * (1 + 0.001 * record["trial"]) if "steady" in path.parent.name else 1
        path.write_text(json.dumps(outcome))
    for path in slower.glob("trials/steady-*-1x2-*"):
        shutil.rmtree(path)
    about = json.loads((slower / "run.json").read_text())
    (slower / "run.json").write_text(json.dumps(about | {"run_id": "S", "machine": "other", "cpu": "another"}))
    found = json.loads(out(copied.run("runs", "compare", "R", "S", "--json")))
    pairs = {pair["name"]: pair for pair in found["pairs"]}
    [steady] = [pair for name, pair in pairs.items() if name.startswith("steady")]
    [torch] = [pair for name, pair in pairs.items() if name.startswith("torch-cpu")]
    assert steady["ratio"] == pytest.approx(2.003, abs=1e-6)
    assert steady["ratio_low"] < 2.003 < steady["ratio_high"]
    assert steady["differs"] is True
    assert (torch["ratio"], torch["differs"]) == (1.0, False)
    assert [name for name in found["only_first"] if "steady" in name] == found["only_first"]
    assert len(found["only_first"]) == 1
    assert found["only_second"] == []
    assert found["first"]["machine"] != found["second"]["machine"] == "other"
    shown = out(copied.run("runs", "compare", "R", "S"))
    assert "S on other: another" in shown
    assert "Note: the runs differ in machine and cpu" in shown
    assert "the second is 100 % slower (p " in shown
    assert "only in R: steady, 1 executor x 2 cores" in shown


def test_what_was_not_measured_twice_has_no_test(copied: Place) -> None:
    once = copied.store / "runs" / "once"
    shutil.copytree(copied.store / "runs" / "R", once)
    assert_one_error(copied.run("runs", "compare", "once", "R"), "runs/once is a copy of run R", "run_id")
    (once / "run.json").write_text((once / "run.json").read_text().replace('"R"', '"once"'))
    for path in once.glob("trials/*-t2-*"):
        shutil.rmtree(path)
    found = json.loads(out(copied.run("runs", "compare", "once", "R", "--json")))
    assert [(pair["p"], pair["differs"]) for pair in found["pairs"]] == [(None, None)] * 3
    for path in once.glob("trials/*"):
        shutil.rmtree(path)
    shutil.rmtree(once / "report")
    assert_one_error(copied.run("runs", "compare", "once", "R"), "run once has no trial that ended")


def test_cleaning_takes_what_the_dead_left_and_leaves_the_rest(copied: Place) -> None:
    host = os.uname().nodename
    work = copied.folder / "build" / "cache" / "work"
    dead = [copied.store / "data" / f".tmp.{host}.{NO_PROCESS}.a", work / f".tmp.{host}.{NO_PROCESS}.b"]
    alive = [copied.store / "data" / f".tmp.{host}.{os.getpid()}.a", work / f".tmp.{host}.{os.getpid()}.b"]
    for folder in (*dead, *alive):
        (folder / "below").mkdir(parents=True)
        (folder / "below" / "file").write_bytes(bytes(1500))
    report = copied.report("R")
    said = out(copied.run("runs", "clean", "--dry-run"))
    assert said.count("would remove") == 2
    assert "would free 3.0 KB of 2 items" in said
    assert all(folder.is_dir() for folder in (*dead, *alive)), "nothing was removed"
    assert "freed 3.0 KB of 2 items" in out(copied.run("runs", "clean"))
    assert [folder.exists() for folder in (*dead, *alive)] == [False, False, True, True]
    assert copied.report("R") == report
    assert out(copied.run("runs", "clean")) == "nothing to remove\n"


def test_only_old_runs_are_old(copied: Place) -> None:
    about = copied.store / "runs" / "R" / "run.json"
    begun = json.loads(about.read_text()) | {"begun_at": "2001-01-01T00:00:00Z"}
    about.write_text(json.dumps(begun))
    assert out(copied.run("runs", "clean", "--older-than", "1")) == "nothing to remove\n", "its trials are of today"
    for path in copied.store.glob("runs/R/trials/*/outcome.json"):
        outcome = json.loads(path.read_text())
        for record in outcome["records"]:
            record["started_at"] = "2001-01-02T00:00:00Z"
        path.write_text(json.dumps(outcome))
    assert "removed run R" in out(copied.run("runs", "clean", "--older-than", "1"))
    assert copied.runs() == []


@pytest.mark.parametrize("days", ["-1", "nan", "inf", "x"])
def test_days_are_a_number(days: str, finished: Finished) -> None:
    done = finished.place.run("runs", "clean", f"--older-than={days}")
    assert done.returncode == 2
    assert "Error: " in done.stderr
    assert finished.place.runs() == ["R"]


def test_a_damaged_run_can_be_removed_by_its_name(copied: Place) -> None:
    (copied.store / "runs" / "R" / "run.json").write_text("{")
    assert "removed run R" in out(copied.run("runs", "clean", "R"))
    assert copied.runs() == []


def test_presence_ends_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom pipeline.presence import Presence\n"
        "from store.local import LocalStore\nPresence(LocalStore(Path(sys.argv[1])), 'runs/R').announce()\n"
        "print('there', flush=True)\nsys.stdin.readline()\n"
    )
    store = LocalStore(tmp_path)
    for kill in (False, True):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(TOP)},
        )
        assert process.stdout is not None
        process.stdout.readline()
        assert [each.pid for each in present(store, "runs/R")] == [process.pid]
        if kill:
            process.kill()
        process.communicate("" if kill else "\n")
        assert present(store, "runs/R") == []
        assert len(gone(store, "runs/R")) == kill, "only a killed one leaves its note"


def test_a_process_id_that_is_used_again_is_another_process(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    mine = Presence(store, "runs/R")
    mine.announce()
    [note] = present(store, "runs/R")
    other = Present(host=note.host, pid=note.pid, started=note.started - 60, since=note.since)
    assert note.is_alive()
    assert not other.is_alive()
    mine.withdraw()
    assert present(store, "runs/R") == []


def test_of_another_host_nothing_is_known_for_a_week() -> None:
    now = datetime.now(UTC).timestamp()
    assert Present(host="elsewhere", pid=1, started=0, since=now - 3600).is_alive()
    assert not Present(host="elsewhere", pid=1, started=0, since=now - 8 * 24 * 3600).is_alive()


def test_columns_stand_below_each_other() -> None:
    assert columns([("a", "bb", "c"), ("aaa", "b", "")]) == ["a    bb  c", "aaa  b"]


def test_a_store_of_no_run_is_left_alone(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "none")
    assert store.leftovers() == ()
    assert not (tmp_path / "none").exists()
