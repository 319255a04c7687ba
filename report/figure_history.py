"""One configuration over runs: each run's mean with its interval, its levels as lines, and where they changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np

from report.drawing import (
    FITTED,
    GRID,
    INK,
    MUTED,
    SECONDS,
    TOLD,
    Figure,
    Palette,
    Spec,
    Table,
    data,
    figure,
    layered,
    on_axis_of,
    telling,
    texts,
    ticks,
)
from report.history import Point, Series
from report.history_words import change, standing
from report.statistics import Sample
from report.words import counted, seconds, seconds_between, signed_percent

MOST_RUNS = 100  # drawn: the newest
HEIGHT = 210
FLATTEST = 1.16  # top over bottom of the scale, at least: a spread of some percent shall not look like much


def history_figure(each: Series, *, name: str, palette: Palette) -> Figure:
    """One configuration over runs: each run's mean with its interval, its levels, and where they changed."""
    points = each.points[-MOST_RUNS:]
    table = Table(
        heads=("run", "begun", f"seconds {each.unit}", "95 % interval", "trials", "status"),
        rows=tuple(_row(point) for point in reversed(each.points)),
    )
    return figure(
        name, sentence(each, len(points)), table, lambda width: _chart(each, points, palette, width), as_files=False
    )


def sentence(each: Series, shown: int) -> str:
    """What the figure shows, and what it tells."""
    timed = each.timed
    drawn = f", the last {shown} drawn" if shown < len(each.points) else ""
    about = f"{each.name}: {counted(len(timed), 'run')} with a time{drawn}"
    if not each.shifts:
        return f"{about}; no change found, {standing(each)} for the newest run."
    last = each.shifts[-1]
    others = f" and {counted(len(each.shifts) - 1, 'earlier change')}" if len(each.shifts) > 1 else ""
    return f"{about}; {change(last.size)} since run {last.run_id} of {last.begun_at:%Y-%m-%d}{others}."


def _row(point: Point) -> tuple[str, ...]:
    low, high = Sample.of(point.values).interval() if len(point.values) > 1 else (None, None)
    return (
        point.run_id,
        f"{point.begun_at:%Y-%m-%d %H:%M}",
        "" if point.mean is None else seconds(point.mean, 3),
        seconds_between(low, high),
        str(len(point.values)),
        point.status,
    )


def _chart(each: Series, points: Sequence[Point], palette: Palette, width: int) -> Spec:
    colour, shape = palette[each.identity["platform"]]
    marks = _marks(points)
    low = min(mark["low"] for mark in marks)
    high = max(mark["high"] for mark in marks)
    middle, half = (low * high) ** 0.5, max((high / low) ** 0.62, FLATTEST**0.5)
    bottom, top = middle / half, middle * half
    x = alt.X(
        "run:Q",
        scale=alt.Scale(domain=[0.5, len(points) + 0.5], nice=False),
        axis=alt.Axis(title="runs, the newest at the right", format="d", tickMinStep=1, grid=False, tickCount=6),
    )
    y = alt.Y(
        "seconds:Q",
        scale=alt.Scale(type="log", domain=[bottom, top], nice=False),
        axis=alt.Axis(values=ticks(bottom, top, pixels=2 * HEIGHT), labelExpr=SECONDS, title=None),
    )
    spans, shifts = _levels(each, points)
    layers: list[Any] = []
    if shifts:
        layers.append(alt.Chart(data(shifts)).mark_rule(color=MUTED, strokeDash=[3, 3]).encode(x=x))
    layers += [
        alt.Chart(data(spans))
        .mark_rule(color=INK, strokeWidth=1.4)
        .encode(x=on_axis_of(x, "begin"), x2=alt.X2("end:Q"), y=y),
        alt.Chart(data(marks))
        .mark_rule(color=colour, strokeWidth=3, opacity=0.3)
        .encode(x=x, y=on_axis_of(y, "low"), y2=alt.Y2("high:Q")),
        alt.Chart(data(marks))
        .mark_point(size=42, filled=True, color=colour, shape=shape, opacity=0.95)
        .encode(x=x, y=y, description=TOLD),
    ]
    if missing := [{"run": at, "text": "x"} for at, point in enumerate(points, 1) if not point.values]:
        layers.append(
            alt.Chart(data(missing))
            .mark_text(color=MUTED, fontSize=13, dy=-7)
            .encode(x=x, y=alt.YValue("height"), text=alt.Text("text:N"))
        )
    for mark in shifts:
        right = mark["run"] > 0.6 * len(points)
        layers += texts(
            [{**mark, "seconds": top}],
            x=x,
            y=y,
            ink=INK,
            align="right" if right else "left",
            dx=-5 if right else 5,
            dy=8,
        )
    heading = f"seconds {each.unit} (log scale)" + ("; x: no time" if missing else "")
    layers.append(alt.Chart(data([{"seconds": bottom}])).mark_rule(color=GRID).encode(y=y))
    return layered(layers, width=width, height=HEIGHT + 60, autosize=FITTED, title=heading)


def _marks(points: Sequence[Point]) -> list[dict[str, Any]]:
    found = []
    for at, point in enumerate(points, 1):
        if point.mean is not None:
            low, high = Sample.of(point.values).interval()
            # An interval of two trials may reach far, and below zero; the scale is of the means.
            found.append(
                {
                    "run": at,
                    "seconds": point.mean,
                    "low": max(low, point.mean / 1.5),
                    "high": min(high, point.mean * 1.5),
                    **telling(f"run {point.run_id}, {point.begun_at:%Y-%m-%d}: {seconds(point.mean, 3)}"),
                }
            )
    return found


def _levels(each: Series, points: Sequence[Point]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The mean of every level from its first to its last run, and a mark between two of them."""
    place = {point.run_id: at for at, point in enumerate(points, 1)}
    timed = each.timed
    edges = [0, *each.moved, len(timed)]
    spans = []
    for begin, end in pairwise(edges):
        inside = [point for point in timed[begin:end] if point.run_id in place]
        if inside:
            mean = float(np.mean([value for point in timed[begin:end] for value in point.values]))
            first, last = place[inside[0].run_id], place[inside[-1].run_id]
            spans.append({"begin": first - 0.4, "end": last + 0.4, "seconds": mean})
    shifts = [
        {"run": place[moved.run_id] - 0.5, "text": f"{signed_percent(moved.size.ratio - 1)}, {moved.begun_at:%Y-%m-%d}"}
        for moved in each.shifts
        if moved.run_id in place
    ]
    return spans, shifts
