"""Runs of several machines in one: each row keeps its machine, and what is not one thing is never taken for one."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from tests.pipeline.conftest import Finished
from tests.pipeline.place import Place, assert_one_error


def made_of(
    run: Path,
    target: Path,
    *,
    machine: str,
    hours: float = 24,
    parameters: int | None = None,
    versions: dict[str, str] | None = None,
) -> None:
    """A copy of a run as another machine would have made it: later, at other speed."""
    shutil.copytree(run, target)
    shutil.rmtree(target / "report")
    about = json.loads((target / "run.json").read_text())
    (target / "run.json").write_text(json.dumps(about | {"run_id": target.name, "machine": machine}))
    for path in target.glob("trials/*/outcome.json"):
        outcome = json.loads(path.read_text())
        for record in outcome["records"]:
            record |= {"run_id": target.name, "machine": machine, "seconds": record["seconds"] * 2}
            began = datetime.fromisoformat(record["started_at"]) + timedelta(hours=hours)
            record["started_at"] = began.isoformat()
            record["parameters"] = parameters or record["parameters"]
            record["versions"] = json.dumps(json.loads(record["versions"]) | (versions or {}))
        path.write_text(json.dumps(outcome))


@pytest.fixture
def place(finished: Finished, tmp_path: Path) -> Place:
    """The run R; and a run E of another machine in a directory beside the store."""
    made = Place(tmp_path / "copied", (finished.place.folder / "luigi.cfg").read_text())
    shutil.copytree(finished.place.store, made.store)
    made_of(made.store / "runs" / "R", made.folder / "usb" / "E", machine="edge")
    return made


def test_two_machines_in_one_report(place: Place) -> None:
    done = place.run("runs", "merge", "R", "usb/E", "--run-id", "M")
    assert done.returncode == 0, done.stderr
    assert "E of edge: 12 records" in done.stdout
    assert "On these 2 machines" in done.stdout
    made = place.report("M")
    rows = pl.read_csv(made["comparison.csv"])
    alone = pl.read_csv(place.report("R")["comparison.csv"])
    same = ["platform", "executors", "cores", "threads", "mean_seconds", "ci_low", "ci_high", "trials"]
    mine = rows.filter(pl.col("machine") != "edge")
    assert mine.sort(same).select(same).rows() == alone.sort(same).select(same).rows(), "intervals stay"
    theirs = rows.filter(machine="edge")
    assert set(theirs["run_id"]) == {"E"}
    assert sorted(theirs["mean_seconds"]) == pytest.approx([2 * value for value in sorted(alone["mean_seconds"])])
    assert "edge" in made["report.html"].decode()
    again = place.run("report", "--run-id", "M")
    assert again.returncode == 0, again.stderr
    assert place.report("M") == made
    states = {state["run_id"]: state for state in json.loads(place.run("runs", "list", "--json").stdout)}
    assert (states["M"]["status"], states["M"]["profile"]) == ("finished", "merge")
    compared = place.run("runs", "compare", "M", "M").stdout
    assert compared.count("both take the same") == rows.height
    assert_one_error(place.run("runs", "merge", "R", "usb/E", "--run-id", "M"), "run M is there already")
    assert_one_error(place.run("runs", "merge", "M", "R", "--run-id", "N"), "M and R both hold records of run R")


def test_a_killed_merge_is_done_again_or_finished_by_a_report(place: Place) -> None:
    """Killed after the file that a run begins with: the same runs are merged anew, and others are another run."""
    merge = ("runs", "merge", "R", "usb/E", "--run-id", "M")
    done = place.run(*merge)
    before = place.report("M")
    made_of(place.store / "runs" / "R", place.folder / "usb" / "F", machine="far", hours=48)
    for command in (merge, ("report", "--run-id", "M")):
        shutil.rmtree(place.store / "runs" / "M" / "report")
        assert_one_error(place.run("runs", "merge", "R", "usb/F", "--run-id", "M"), "run M is there already")
        repeated = place.run(*command)
        assert repeated.returncode == 0, repeated.stderr
        assert place.report("M") == before
    assert done.stdout.endswith(repeated.stdout)
    assert_one_error(place.run(*merge), "run M is there already")


def test_each_machine_keeps_its_versions(place: Place) -> None:
    """What is the same on all is said once."""
    made_of(place.store / "runs" / "R", place.folder / "usb" / "N", machine="a new one", versions={"torch": "9.9.9"})
    done = place.run("runs", "merge", "R", "usb/N", "--run-id", "M")
    assert done.returncode == 0, done.stderr
    own, both = (json.loads(place.report(name)["environment.json"])["versions"] for name in ("R", "M"))
    assert both == own | {"torch": f"9.9.9 on a new one; {own['torch']} on {place_machine(place)}"}


def test_other_code_under_the_name_of_a_users_own_network_is_refused(place: Place) -> None:
    """As many parameters are no proof; and what does not tell its code may be any."""
    runs, usb = place.store / "runs", place.folder / "usb"
    name = "torch:nets:make"
    for run_id, hours, code in (("A", 1, "sha256:aa"), ("B", 2, "sha256:aa"), ("C", 3, "sha256:cc"), ("D", 4, None)):
        made_of(runs / "R", usb / run_id, machine=run_id, hours=hours, versions={name: code} if code else {})
        for path in (usb / run_id).glob("trials/*/outcome.json"):
            path.write_text(path.read_text().replace('"mlp:6-8-3"', f'"{name}"'))
    for other, words in (
        ("C", (f"network {name} is other code in usb/A (sha256:aa) than in usb/C (sha256:cc)",)),
        ("D", (f"usb/D does not tell which code it trained as {name}",)),
    ):
        assert_one_error(place.run("runs", "merge", "usb/A", f"usb/{other}", "--run-id", "M"), *words)
    assert place.runs() == ["R"]
    for parts in (("usb/A", "usb/B"), ("R", "usb/D")):
        done = place.run("runs", "merge", *parts, "--run-id", f"M{parts[0][-1]}")
        assert done.returncode == 0, done.stderr


def test_a_run_without_a_record_is_not_merged(place: Place) -> None:
    made_of(place.store / "runs" / "R", place.folder / "usb" / "none", machine="none")
    shutil.rmtree(place.folder / "usb" / "none" / "trials")
    done = place.run("runs", "merge", "R", "usb/none", "--run-id", "M")
    assert_one_error(done, "usb/none: run none has no trial that ended")
    assert place.runs() == ["R"]


def test_what_cannot_be_merged_is_one_sentence_and_nothing_is_written(place: Place) -> None:
    usb = place.folder / "usb"
    made_of(place.store / "runs" / "R", usb / "other", machine="gpu", parameters=99)
    made_of(place.store / "runs" / "R", usb / "renamed", machine=place_machine(place), hours=0)
    shutil.copytree(place.store / "runs" / "R", usb / "R")
    for runs, words in (
        (("R", "R"), ("both hold records of run R", "give each run once")),
        (("R", "usb/R"), ("R and usb/R both hold records of run R",)),
        (("R", "usb/renamed"), ("hold the same measurements (12 records", "one is a copy of the other")),
        (("R", "usb/other"), ("network mlp:6-8-3 on synthetic:200x6x3 has 83 parameters in R and 99 in usb/other",)),
        (("R",), ("1 run given", "two runs or more")),
        (("R", "Q"), ("run Q is not in", "known are R")),
        (("R", "usb"), ("usb",)),
        (("R", "usb/none"), ("usb/none holds no run.json",)),
    ):
        assert_one_error(place.run("runs", "merge", *runs, "--run-id", "M"), *words)
        assert place.runs() == ["R"]


def place_machine(place: Place) -> str:
    return str(json.loads((place.store / "runs" / "R" / "run.json").read_text())["machine"])
