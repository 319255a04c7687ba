"""Tasks over time: which are shown, what is said of them, and that nothing is left out silently."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import polars as pl
import pytest

from report.comparison import compared
from report.drawing import colours
from report.figure_timeline import MOST_SLOTS, timeline_figure
from report.merge import records_table
from report.timeline import COLUMNS, Timeline, in_order, load_rows, of_load
from report.timeline import csv as written
from report.verdict import Comparison, comparisons
from tests.report.made import BASELINE, mllib, outcomes, timelines, torch, torch_spark
from tests.report.test_breakdown import comparison as comparison_of

MADE = (torch(1, 0.5), mllib(1, 1, 4.0), mllib(2, 1, 2.1), mllib(4, 1, 1.2), mllib(4, 2, 0.9))
PALETTE = colours(["torch-cpu", "mllib"])


def comparison() -> Comparison:
    _, configurations = compared(pl.DataFrame(records_table(outcomes(MADE))), baseline=BASELINE)
    return comparisons(configurations, baseline=BASELINE)[0]


def drawn(found: list[Timeline]) -> tuple[str, tuple[tuple[str, ...], ...]]:
    figure = timeline_figure(found, names=(), name="timeline", palette=PALETTE)
    assert figure is not None
    return figure.sentence, figure.table.rows


def test_they_stand_as_they_are_ranked() -> None:
    ordered = in_order(timelines(MADE), comparison())
    assert [(each.row["executors"], each.row["cores"]) for each in ordered] == [(4, 2), (4, 1), (2, 1), (1, 1)]


def test_those_of_other_work_are_not_among_them() -> None:
    made = [replace(each, solver="l-bfgs") for each in MADE]
    assert in_order(timelines(made), comparison()) == []
    assert timeline_figure([], names=(), name="timeline", palette=PALETTE) is None


def test_the_first_are_shown_and_the_rest_is_in_the_table() -> None:
    sentence, rows = drawn(in_order(timelines(MADE), comparison()))
    assert sentence.endswith(" 3 of 4 configurations shown; timeline.csv has those whose event logs were read.")
    assert len({row[0] for row in rows}) == 4
    assert len(rows) == 4 + 4 + 2 + 1


def test_how_busy_an_executor_was() -> None:
    """The second executor of the made ones ends each task a tenth before its epoch does."""
    each = timelines([mllib(2, 1, 2.0)], epochs=4)[0]
    assert each.busy() == pytest.approx({"0": 1.0, "1": 0.9})
    assert drawn([each])[0] == (
        "Share of the slots' time that tasks fill, from the first pass to the last: 90 to 100 % in Spark MLlib, "
        "2 executors x 1 core."
    )


def test_a_fit_without_a_pass_is_said() -> None:
    each = timelines([mllib(1, 1, 2.0)], epochs=0)[0]
    assert drawn([each])[0] == "No pass is there of Spark MLlib, 1 executor x 1 core."


def test_slots_and_tasks_that_do_not_fit_are_counted() -> None:
    sentence, _ = drawn(timelines([mllib(MOST_SLOTS + 3, 1, 2.0)], epochs=40))
    assert "3 slots more than fit are left out." in sentence
    assert "The last 179 tasks are left out." in sentence


def test_the_table_has_every_task_from_the_first_on() -> None:
    found = timelines(MADE)
    rows = list(csv.DictReader(io.StringIO(written(found).decode())))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == sum(len(each.tasks) for each in found)
    assert float(rows[0]["launched"]) == 0.0
    assert {row["kind"] for row in rows} == {"load", "pass"}
    assert written([]).decode() == ",".join(COLUMNS) + "\n"


def test_loading_by_the_number_of_executors() -> None:
    whole = comparison()
    rows = load_rows(whole, timelines(MADE))
    assert [row[1:] for row in rows] == [
        ("6.00 s", "", "9.40 MB", "0 bytes"),
        ("3.00 s", "", "9.40 MB", "4.70 MB"),
        ("1.50 s", "", "9.40 MB", "4.70 MB"),
        ("1.50 s", "", "9.40 MB", "4.70 MB"),
    ]
    assert of_load(whole) == (
        "Spark MLlib, 1 executor x 1 core, float64 needs 6.0 s until its data lies in memory, with 4 executors 1.5 s."
    )


def test_loading_has_the_memory_of_the_largest_process() -> None:
    whole = comparison_of(outcomes([torch_spark(2, 1, 0.3)], epochs=4))
    assert load_rows(whole, [])[0][2] == "894 MiB"


def test_what_no_log_tells_is_empty_or_said() -> None:
    whole = comparison()
    assert load_rows(whole, [])[0][1:] == ("6.00 s", "", "", "")
    found = timelines(MADE)
    assert found[0].load is not None
    found[0] = replace(found[0], load=replace(found[0].load, remote_bytes_read=None))
    assert load_rows(whole, found)[0][4] == "not told"
