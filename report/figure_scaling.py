"""What scaling leaves to gain: measured points, beside compute / n + the measured exchange as a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from report import places
from report.captions import cut
from report.communication import Point, of_scaling, points
from report.drawing import (
    FITTED,
    MOST_LINES,
    PAPER,
    TOLD,
    Figure,
    Palette,
    Spec,
    Table,
    data,
    figure,
    layered,
    log_y,
    on_axis_of,
    telling,
)
from report.figure_cores import DASHES, cores_axis, end_labels, line_name, lines_of
from report.verdict import Comparison
from report.words import percent, period, resources, seconds

Line = Sequence[Point]


def scaling_figure(comparison: Comparison, *, name: str, palette: Palette) -> Figure | None:
    """A line for each platform, place and cores an executor; None where there is nothing to predict another size by."""
    lines = _lines(comparison)
    if not lines:
        return None
    table = Table(
        heads=("configuration", "seconds", "compute / n", "exchange, by the probe", "the two", "exchange of an epoch"),
        rows=tuple(
            (
                f"{places.titled(point.row, comparison.ran)}, {resources(point.row)}",
                seconds(point.row["rank_by"], 3),
                seconds(point.compute, 3),
                seconds(point.exchange, 3),
                seconds(point.predicted, 3),
                percent(point.exchange / point.row["rank_by"], 2),
            )
            for line in lines
            for point in line
        ),
    )
    sentence = of_scaling(lines, among=comparison.ran) + cut(MOST_LINES, len(lines), "lines")
    return figure(name, sentence, table, lambda width: _chart(comparison, lines[:MOST_LINES], palette, width))


def _lines(comparison: Comparison) -> list[Line]:
    """As the figure of cores has them; only of platforms that ran in more than one size there."""
    measured = lines_of(comparison)
    in_place: dict[tuple[Any, ...], dict[int, Point]] = {}
    for key in dict.fromkeys(places.key(line[0]) for line in measured):
        found = points(row for line in measured if places.key(line[0]) == key for row in line)
        if len({point.row["total_cores"] for point in found}) > 1:
            in_place[key] = {point.row["configuration"]: point for point in found}
    lines = [
        [known[row["configuration"]] for row in line if row["configuration"] in known]
        for line in measured
        if (known := in_place.get(places.key(line[0]), {}))
    ]
    return [line for line in lines if line]


def _chart(comparison: Comparison, lines: Sequence[Line], palette: Palette, width: int) -> Spec:
    height = 320
    measured, predicted = _marks(comparison, lines, palette)
    totals = sorted({point["cores"] for point in measured})
    values = [point[key] for point in measured for key in ("low", "high")] + [point["seconds"] for point in predicted]
    low, high = min(values) / 1.25, max(values) * 1.25
    x, across = cores_axis(totals, width=width)
    y = log_y("seconds", low, high, height=height)
    colour, shape = alt.Color("colour:N", scale=None), alt.Shape("shape:N", scale=None)
    rows = [[point.row for point in line] for line in lines]
    labels = [
        (line[-1].row["total_cores"], line[-1].predicted, line_name(comparison, own, rows))
        for line, own in zip(lines, rows, strict=True)
    ]
    layers: list[Any] = [
        alt.Chart(data(predicted))
        .mark_line(strokeWidth=1.6)
        .encode(
            x=x,
            y=y,
            color=colour,
            detail=alt.Detail("line:N"),
            strokeDash=alt.StrokeDash("dash:O", scale=DASHES, legend=None),
        ),
        alt.Chart(data(measured))
        .mark_rule(strokeWidth=2, opacity=0.5)
        .encode(x=x, y=on_axis_of(y, "low"), y2=alt.Y2("high:Q"), color=colour),
        alt.Chart(data(measured))
        .mark_point(size=64, filled=True, opacity=1, stroke=PAPER, strokeWidth=1)
        .encode(x=x, y=y, color=colour, shape=shape, description=TOLD),
        *end_labels(
            labels, x=x, y=y, across=across, up=[low, high], last=totals[-1], width=width, height=height
        ),
    ]  # fmt: skip
    heading = "seconds " + period(comparison.work, by_pass=comparison.by_pass) + " (log scale)"
    padding = {"left": 8, "right": 12, "top": 4, "bottom": 2}
    return layered(layers, width=width, height=height, autosize=FITTED, padding=padding, title=heading)


def _marks(
    comparison: Comparison, lines: Sequence[Line], palette: Palette
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What was measured, and what was to be expected of it."""
    measured, predicted = [], []
    for number, line in enumerate(lines):
        platform = line[0].row["platform"]
        colour, shape = palette[platform]
        same = {"line": number, "colour": colour, "shape": shape}
        dash = sum(other[0].row["platform"] == platform for other in lines[:number])
        for point in line:
            at, took = {**same, "cores": point.row["total_cores"]}, point.row["rank_by"]
            low, high = comparison.sample(point.row).interval()
            said = f"{comparison.label(point.row)}: {seconds(took, 3)}, where arithmetic and exchange are"
            told = telling(f"{said} {seconds(point.predicted, 3)}")
            measured.append({**at, **told, "seconds": took, "low": max(low, took / 10), "high": high})
            predicted.append({**at, "seconds": point.predicted, "dash": dash})
        first = _first(lines, line[0])
        if first.row["total_cores"] < line[0].row["total_cores"]:
            # Executors of more cores are expected from the smallest of all, too.
            predicted.append({**same, "cores": first.row["total_cores"], "seconds": first.predicted, "dash": dash})
    return measured, predicted


def _first(lines: Sequence[Line], beside: Point) -> Point:
    every = [point for line in lines for point in line if places.key(point.row) == places.key(beside.row)]
    return min(every, key=lambda point: (point.row["total_cores"], point.row["executors"]))
