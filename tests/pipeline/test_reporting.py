"""What is published of a report, and which trials it covers."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from pipeline.config import read_settings
from pipeline.reporting import again, known_run, terms_of
from pipeline.run_file import RunFile
from report.facts import Prices, Terms
from store.errors import StoreError
from tests.pipeline.conftest import Finished
from tests.pipeline.place import Place, assert_one_error

DATASET = "synthetic:200x6x3"


@pytest.fixture
def copied(place: Place, finished: Finished, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The finished run, to be changed."""
    shutil.copytree(finished.place.store, place.store)
    shutil.copy(finished.place.folder / "luigi.cfg", place.folder)
    monkeypatch.chdir(place.folder)
    return place


def test_targets_and_prices_are_those_that_the_run_was_begun_with(place: Place) -> None:
    overrides = ["target.accuracies=mnist=0.9", "price.core_hour=0.05", "price.currency=EUR"]
    settings = read_settings("quick", overrides=overrides).fingerprint()
    terms = terms_of(run_file(settings))
    assert [(each.dataset, each.accuracy) for each in terms.targets] == [("mnist", 0.9)]
    assert terms.prices == Prices(core_hour=0.05, currency="EUR")
    assert terms_of(run_file({})) == Terms(), "a run of before there were any"


def run_file(settings: dict[str, Any]) -> RunFile:
    return RunFile(
        run_id="R", profile="quick", settings=settings, datasets={}, rows={}, trials=0, machine="made", cpu="", cores=1,
        memory_gb=1.0, commit=None, begun_at=datetime.now(UTC),
    )  # fmt: skip


def test_prices_and_targets_may_be_given_after_measuring(copied: Place) -> None:
    """They are kept with the run: who makes the report again has the same, and its first one can be had again."""
    first, before = copied.run("report", "--run-id", "R").stdout, copied.report("R")
    given = ("price.core_hour=3600", "price.currency=EUR", f"target.accuracies={DATASET}=0.01", "baseline.threads=2")
    done = copied.run("report", "--run-id", "R", *(part for each in given for part in ("--set", each)))
    assert done.returncode == 0, done.stderr
    assert "judged by its own" not in done.stdout
    judged = copied.report("R")
    rows = pl.read_csv(judged["comparison.csv"])
    torch = rows.row(by_predicate=pl.col("platform") == "torch-cpu", named=True)
    assert torch["price"] == pytest.approx(torch["mean_seconds"]), "a thread, at one EUR a second"
    epochs = pl.read_csv(judged["epochs.csv"]).filter(platform="torch-cpu", epoch=1)["seconds"]
    assert torch["seconds_to_target"] == pytest.approx(epochs.mean())
    assert torch["relative_to_one_thread"] is None, "2 threads did not run"
    assert json.loads(judged["environment.json"])["settings"]["yarnstick.price.core_hour"] == 3600
    run = json.loads((copied.store / "runs" / "R" / "run.json").read_text())
    assert (run["settings"]["yarnstick.price.core_hour"], run["judged_by"]["yarnstick.price.core_hour"]) == (None, 3600)
    plain = copied.run("report", "--run-id", "R")
    assert copied.report("R") == judged
    said = plain.stdout.splitlines()[-1]
    assert said.startswith("Run R is judged by its own yarnstick.baseline.threads, yarnstick.target.accuracies, ")
    resumed = copied.run("run", "--profile", "tiny", "--run-id", "R")
    assert resumed.returncode == 0, resumed.stderr
    assert copied.report("R") == judged
    back = ("price.core_hour=", "price.currency=", "target.accuracies=", "baseline.threads=1")
    done = copied.run("report", "--run-id", "R", *(part for each in back for part in ("--set", each)))
    assert (done.stdout, copied.report("R")) == (first, before)
    assert json.loads((copied.store / "runs" / "R" / "run.json").read_text())["judged_by"] == {}


def test_what_a_report_cannot_take_is_refused(copied: Place) -> None:
    before = copied.report("R")
    for given in ("profile.tiny.trials=9", "target.refits=false", "noisy_share=0.5"):
        done = copied.run("report", "--run-id", "R", "--set", given)
        assert_one_error(done, given.partition("=")[0], "takes price.*, target.accuracies and baseline.*")
    assert copied.report("R") == before


def test_luigi_cfg_of_now_does_not_change_a_report_and_it_is_said(copied: Place) -> None:
    before = copied.report("R")
    with (copied.folder / "luigi.cfg").open("a") as file:
        file.write("\n[yarnstick.price]\ncore_hour = 0.05\n")
    for command in (("report", "--run-id", "R"), ("run", "--profile", "tiny", "--run-id", "R")):
        done = copied.run(*command)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == (
            "Run R is judged by its own yarnstick.price.core_hour, and the settings of now have another; yarnstick "
            "report --run-id R --set takes what it is to be judged by."
        )
        assert copied.report("R") == before


def test_the_markers_cover_every_trial(finished: Finished) -> None:
    report = finished.place.report("R")
    for name in ("merged.json", "published.json"):
        marker = json.loads(report[name])
        assert marker == {"trials": sorted(finished.place.trials("R")), "finished": True}


def test_a_report_made_again_does_not_change_what_the_run_still_needs(copied: Place) -> None:
    """One more outcome that no report covered yet: the page shows it, and the run still has to publish it."""
    before = copied.report("R")
    slug = sorted(copied.trials("R"))[-1]
    trials = copied.store / "runs" / "R" / "trials"
    again_slug = slug.replace("-a1", "-a2")
    shutil.copytree(trials / slug, trials / again_slug)
    outcome = trials / again_slug / "outcome.json"
    outcome.write_text(outcome.read_text().replace('"attempt": 1', '"attempt": 2'))
    again(read_settings("default"), "R")
    after = copied.report("R")
    assert after["published.json"] == before["published.json"]
    assert len(after["epochs.csv"].splitlines()) == len(before["epochs.csv"].splitlines()) + 2


def test_figures_of_an_earlier_report_are_swept_out(copied: Place) -> None:
    figures = copied.store / "runs" / "R" / "report" / "figures"
    (figures / "of_an_earlier_report.svg").write_text("<svg/>")
    told = again(read_settings("default"), "R")
    assert "figures/of_an_earlier_report.svg" not in copied.report("R")
    assert told[-1].startswith("Report: ")


def test_a_run_without_a_trial_has_nothing_to_report(copied: Place) -> None:
    shutil.rmtree(copied.store / "runs" / "R" / "trials")
    with pytest.raises(StoreError, match="run R has no trial that ended"):
        again(read_settings("default"), "R")


def test_an_unknown_run_is_told_with_those_that_are_there(copied: Place) -> None:
    from store.local import LocalStore

    with pytest.raises(StoreError, match=r"run Q is not in .*known are R"):
        known_run(LocalStore(copied.store), "Q")
