"""Every trial a dot, the interval of their mean a bar, on a log scale, fastest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from report import captions, places
from report.drawing import (
    FITTED,
    GRID,
    INK,
    MUTED,
    TOLD,
    Figure,
    Palette,
    Spec,
    Table,
    data,
    figure,
    layered,
    log_x,
    on_axis_of,
    telling,
    texts,
)
from report.verdict import Comparison, Row
from report.words import distinct_seconds, label, period, seconds, seconds_between

MOST_ROWS = 24
PITCH = 40  # pixels of a row: its caption, and its dots below


def seconds_figure(comparison: Comparison, *, name: str, palette: Palette) -> Figure:
    """Every trial a dot, the interval of their mean a bar, on a log scale, fastest first."""
    shown = most_telling(comparison, comparison.ran, MOST_ROWS)
    sentence = captions.of_seconds(comparison, len(shown))
    what = period(comparison.work, by_pass=comparison.by_pass)
    table = Table(
        heads=("configuration", f"seconds {what}", "95 % interval", "trials", "status"),
        rows=tuple(
            (
                comparison.label(row),
                "" if row["rank_by"] is None else seconds(row["rank_by"], 3),
                seconds_between(*comparison.interval(row)),
                str(row["trials"]),
                row["status"],
            )
            for row in (*comparison.ran, *comparison.not_run)
        ),
    )
    return figure(name, sentence, table, lambda width: _seconds_chart(comparison, shown, palette, width))


def _seconds_chart(comparison: Comparison, shown: Sequence[Row], palette: Palette, width: int) -> Spec:
    lines = _references(comparison)
    above = 17 * len(lines) + (6 if lines else 0)
    height = above + PITCH * len(shown)
    dots, bars = _marks(comparison, shown, palette, above)
    low = min(mark[key] for marks, key in ((dots, "seconds"), (bars, "low")) for mark in marks)
    high = max(low * 1.05, *(mark[key] for marks, key in ((dots, "seconds"), (bars, "high")) for mark in marks))
    span = (high / low) ** 0.04
    heading = "seconds " + period(comparison.work, by_pass=comparison.by_pass)
    x = log_x("seconds", low / span, high * span, heading=heading, width=width)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False, zero=False), axis=None)
    colour, shape = alt.Color("colour:N", scale=None), alt.Shape("shape:N", scale=None)
    layers: list[Any] = [
        alt.Chart(data(bars)).mark_rule(color=GRID).encode(x=alt.XValue(0), x2=alt.X2Value("width"), y=y),
        *_drawn_references(lines, x=x, y=y, height=height, middle=(low * high) ** 0.5),
        alt.Chart(data(bars))
        .mark_bar(height=9, opacity=0.28, cornerRadius=4.5)
        .encode(x=on_axis_of(x, "low"), x2=alt.X2("high:Q"), y=y, color=colour, description=TOLD),
        alt.Chart(data(dots))
        .mark_point(size=42, opacity=0.75, filled=True)
        .encode(x=x, y=y, color=colour, shape=shape, description=TOLD),
        alt.Chart(data(bars))
        .mark_tick(thickness=2, size=17, orient="vertical", color=INK)
        .encode(x=x, y=y, description=TOLD),
    ]
    said = distinct_seconds([row["rank_by"] for row in shown])
    heights = [above + PITCH * number + 10 for number in range(len(shown))]
    names = [{"y": at, "text": comparison.label(row)} for at, row in zip(heights, shown, strict=True)]
    times = [{"y": at, "text": text} for at, text in zip(heights, said, strict=True)]
    layers += texts(names, x=alt.XValue(0), y=y, ink=INK, align="left", fontSize=13, limit=width - 84)
    layers += texts(times, x=alt.XValue("width"), y=y, ink=INK, align="right", fontSize=13, fontWeight="bold")
    return layered(layers, width=width, height=height + 44, autosize=FITTED)


def _references(comparison: Comparison) -> list[tuple[str, Row]]:
    """What the others are compared with, as lines through all rows."""
    lines = [("baseline", comparison.baseline), ("most threads", comparison.machine)]
    if comparison.machine is comparison.baseline:
        lines.pop()
    return [
        (f"{word}: {label(row, varying=tuple(places.place(row, comparison.ran)))}", row)
        for word, row in lines
        if row is not None
    ]


def _marks(
    comparison: Comparison, shown: Sequence[Row], palette: Palette, above: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A dot for each trial, and for each configuration a bar from end to end of its interval."""
    dots: list[dict[str, Any]] = []
    bars: list[dict[str, Any]] = []
    what = period(comparison.work, by_pass=comparison.by_pass)
    for number, row in enumerate(shown):
        colour, shape = palette[row["platform"]]
        common = {"y": above + PITCH * number + 27, "colour": colour, "shape": shape}
        low, high = comparison.sample(row).interval()
        name = comparison.label(row)
        dots += [
            {**common, "seconds": value, **telling(f"{name}, a trial: {seconds(value, 3)} {what}")}
            for value in comparison.values(row)
        ]
        told = telling(f"{name}: {_mean(comparison, row)} {what}")
        # An interval of two trials may reach below zero, and a log scale does not.
        bars.append({**common, **told, "seconds": row["rank_by"], "low": max(low, row["rank_by"] / 10), "high": high})
    return dots, bars


def _mean(comparison: Comparison, row: Row) -> str:
    between = seconds_between(*comparison.interval(row))
    return seconds(row["rank_by"], 3) + (f" ({between})" if between else "")


def _drawn_references(lines: Sequence[tuple[str, Row]], *, x: Any, y: Any, height: float, middle: float) -> list[Any]:
    rules: list[Any] = []
    labels: list[Any] = []
    for number, (text, row) in enumerate(lines):
        at = {"seconds": row["rank_by"], "text": text}
        told = telling(f"{at['text']}, {seconds(row['rank_by'], 3)}")
        top = 12 + 17 * number
        line = [{**at, **told, "y": top + 5, "end": height}]
        rule = alt.Chart(data(line)).mark_rule(color=MUTED, strokeDash=[3, 3])
        rules.append(rule.encode(x=x, y=y, y2=alt.Y2("end:Q"), description=TOLD))
        right = row["rank_by"] > middle
        align, shift = ("right", 3) if right else ("left", -3)
        labels += texts([{**at, "y": top}], x=x, y=y, ink=MUTED, align=align, dx=shift)
    return [*rules, *labels]


def most_telling(comparison: Comparison, rows: Sequence[Row], most: int) -> list[Row]:
    """All of these, or the best of each platform, what others are compared with, and the fastest."""
    if len(rows) <= most:
        return list(rows)
    there = {row["configuration"] for row in rows}
    must = [standing.best["configuration"] for standing in comparison.standings]
    must += [row["configuration"] for row in (comparison.baseline, comparison.machine) if row is not None]
    must += [row["configuration"] for row in rows]
    keep = [name for name in dict.fromkeys(must) if name in there][:most]
    return [row for row in rows if row["configuration"] in keep]
