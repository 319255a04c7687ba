"""A fit's epochs, read from gradient passes and held against the objective history and both clocks."""

from __future__ import annotations

import pytest

from models.event_log import Job
from models.mllib_fit import Fit, disagreement, epoch_spans
from store.errors import TrialError
from tests.models.made import spec

PASS = "treeAggregate at LBFGS.scala:261"


def passes(*spans: tuple[float, float]) -> list[Job]:
    """Gradient passes by when they began and ended."""
    return [
        Job(number=number, name=PASS, group="g", began=began, ended=ended, cpu_seconds=1.0)
        for number, (began, ended) in enumerate(spans)
    ]


def fit(losses: int, *, began: float = 0.0, ended: float = 10.0, seconds: float = 10.0) -> Fit:
    return Fit(seconds=seconds, began=began, ended=ended, losses=[1.0] * losses, layers=[])


GD = spec("mllib")
L_BFGS = spec("mllib", solver="l-bfgs", learning_rate=None)


def test_a_gd_epoch_ends_where_the_next_pass_begins() -> None:
    spans = list(epoch_spans(GD, passes((1, 2), (2.5, 3), (3.25, 4)), fit(3), told=[]))
    assert [(span.seconds, span.passes, span.clock) for span in spans] == [(1.5, 1, "eventlog"), (0.75, 1, "eventlog")]


def test_gd_with_another_number_of_passes_is_refused() -> None:
    with pytest.raises(TrialError, match="2 gradient passes for 2 updates"):
        list(epoch_spans(GD, passes((1, 2), (2.5, 3)), fit(3), told=[]))


def test_an_l_bfgs_iteration_has_the_passes_that_it_told_of() -> None:
    jobs = passes((1, 2), (2, 3), (3.5, 4), (4, 5), (5.5, 6))
    spans = list(epoch_spans(L_BFGS, jobs, fit(3), told=[3.1, 6.1]))
    assert [(span.seconds, span.passes, span.clock) for span in spans] == [(2.5, 2, "eventlog"), (2.5, 3, "eventlog")]
    assert sum(span.cpu_seconds for span in spans) == 5.0


def test_without_its_word_an_l_bfgs_epoch_is_amortized_and_says_so() -> None:
    jobs = passes((1, 2), (2, 3), (3.5, 4), (4, 5), (5.5, 6))
    spans = list(epoch_spans(L_BFGS, jobs, fit(3), told=[]))
    assert [(span.seconds, span.passes, span.clock) for span in spans] == [(3.0, 3, "amortized"), (2.0, 2, "amortized")]


def test_two_clocks_that_disagree_are_told() -> None:
    jobs = passes((1, 2), (2, 9))
    assert disagreement(jobs, fit(2)) is None
    assert "disagree: 10.000 s against 7.000 s" in (disagreement(jobs, fit(2, seconds=7.0)) or "")
    assert "jobs from" in (disagreement(passes((1, 2), (2, 11)), fit(2)) or "")
