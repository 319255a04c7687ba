"""Fits that a log shows: where one begins and ends, and whether it came to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models.event_log import read_event_log
from models.fits import EXCHANGE, REFIT, REHEARSAL, LoggedFit, epochs_of, fits, refuse_other_work
from store.errors import DataError
from tests.models.spark_logs import (
    GD,
    L_BFGS,
    application_end,
    ended,
    gd_fit,
    job,
    lines,
    started,
    unpersisted,
    whole,
)

OWN = "mllib-logistic-perceptron-784-10-l-bfgs-2x1-6ecd269c-t1-a1"


def of(tmp_path: Path, *events: dict[str, Any]) -> list[LoggedFit]:
    log = tmp_path / "app"
    log.write_bytes(lines(whole(*events)))
    return fits(read_event_log(log))


def test_a_finished_fit_of_gd(tmp_path: Path) -> None:
    (fit,) = of(tmp_path, *gd_fit(4), unpersisted())
    assert (fit.solver, len(fit.passes), len(fit.loading), fit.broken) == ("gd", 4, 1, None)
    assert [(span.seconds, span.ledger["driver"]) for span in fit.spans()] == [(1.5, 0.5)] * 3


@pytest.mark.parametrize(
    "end", [unpersisted(), application_end(at=90_000), *job(99, name="x", at=80_000, until=80_001)[:1]]
)
def test_what_follows_a_fit_says_that_it_ended(tmp_path: Path, end: dict[str, Any]) -> None:
    assert of(tmp_path, *gd_fit(4), end)[0].broken is None


@pytest.mark.parametrize("group", [EXCHANGE, REFIT, REHEARSAL])
def test_our_fits_beside_a_training_are_none(tmp_path: Path, group: str) -> None:
    events = [*gd_fit(4), *gd_fit(7, first=50, at=50_000, group=group), unpersisted()]
    (fit,) = of(tmp_path, *events)
    assert (fit.group, len(fit.passes), fit.broken) == ("g", 4, None)


def test_a_fit_that_nothing_follows_was_killed(tmp_path: Path) -> None:
    (fit,) = of(tmp_path, *gd_fit(4))
    assert fit.broken == "killed after 4 of its passes"
    assert len(list(fit.spans())) == 3


def test_a_pass_that_only_began_still_ends_the_epoch_before_it(tmp_path: Path) -> None:
    (fit,) = of(tmp_path, *gd_fit(4)[:-2])
    assert fit.broken == "killed after 3 of its passes"
    assert len(list(fit.spans())) == 3


def test_a_failed_job_is_the_reason(tmp_path: Path) -> None:
    failing = [started(9, stage=9, name=GD, at=90_000), ended(9, at=91_000, failure="Job aborted\nstack")]
    (fit,) = of(tmp_path, *gd_fit(2), *failing)
    assert fit.broken == "Spark job 9 failed after 2 finished passes: Job aborted"


def test_fits_of_one_group_are_told_apart_by_the_count_that_begins_each(tmp_path: Path) -> None:
    found = of(tmp_path, *gd_fit(3), *gd_fit(2, first=20, at=20_000), unpersisted())
    assert [(len(fit.passes), fit.broken) for fit in found] == [(3, None), (2, None)]


def test_another_solver_is_another_fit(tmp_path: Path) -> None:
    found = of(tmp_path, *gd_fit(3), *job(10, name=L_BFGS, at=50_000, until=51_000), unpersisted())
    assert [fit.solver for fit in found] == ["gd", "l-bfgs"]


def test_groups_are_separate(tmp_path: Path) -> None:
    found = of(tmp_path, *gd_fit(3, group="a"), *gd_fit(2, first=20, at=20_000, group=None), unpersisted())
    assert [(fit.group, len(fit.passes)) for fit in found] == [("a", 3), (None, 2)]


def test_l_bfgs_has_the_mean_of_its_finished_passes(tmp_path: Path) -> None:
    events = [*job(1, name=L_BFGS, at=0, until=1000), *job(2, name=L_BFGS, at=1500, until=3000), unpersisted()]
    (fit,) = of(tmp_path, *events)
    assert [(span.seconds, span.passes, span.clock) for span in fit.spans()] == [(1.5, 1, "amortized")] * 2


def test_fits_side_by_side_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Spark jobs 1 and 2 ran at the same time"):
        of(tmp_path, started(1, stage=1, name=GD, at=0), started(2, stage=2, name=GD, at=10), ended(1, at=20))


def test_other_models_passes_count_only_in_our_own_trials(tmp_path: Path) -> None:
    """Linear regression, survival regression and others sum their losses in the same place."""
    name = "treeAggregate at RDDLossFunction.scala:61"
    assert of(tmp_path, *job(1, name=name, at=0, until=1000, group="theirs")) == []
    loading = job(1, name="treeAggregate at Summarizer.scala:235", at=0, until=500, group=OWN)
    (fit,) = of(tmp_path, *loading, *job(2, name=name, at=600, until=1000, group=OWN), unpersisted())
    assert (fit.solver, len(fit.loading)) == ("l-bfgs", 1)


def test_epochs_by_the_passes_that_each_had(tmp_path: Path) -> None:
    (fit,) = of(tmp_path, *gd_fit(4), unpersisted())
    assert epochs_of(fit) == {1: 1, 2: 2, 3: 3}, "the last pass finds the final loss"
    assert epochs_of(fit, [2, 1]) == {1: 1, 2: 1, 3: 2}


def test_another_kind_of_work_is_refused_by_what_it_did(tmp_path: Path) -> None:
    log = tmp_path / "app"
    events = [event for number in range(3) for event in job(number, name="count at X.scala:1", at=0, until=1)]
    log.write_bytes(lines(whole(*events, *job(7, name="collect at Y.scala:2", at=0, until=1))))
    with pytest.raises(
        DataError, match=r"app \(theirs\) has no gradient pass .*'count at X.scala' \(3\), 'collect at Y"
    ):
        refuse_other_work(log, read_event_log(log))
