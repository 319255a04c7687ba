"""The commands as a user types them: what they print, their exit codes, and one sentence for what can be mended."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pipeline.lease import measuring_lease
from tests.pipeline.conftest import Finished
from tests.pipeline.place import Place, assert_one_error, eventually, finish, run_named

RUN = ("run", "--profile", "tiny")


def rows(place: Place, run_id: str) -> list[dict[str, str]]:
    """Of comparison.csv."""
    return list(csv.DictReader(place.report(run_id)["comparison.csv"].decode().splitlines()))


def interrupt(place: Place, number: signal.Signals, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run, and send a signal to the command alone when its first new trial is published."""
    before = {name: place.trials(name) for name in place.runs()}
    place.hold()
    process = place.start(*arguments)
    eventually(lambda: any(place.trials(name).keys() - before.get(name, {}).keys() for name in place.runs()))
    process.send_signal(number)
    done = finish(process)
    place.go_on()
    return done


def test_a_run_ends_with_a_report_and_says_where(finished: Finished) -> None:
    assert finished.done.stderr == ""
    page = finished.place.store / "runs" / "R" / "report" / "report.html"
    assert f"Report: {page}" in finished.done.stdout
    assert page.is_file()


def test_a_platform_of_another_package_is_compared(finished: Finished) -> None:
    shown = {(row["platform"], row["cores"], row["trials"], row["status"]) for row in rows(finished.place, "R")}
    assert {("steady", "1", "2", "ok"), ("steady", "2", "2", "ok")} < shown
    assert "torch-cpu" in {platform for platform, *_ in shown}


def test_a_run_that_is_finished_is_left_as_it_is(finished: Finished) -> None:
    place = finished.place
    trained, trials, report = place.trained(), place.trials("R"), place.report("R")
    again = place.run(*RUN, "--run-id", "R")
    assert again.returncode == 0, again.stderr
    assert "run R is complete" in again.stdout
    assert "Report: " in again.stdout
    assert (place.trained(), place.trials("R"), place.report("R")) == (trained, trials, report)


def test_the_same_id_with_other_settings_is_an_error(finished: Finished) -> None:
    done = finished.place.run(*RUN, "--run-id", "R", "--set", "profile.tiny.epochs=3", "--set", "seed=4")
    assert_one_error(done, "run R", "profile.tiny.epochs", "yarnstick.seed", "--run-id")


def test_fresh_does_not_touch_a_run_that_is_there(finished: Finished) -> None:
    assert_one_error(finished.place.run(*RUN, "--run-id", "R", "--fresh"), "run R is there already", "--fresh")


def test_a_report_is_the_same_bytes_again(finished: Finished) -> None:
    place = finished.place
    before = place.report("R")
    folder = place.store / "runs" / "R" / "report"
    for name in before:
        if name not in ("published.json", "merged.json") and not name.startswith("environment"):
            (folder / name).unlink()
    (folder / "sweep_of_an_earlier_report.csv").write_text("a\n")
    done = place.run("report", "--run-id", "R")
    assert done.returncode == 0, done.stderr
    after = place.report("R")
    assert after.keys() == before.keys()
    assert [name for name in before if before[name] != after[name]] == []
    assert "Report: " in done.stdout


def test_a_report_of_an_unknown_run_says_which_are_known(finished: Finished, place: Place) -> None:
    assert_one_error(finished.place.run("report", "--run-id", "Q"), "run Q", "known are R")
    assert_one_error(place.run("report", "--run-id", "Q"), "run Q", "yarnstick run")
    assert_one_error(place.run("report", "--run-id", "../Q"), "run id '../Q'", "letters")


def test_a_killed_run_is_continued(place: Place) -> None:
    place.hold()
    first = place.start(*RUN)
    eventually(lambda: any(place.trials(name) for name in place.runs()))
    os.killpg(first.pid, signal.SIGKILL)
    finish(first)
    place.go_on()
    [name] = place.runs()
    before = place.trials(name)
    assert 1 <= len(before) < 4
    trained = place.trained()
    again = place.run(*RUN)
    assert again.returncode == 0, again.stderr
    assert run_named(again.stdout) == name
    assert place.runs() == [name]
    after = place.trials(name)
    assert len(after) == 4
    assert {slug: after[slug] for slug in before} == before
    assert not set(place.trained()[len(trained) :]) & before.keys(), "nothing is measured twice"
    epochs = list(csv.DictReader(place.report(name)["epochs.csv"].decode().splitlines()))
    assert sorted((row["cores"], row["trial"], row["epoch"]) for row in epochs) == [
        (cores, trial, epoch) for cores in "12" for trial in "12" for epoch in "12"
    ]
    assert {row["run_id"] for row in epochs} == {name}


def test_an_interrupted_run_has_a_partial_report(place: Place) -> None:
    first = interrupt(place, signal.SIGINT, *RUN)
    assert first.returncode == 130, first.stderr
    [name] = place.runs()
    assert first.stderr == (
        f"Interrupted; the same command with --run-id {name} continues with the trials that are missing.\n"
    )
    assert sum(int(row["trials"]) for row in rows(place, name)) == len(place.trials(name)) < 4
    assert "report.html" in place.report(name)
    work = place.folder / "build" / "cache" / "work"
    assert list(work.iterdir()) == []

    second = interrupt(place, signal.SIGTERM, *RUN, "--fresh")
    assert second.returncode == 130, second.stderr
    [other] = set(place.runs()) - {name}
    assert "report.html" in place.report(other)
    third = interrupt(place, signal.SIGINT, *RUN)
    assert third.returncode == 130
    assert run_named(third.stdout) == other, "the newest unfinished run is continued"


def test_a_failed_trial_is_reported_and_tried_again(place: Place) -> None:
    place.fails.touch()
    both = ("--set", "profile.tiny.platforms=steady fickle", "--set", "profile.tiny.cores=1", "--run-id", "F")
    first = place.run(*RUN, *both)
    assert_one_error(first, "2 of 4 trials failed", "RuntimeError: boom", "--run-id F", "log.txt")
    log = Path(first.stderr.partition("log: ")[2].partition(")")[0])
    assert "Traceback" in log.read_text()
    assert {row["platform"]: row["status"] for row in rows(place, "F")} == {
        "steady": "ok",
        "fickle": "failed: RuntimeError: boom",
    }
    trained, trials = place.trained(), place.trials("F")
    place.fails.unlink()
    second = place.run(*RUN, *both)
    assert second.returncode == 0, second.stderr
    assert [slug.partition("-")[0] for slug in place.trained()[len(trained) :]] == ["fickle"] * 2
    assert all(slug.endswith("-a2") for slug in place.trials("F").keys() - trials.keys())
    assert {row["status"] for row in rows(place, "F")} == {"ok"}


def test_what_diverged_or_is_not_there_does_not_fail_a_run(place: Place) -> None:
    done = place.run(
        *RUN,
        "--run-id",
        "D",
        "--set",
        "profile.tiny.platforms=steady torch-cpu torch-cuda",
        "--set",
        "profile.tiny.learning_rates=0.5 3e38",
        "--set",
        "profile.tiny.epochs=4",
        "--set",
        "profile.tiny.trials=1",
        "--set",
        "profile.tiny.cores=1",
    )
    assert done.returncode == 0, done.stderr
    status = {(row["platform"], float(row["learning_rate"])): row["status"] for row in rows(place, "D")}
    assert status["torch-cpu", 0.5] == "ok"
    assert status["torch-cpu", 3e38].startswith("diverged at epoch ")
    assert status["torch-cpu", 3e38] in done.stdout
    import torch

    if not torch.cuda.is_available():
        assert "no CUDA device" in status["torch-cuda", 0.5]
    assert [row["mean_seconds"] for row in rows(place, "D") if row["status"].startswith("diverged")] == [""]


def has_open(process: subprocess.Popen[str], path: Path) -> bool:
    return process.poll() is not None or str(path) in [each.path for each in psutil.Process(process.pid).open_files()]


def test_two_at_once_measure_each_trial_once(place: Place) -> None:
    settings = (*RUN, "--run-id", "T", "--set", "profile.tiny.platforms=steady")
    lease = place.folder / "lease.lock"
    with measuring_lease(lease, waiting=pytest.fail):
        both = [place.start(*settings) for _ in range(2)]
        eventually(lambda: all(has_open(process, lease) for process in both))
    ends = [finish(process) for process in both]
    assert [(end.returncode, end.stderr) for end in ends] == [(0, ""), (0, "")]
    assert len(place.trained()) == len(set(place.trained())) == 4
    assert place.trials("T").keys() == set(place.trained())
    waited = f"waits until another measurement on this host ends ({lease})"
    assert all(waited in end.stdout for end in ends)
    assert sum(int(row["trials"]) for row in rows(place, "T")) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "profile.tiny.epoch=3"], ["profile.tiny", "epoch", "epochs"]),
        (["--set", "sed=3"], ["[yarnstick]", "seed"]),
        (["--set", "profile.tiny.epochs=0"], ["profile.tiny.epochs = 0", "at least 1"]),
        (["--set", "profile.tiny.datasets=csv:missing.csv"], ["missing.csv"]),
        (["--set", "profile.tiny.datasets=mnits"], ["'mnits'", "known are mnist"]),
        (["--set", "profile.tiny.platforms=torch-gpu"], ["'torch-gpu'", "known are", "torch-cpu", "steady"]),
        (["--set", "profile.tiny.networks=mpl:*-8-*"], ["'mpl:*-8-*'", "mlp:*-1024-*"]),
        (["--set", "profile.tiny.networks=mlp:7-8-3"], ["mlp:7-8-3", "6 columns and 3 classes"]),
        (["--set", "profile.tiny.executors=4096"], ["4096", "profile.tiny"]),
        (["--profile", "tyni"], ["'tyni'", "known are", "tiny"]),
        (["--run-id", "-x/y"], ["'-x/y'"]),
        (["--set", "lease=luigi.cfg/lock", "--set", "profile.tiny.trials=1"], ["yarnstick.lease", "name a file"]),
        (["--store", "ftp://host/x"], ["ftp://host/x"]),
    ],
    ids=lambda value: value[-1] if isinstance(value[-1], str) else "",
)
def test_what_can_be_mended_is_one_sentence(arguments: list[str], words: list[str], place: Place) -> None:
    done = place.run(*RUN, *arguments)
    assert_one_error(done, *words)
    assert place.trained() == []


def test_a_damaged_outcome_is_one_sentence(finished: Finished, place: Place) -> None:
    shutil.copytree(finished.place.store, place.store)
    (place.folder / "luigi.cfg").write_text((finished.place.folder / "luigi.cfg").read_text())
    slug = sorted(place.trials("R"))[0]
    (place.store / "runs" / "R" / "trials" / slug / "outcome.json").write_text("{")
    assert_one_error(place.run(*RUN, "--run-id", "R"), slug, "remove")
    assert_one_error(place.run("report", "--run-id", "R"), slug, "remove")
    (place.store / "runs" / "R" / "run.json").write_text("{")
    assert_one_error(place.run("report", "--run-id", "R"), "run.json", "remove")


@pytest.mark.parametrize("arguments", [["walk"], ["run", "--profle", "x"], ["report"], ["run", "--set"], ["run", "x"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str], place: Place) -> None:
    done = place.run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Error: " in done.stderr


def test_a_plan_lists_the_trials_and_runs_nothing(place: Place) -> None:
    done = place.run("plan", "--profile", "tiny", "--set", "profile.tiny.cores=1 4096")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    assert sum("steady 1 x 1 cores" in line for line in lines) == 2
    assert sum("not possible: executors=1 x cores=4096 are 4096 cores" in line for line in lines) == 2
    assert lines[-2] == "2 of 4 trials can run here, 4 epochs in all"
    assert lines[-1].startswith("no estimate: 1 configuration never ran in this store")
    assert not (place.folder / "build").exists()
    assert place.trained() == []


def test_init_writes_the_documented_settings_and_never_overwrites(tmp_path: Path) -> None:
    place = Place(tmp_path, settings="")
    first = place.run("init")
    assert first.returncode == 0, first.stderr
    assert "[profile.quick]" in (tmp_path / "luigi.cfg").read_text()
    assert "yarnstick plan" in first.stdout
    (tmp_path / "luigi.cfg").write_text("[yarnstick]\nseed = 1\n")
    assert_one_error(place.run("init"), "luigi.cfg is there already")
    assert (tmp_path / "luigi.cfg").read_text() == "[yarnstick]\nseed = 1\n"
    assert_one_error(place.run("init", "nowhere"), "nowhere", "cannot be written")


def test_a_plan_is_also_json(place: Place) -> None:
    done = place.run("plan", "--profile", "tiny", "--set", "profile.tiny.cores=1 4096", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [trial["place"] for trial in told["trials"]] == [1, 2, 3, 4]
    assert sum(trial["impossible"] is None for trial in told["trials"]) == told["possible"] == 2
    assert told["trials"][0]["spec"]["platform"] == "steady"
    assert told["estimate"]["unknown"] == 1


def test_a_run_ends_when_its_minutes_are_over_and_the_next_call_continues(place: Place) -> None:
    """What is over is the time for another trial of the same kind, known from the one that just ran."""
    steady = (*RUN, "--run-id", "M", "--set", "profile.tiny.cores=1", "--set", "profile.tiny.trials=40")
    first = place.run(*steady, "--max-minutes", "10", MADE_SECONDS="900")
    assert first.returncode == 0, first.stderr
    assert first.stderr == ""
    done = len(place.trials("M"))
    assert 1 <= done < 40
    end = first.stdout.splitlines()[-1]
    assert end.startswith(f"Ended by --max-minutes after {done} of 40 trials (")
    assert end.endswith("; the same command with --run-id M continues with the trials that are missing.")
    assert f"The run is not finished: {done} of 40 trials so far." in first.stdout
    assert "report.html" in place.report("M")
    before = place.trials("M")
    second = place.run(*steady, "--max-minutes", "1000")
    assert second.returncode == 0, second.stderr
    assert "Ended by" not in second.stdout
    after = place.trials("M")
    assert len(after) == 40
    assert {slug: after[slug] for slug in before} == before


def test_minutes_that_are_too_few_for_any_trial_are_one_sentence(place: Place) -> None:
    done = place.run(*RUN, "--run-id", "M", "--max-minutes", "0.0001")
    assert_one_error(done, "no trial of run M was begun", "0.0001 min have passed", "give more than --max-minutes")
    assert place.trained() == []


def test_minutes_also_end_the_wait_for_another_measurement(place: Place) -> None:
    with measuring_lease(place.folder / "lease.lock", waiting=pytest.fail):
        done = place.run(*RUN, "--run-id", "M", "--max-minutes", "0.1")
    assert_one_error(done, "no trial of run M was begun", "another measurement on this host")
    assert place.trained() == []


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "inf", "soon"])
def test_minutes_are_a_number_above_0(minutes: str, place: Place) -> None:
    done = place.run(*RUN, f"--max-minutes={minutes}")
    assert done.returncode == 2
    assert "Error: Invalid value for '--max-minutes'" in done.stderr


def reporting(process: subprocess.Popen[str]) -> bool:
    for child in psutil.Process(process.pid).children():
        with suppress(psutil.Error):  # of one that has ended
            if "pipeline.partial_report" in child.cmdline():
                return True
    return False


def test_a_second_ctrl_c_ends_the_report_too(place: Place) -> None:
    slow = place.folder / "packages" / "sitecustomize.py"
    slow.write_text("import sys, time\nif 'pipeline.partial_report' in sys.orig_argv:\n    time.sleep(600)\n")
    place.hold()
    process = place.start(*RUN, "--run-id", "I")
    eventually(lambda: place.trials("I"))
    process.send_signal(signal.SIGINT)
    eventually(lambda: reporting(process))
    process.send_signal(signal.SIGINT)
    done = finish(process)
    slow.unlink()
    place.go_on()
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith("; the same command with --run-id I continues with the trials that are missing.\n")
    assert place.run(*RUN, "--run-id", "I").returncode == 0


COMPLETE = """
eval "$(_YARNSTICK_COMPLETE=source_bash yarnstick)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_yarnstick_completion yarnstick
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on PATH")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["run", "--profile", "t"], ["tiny"]),
        (["run", "--profile", ""], ["default", "full", "quick", "tiny"]),
        (["report", "--run-id", ""], ["R"]),
        (["runs", "compare", "R", ""], ["R"]),
        (["runs", "show", "--store", "elsewhere", ""], [""]),
        (["runs", "c"], ["compare", "clean"]),
        (["run", "--set", "profile.tiny.platf"], ["profile.tiny.platforms="]),
        (["run", "--set", "profile.tiny.platforms", "=", "st"], ["steady"]),
        (["run", "--set", "scale", "="], ["global", "pixel"]),
        (["run", "--set", "csv.header", "=", "t"], ["true"]),
        (["run", "--set", "csv.nothing", "=", "t"], [""]),
    ],
    ids=lambda value: " ".join(value),
)
def test_a_shell_completes_what_is_there(words: list[str], offered: list[str], finished: Finished) -> None:
    """In a real bash, which splits words at each =."""
    place = finished.place
    programs = place.folder / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "yarnstick"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from pipeline.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = place.run("yarnstick", *words, command=["bash", "-c", COMPLETE, "bash"], PATH=path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == offered


def test_completion_is_quiet_about_bad_settings(place: Place) -> None:
    (place.folder / "luigi.cfg").write_text("[yarnstick]\nsed = 1\n")
    asked = {"_YARNSTICK_COMPLETE": "complete_bash", "COMP_WORDS": "yarnstick\nrun\n--profile\n", "COMP_CWORD": "3"}
    done = place.run(**asked)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_help_imports_nothing_heavy(place: Place) -> None:
    code = (
        "import sys\nfrom pipeline.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'torch', 'pyspark', 'luigi', 'polars', 'numpy', 'pyarrow', 'scipy', 'altair'}\n"
        "print('HEAVY', *sorted(heavy & sys.modules.keys()), '.')"
    )
    done = place.run("--help", command=[sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    assert "HEAVY ." in done.stdout
    for command in ("run", "runs", "plan", "report", "init", "doctor"):
        assert command in done.stdout


def test_a_signal_before_the_first_trial_is_no_traceback(place: Place) -> None:
    process = place.start(*RUN, MADE_SLEEP="600")
    eventually(lambda: place.trained())
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("Interrupted; ")
