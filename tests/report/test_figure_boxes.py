"""The boxes are quartiles of trials, whiskers end where Tukey's do, and the sentence says which are widest."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from models.outcome import Outcome
from report.comparison import compared
from report.drawing import Figure, colours
from report.figure_boxes import box, boxes_figure
from report.merge import records_table
from report.page import report_files
from report.verdict import comparisons
from tests.report.made import BASELINE, RUN, mllib, outcomes, torch

VALUES = [1.0, 1.1, 1.2, 1.3, 1.4, 9.0]


def drawn(run: Sequence[Outcome]) -> Figure | None:
    _, configurations = compared(pl.DataFrame(records_table(run)), baseline=BASELINE)
    (comparison,) = comparisons(configurations, baseline=BASELINE)
    return boxes_figure(comparison, name="boxes", palette=colours(["mllib", "torch-cpu"]))


def test_a_box_by_hand() -> None:
    """Quartiles 1.125 and 1.375, so whiskers reach to 0.75 and 1.75: 9.0 is outside."""
    found = box({}, VALUES)
    assert found.quartiles == pytest.approx((1.125, 1.25, 1.375))
    assert found.whiskers == (1.0, 1.4)
    assert found.outside == 1
    assert found.away(9.0) == pytest.approx(6.2)
    assert found.spread == pytest.approx(np.std(VALUES, ddof=1) / np.mean(VALUES))


def test_fewer_than_five_trials_are_no_box_and_the_line_joins_all() -> None:
    found = box({}, [1.0, 1.1, 1.2, 9.0])
    assert not found.is_boxed
    assert (found.whiskers, found.outside) == ((1.0, 9.0), 0)


def test_equal_trials_are_a_box_of_width_zero() -> None:
    found = box({}, [0.3] * 6)
    assert (found.whiskers, found.outside, found.spread) == ((0.3, 0.3), 0, pytest.approx(0, abs=1e-12))


def test_the_sentence_names_the_widest_and_the_closest() -> None:
    steady = outcomes([torch(1, 0.5)], trials=6, noise=0.001)
    wild = outcomes([mllib(1, 1, 2.0)], trials=6, noise=0.2)
    figure = drawn([*steady, *wild])
    assert figure is not None
    first, second = figure.sentence.split("; ")[:2]
    assert first.startswith("The trials of Spark MLlib, 1 executor x 1 core, float64 lie furthest apart, between -")
    assert second.startswith("those of torch-cpu, 1 thread, float32 closest together, between -0.")
    assert "of 12 trials" in figure.sentence
    assert len(figure.table.rows) == 2


def test_without_repeats_there_is_no_figure_and_the_page_goes_without() -> None:
    assert drawn(outcomes(trials=1)) is None
    files = report_files(records_table(outcomes(trials=1)), run=RUN, baseline=BASELINE)
    assert "figures/boxes.svg" not in files
    assert "around their median" not in files["report.html"].decode()


def test_what_is_not_shown_is_said_and_what_the_sentence_names_is_shown() -> None:
    figure = drawn(outcomes([torch(n, 1 / n) for n in range(1, 31)], trials=2))
    assert figure is not None
    assert len(figure.table.rows) == 30
    shown = re.search(r"(\d+) of 30 configurations shown", figure.sentence)
    assert shown is not None
    assert int(shown[1]) in (14, 15, 16)
    names = re.findall(r"torch-cpu, \d+ threads?", figure.sentence)
    assert len(names) == 2
    assert all(f">{name}<" in figure.wide for name in names)


def test_the_file_stands_alone_and_is_the_same_every_time() -> None:
    first, second = drawn(outcomes(trials=5)), drawn(outcomes(trials=5))
    assert first is not None
    assert second is not None
    assert first.files == second.files
    text = first.files["figures/boxes.svg"].decode()
    assert "var(" not in text
    assert "#010203" not in text
