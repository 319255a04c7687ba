"""Marks tell what they are in titles, which a browser shows without a script; no other label is left in a figure."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import altair as alt
import pytest

from report.drawing import TOLD, Spec, Table, data, figure, in_order, layered, telling
from report.merge import records_table
from report.page import report_files
from tests.report.made import BASELINE, BOTH_ON_SPARK, RUN, outcomes, timelines


def drawn(text: str) -> dict[str, str]:
    """A figure of one dot that tells this and one that tells nothing, as a file and as elements of the page."""

    def chart(width: int) -> Spec:
        dots = [{"x": 1, "y": 1, **telling(text)}]
        told = alt.Chart(data(dots)).mark_point().encode(x="x:Q", y="y:Q", description=TOLD)
        plain = alt.Chart(data([{"x": 2, "y": 2}])).mark_point().encode(x="x:Q", y="y:Q")
        return layered([told, plain], width=width, height=100)

    made = figure("one", "A sentence.", Table(heads=("x",), rows=(("1",),)), chart)
    return {"file": made.files["figures/one.svg"].decode(), "wide": made.wide, "narrow": made.narrow}


@pytest.mark.parametrize("text", ["torch-cpu, 1 thread: 0.52 s", "</title><script>alert(1)</script>", 'a "b" & c > d'])
@pytest.mark.parametrize("what", ["file", "wide", "narrow"])
def test_a_mark_tells_what_it_was_given_and_no_other_does(text: str, what: str) -> None:
    svg = drawn(text)[what]
    root = ElementTree.fromstring(svg)  # noqa: S314 our own
    assert [each.text for each in root.iter() if each.tag.endswith("title")] == [text]
    assert not re.search(r"aria-(?!hidden)|role=", svg)


def test_every_figure_of_a_report_has_marks_that_tell_a_configuration_and_a_value_with_its_unit() -> None:
    files = report_files(records_table(outcomes(BOTH_ON_SPARK)), run=RUN, baseline=BASELINE, timelines=timelines())
    page = files["report.html"].decode()
    figures = [name for name in files if name.endswith(".svg")]
    assert len(figures) == 9
    for name in figures:
        told = re.findall("<title>([^<]*)</title>", files[name].decode())
        assert len(told) >= 6, name
        assert all(re.search(r"\d (s|ms|min|%)|first to beat", text) for text in told), name
        for text in told:
            assert page.count(f"<title>{text}</title>") >= 2, "in the wide and in the narrow one"
    trials = re.findall(
        "<title>Spark MLlib, 2 executors x 1 core, float64, a trial: ", files["figures/seconds.svg"].decode()
    )
    assert len(trials) == 3


def test_labels_of_a_column_keep_their_order_and_cover_none() -> None:
    """Each is 15.2 high: three that want 100 to 102 stand around their mean, and one that is far off stays there."""
    assert in_order([(102, "c"), (100, "a"), (40, "far"), (101, "b")], bottom=300) == pytest.approx(
        [101 + 15.2, 101 - 15.2, 40, 101]
    )
    assert in_order([(299, "a"), (300, "b\nb")], bottom=300) == pytest.approx([308 - 30.4 - 7.6, 308 - 15.2])
    assert in_order([(-5, "a")], bottom=300) == pytest.approx([-0.4])
