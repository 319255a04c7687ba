"""Each axis that was varied, all else equal, on trials and not on epochs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest
from scipy import stats

from models.outcome import Outcome
from report.axes import Swept, said, swept
from report.comparison import compared
from report.merge import records_table
from tests.report.made import BASELINE, QUICK, mllib, outcomes, torch
from tests.report.test_comparison import times


def found(run: Sequence[Outcome], metric: str = "seconds") -> list[Swept]:
    _, configurations = compared(pl.DataFrame(records_table(run)), baseline=BASELINE)
    return [each for each in swept(configurations) if each.metric == metric]


def test_an_axis_is_swept_where_all_else_is_equal() -> None:
    made = [mllib(e, c, 4 / e / c) for e in (1, 2, 4) for c in (1, 2)] + [torch(1, 0.5)]
    mine = [(each.axis, each.held, each.levels) for each in found(outcomes(made))]
    assert mine == [
        ("executors", "Spark MLlib, 2 cores", ("1", "2", "4")),
        ("executors", "Spark MLlib, 1 core", ("1", "2", "4")),
        ("cores", "Spark MLlib, 4 executors", ("1", "2")),
        ("cores", "Spark MLlib, 2 executors", ("1", "2")),
        ("cores", "Spark MLlib, 1 executor", ("1", "2")),
    ]


def test_it_is_scipys_on_trials_whatever_the_number_of_epochs() -> None:
    """Twenty epochs of three trials are three values."""
    run = outcomes([torch(n, 0.5) for n in (1, 2, 4)], epochs=21, noise=0.05)
    (mine,) = found(run)
    expected = stats.f_oneway(*(times(run, "torch-cpu", threads=n) for n in (1, 2, 4)))
    assert mine.trials == (3, 3, 3)
    assert (mine.found.f, mine.found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert (mine.found.between, mine.found.within) == (2, 6)


def test_holms_correction_is_over_all_axes_of_a_metric() -> None:
    mine = found(outcomes(QUICK, noise=0.2))
    p = sorted(each.found.p or 0 for each in mine)
    expected = [p[0] * 3, max(p[0] * 3, p[1] * 2), max(p[0] * 3, p[1] * 2, p[2])]
    assert sorted(each.p_holm or 0 for each in mine) == pytest.approx([min(1, each) for each in expected])


def test_without_repeats_there_is_no_test() -> None:
    mine = found(outcomes(QUICK, trials=1))
    assert {(each.found.p, each.p_holm, each.call) for each in mine} == {(None, None, "no test")}
    assert {line[-1] for line in said(mine)} == {"no repeats"}


def test_levels_of_unequal_numbers_of_trials() -> None:
    run = outcomes([torch(1, 0.5), torch(2, 0.4)], trials=5, noise=0.1)
    run = [each for each in run if each.spec.resources.threads == 1 or each.spec.trial < 3]
    (mine,) = found(run)
    assert mine.trials == (5, 2)
    expected = stats.f_oneway(times(run, "torch-cpu", threads=1), times(run, "torch-cpu", threads=2))
    assert mine.found.p == pytest.approx(expected.pvalue)


def test_a_fraction_takes_its_rows_along() -> None:
    made = [replace(torch(1, share), data_fraction=share, rows=int(60_000 * share)) for share in (0.25, 0.5, 1.0)]
    (mine,) = found(outcomes(made))
    assert (mine.axis, mine.levels, mine.call) == ("fraction", ("0.25", "0.5", "1"), "differs")


def test_passes_that_differ_are_compared_by_the_pass() -> None:
    made = [torch(1, 1.0, solver="l-bfgs"), torch(2, 3.0, solver="l-bfgs", passes=3)]
    run = outcomes(made, noise=0.02)
    (mine,) = found(run)
    expected = stats.f_oneway(
        times(run, "torch-cpu", threads=1), [each / 3 for each in times(run, "torch-cpu", threads=2)]
    )
    assert mine.by_pass
    assert mine.found.p == pytest.approx(expected.pvalue)


def test_accuracy_is_an_axis_too() -> None:
    """It is the same for every number of threads here, without any variance."""
    (mine,) = found(outcomes([torch(1, 0.5), torch(2, 0.3)]), "accuracy")
    assert (mine.found.p, mine.call) == (1.0, "does not")


def test_the_pages_lines() -> None:
    (line,) = said(found(outcomes([torch(1, 0.5), torch(2, 0.3)])))
    assert line[:4] == ("torch-cpu", "threads 1, 2", "seconds", "plain")
    assert line[-1] == "it matters"
    two = outcomes([torch(n, 0.5 / n, solver=solver) for n in (1, 2) for solver in ("gd", "l-bfgs")])
    assert said(found(two))[0][0] == "torch-cpu: mnist, mlp:784-1024-10, full-batch gradient descent"
