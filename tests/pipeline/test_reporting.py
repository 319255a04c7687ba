"""What is published of a report, and which trials it covers."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.config import read_settings
from pipeline.reporting import again, known_run, terms_of
from pipeline.run_file import RunFile
from report.facts import Prices, Terms
from store.errors import StoreError
from tests.pipeline.conftest import Finished
from tests.pipeline.place import Place


@pytest.fixture
def copied(place: Place, finished: Finished, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The finished run, to be changed."""
    shutil.copytree(finished.place.store, place.store)
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


def test_a_report_made_again_says_that_prices_of_now_are_not_taken(copied: Place) -> None:
    same, other = (copied.run("report", "--run-id", "R", *more) for more in ((), ("--set", "price.core_hour=0.05")))
    assert "judges as run R" not in same.stdout
    said = "This report judges as run R was begun; for new runs there is another yarnstick.price.core_hour."
    assert other.stdout.splitlines()[:-1] == same.stdout.splitlines()
    assert other.stdout.splitlines()[-1] == said


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
