"""The last executor that paid, by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from report.comparison import compared
from report.marginal import Line, lines, said
from report.merge import records_table
from report.verdict import comparisons
from tests.report.made import BASELINE, Made, mllib, outcomes, torch


def of(*made: Made, **more: Any) -> list[Line]:
    _, configurations = compared(pl.DataFrame(records_table(outcomes(made, **more))), baseline=BASELINE)
    (comparison,) = comparisons(configurations, baseline=BASELINE)
    return lines(comparison)


# 4 s, 2 s, 1 s, and then as much again with twice the executors.
SATURATED = tuple(mllib(n, 1, seconds) for n, seconds in ((1, 4.0), (2, 2.0), (4, 1.0), (8, 1.0), (16, 1.3)))


def test_the_last_that_paid_is_where_gains_end() -> None:
    (line,) = of(torch(1, 1.0), *SATURATED)
    assert line.last_paid["executors"] == 4
    assert [step.paid for step in line.steps] == [True, True, False, False]
    assert [step.added for step in line.steps] == [1, 2, 4, 8]


def test_a_gain_after_one_that_was_none_does_not_count() -> None:
    (line,) = of(torch(1, 1.0), *SATURATED[:4], mllib(16, 1, 0.5))
    assert [step.paid for step in line.steps] == [True, True, False, True]
    assert line.last_paid["executors"] == 4


def test_what_each_saves_is_the_gain_over_those_that_were_added() -> None:
    (line,) = of(torch(1, 1.0), *SATURATED, noise=0.0)
    assert [step.saved_each for step in line.steps] == pytest.approx([2.0, 0.5, 0.0, -0.3 / 8])


def test_a_line_for_each_number_of_cores_and_for_threads() -> None:
    found = of(torch(1, 1.0), torch(2, 0.6), mllib(1, 1, 4.0), mllib(2, 1, 2.0), mllib(1, 2, 2.2), mllib(2, 2, 2.2))
    assert [(line.platform, line.steps[0].unit, line.steps[0].fewer["cores"]) for line in found] == [
        ("torch-cpu", "thread", None), ("mllib", "executor", 1), ("mllib", "executor", 2),
    ]  # fmt: skip
    assert [line.steps[0].paid for line in found] == [True, True, False]


def test_one_size_is_no_line() -> None:
    assert of(torch(1, 1.0), mllib(1, 1, 2.0)) == []


def test_the_sentences() -> None:
    (line,) = of(torch(1, 1.0), *SATURATED, noise=0.0)
    start = "Spark MLlib (1 core each) gains"
    assert said([line]) == [
        f"{start} by every executor up to 4 executors x 1 core: the next 4 executors together save nothing."
    ]
    (whole,) = of(torch(1, 1.0), *SATURATED[:3], noise=0.0)
    assert said([whole]) == [
        f"{start} by every executor up to 4 executors x 1 core, the most that ran: the last 2 executors together saved "
        "1.0 s, 0.50 s each."
    ]
    (none,) = of(torch(1, 1.0), mllib(1, 1, 2.0), mllib(2, 1, 1.99), noise=0.0)
    assert said([none]) == [
        f"{start} nothing beyond 1 executor x 1 core: the next executor saves 10 ms, too little to count as a gain."
    ]
