"""How far the trials of each configuration lie apart: boxes around their median, in percent, on one scale for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from report import captions
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
    on_axis_of,
    telling,
    texts,
)
from report.figure_seconds import most_telling
from report.verdict import Comparison, Row
from report.words import percent, period, seconds, signed_percent

MOST_ROWS = 16
PITCH = 40  # pixels of a row: its caption, and its box below
LEAST_BOXED = 5  # the quartiles of fewer trials are made of single trials
REACH = 1.5  # of whiskers, in boxes (Tukey 1977)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The trials of a configuration; whiskers end at the last trial within their reach."""

    row: Row
    values: tuple[float, ...]
    quartiles: tuple[float, float, float]
    whiskers: tuple[float, float]
    spread: float  # standard deviation over mean

    @property
    def is_boxed(self) -> bool:
        return len(self.values) >= LEAST_BOXED

    @property
    def outside(self) -> int:
        return sum(not self.whiskers[0] <= value <= self.whiskers[1] for value in self.values) if self.is_boxed else 0

    def away(self, value: float) -> float:
        """From the median, as a share of it."""
        return value / self.quartiles[1] - 1


def box(row: Row, values: Sequence[float]) -> Box:
    first, median, third = (float(value) for value in np.quantile(values, (0.25, 0.5, 0.75)))
    reach = REACH * (third - first)
    near = [value for value in values if first - reach <= value <= third + reach]
    return Box(
        row=row,
        values=tuple(values),
        quartiles=(first, median, third),
        whiskers=(min(*near, first), max(*near, third)) if len(values) >= LEAST_BOXED else (min(values), max(values)),
        spread=float(np.std(values, ddof=1) / np.mean(values)),
    )


def boxes_figure(comparison: Comparison, *, name: str, palette: Palette) -> Figure | None:
    """None where no configuration ran more than once."""
    boxes = [box(row, values) for row in comparison.ran if len(values := comparison.values(row)) > 1]
    if not boxes:
        return None
    shown = _shown(comparison, boxes)
    what = period(comparison.work, by_pass=comparison.by_pass)
    table = Table(
        heads=("configuration", "trials", f"least {what}", "first quartile", "median", "third quartile", "most",
               "deviation over mean", "outside the whiskers"),
        rows=tuple(
            (
                comparison.label(each.row),
                str(len(each.values)),
                *(seconds(value, 4) for value in (min(each.values), *each.quartiles, max(each.values))),
                percent(each.spread, 2),
                str(each.outside) if each.is_boxed else "",
            )
            for each in boxes
        ),
    )  # fmt: skip
    return figure(
        name, _sentence(comparison, boxes, len(shown)), table, lambda w: _chart(comparison, shown, palette, w)
    )


def _shown(comparison: Comparison, boxes: Sequence[Box]) -> list[Box]:
    """All of them, or the most telling, with those that the sentence names."""
    named = _extremes(boxes)
    room = MOST_ROWS if len(boxes) <= MOST_ROWS else MOST_ROWS - len(named)
    telling = most_telling(comparison, [each.row for each in boxes], room)
    kept = {row["configuration"] for row in (*telling, *(each.row for each in named))}
    return [each for each in boxes if each.row["configuration"] in kept]


def _extremes(boxes: Sequence[Box]) -> tuple[Box, Box]:
    """The widest and the closest."""
    return max(boxes, key=lambda each: each.spread), min(boxes, key=lambda each: each.spread)


def _sentence(comparison: Comparison, boxes: Sequence[Box], shown: int) -> str:
    widest, closest = _extremes(boxes)
    said = f"The trials of {comparison.label(widest.row)} lie furthest apart, {_between(widest)} of their median"
    if len(boxes) > 1:
        said += f"; those of {comparison.label(closest.row)} closest together, {_between(closest)}"
    outside = sum(each.outside for each in boxes)
    boxed = sum(len(each.values) for each in boxes if each.is_boxed)
    if boxed:
        said += f"; {outside or 'none'} of {boxed:,} trials {'lies' if outside == 1 else 'lie'} outside the whiskers"
    return f"{said}.{captions.cut(shown, len(boxes), 'configurations')}"


def _between(each: Box) -> str:
    low, high = each.away(min(each.values)), each.away(max(each.values))
    return f"between {signed_percent(low)} and {signed_percent(high)}"


def _chart(comparison: Comparison, shown: Sequence[Box], palette: Palette, width: int) -> Spec:
    height = PITCH * len(shown)
    dots, whiskers, bars, medians = _marks(comparison, shown, palette)
    # Trials that are all alike still need a scale.
    edge = 1.12 * max(0.5, *(abs(dot["away"]) for dot in dots))
    x = alt.X(
        "away:Q",
        scale=alt.Scale(domain=[-edge, edge], nice=False),
        axis=alt.Axis(
            title="distance from the median of a configuration's trials",
            labelExpr="(datum.value > 0 ? '+' : '') + format(datum.value, '~g') + ' %'",
            tickCount=7 if width > 500 else 5,
        ),
    )
    y = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False, zero=False), axis=None)
    colour, shape = alt.Color("colour:N", scale=None), alt.Shape("shape:N", scale=None)
    start, end = on_axis_of(x, "low"), alt.X2("high:Q")
    rules = [{"y": mark["y"]} for mark in whiskers]
    layers: list[Any] = [
        alt.Chart(data(rules)).mark_rule(color=GRID).encode(x=alt.XValue(0), x2=alt.X2Value("width"), y=y),
        alt.Chart(data([{"away": 0.0}])).mark_rule(color=MUTED).encode(x=x),
        alt.Chart(data(whiskers)).mark_rule(strokeWidth=2).encode(x=start, x2=end, y=y, color=colour),
    ]
    if bars:
        layers += [
            alt.Chart(data(bars))
            .mark_bar(height=13, opacity=0.28, cornerRadius=2)
            .encode(x=start, x2=end, y=y, color=colour, description=TOLD),
            alt.Chart(data(medians))
            .mark_tick(thickness=2, size=17, orient="vertical", color=INK)
            .encode(x=x, y=y, description=TOLD),
        ]
    marks = alt.Chart(data(dots)).mark_point(size=34, opacity=0.8, filled=True)
    layers.append(marks.encode(x=x, y=y, color=colour, shape=shape, description=TOLD))
    heights = [PITCH * number + 10 for number in range(len(shown))]
    names = [{"y": at, "text": comparison.label(each.row)} for at, each in zip(heights, shown, strict=True)]
    spreads = [{"y": at, "text": percent(each.spread, 2)} for at, each in zip(heights, shown, strict=True)]
    layers += texts(names, x=alt.XValue(0), y=y, ink=INK, align="left", fontSize=13, limit=width - 84)
    layers += texts(spreads, x=alt.XValue("width"), y=y, ink=INK, align="right", fontSize=13, fontWeight="bold")
    heading = "trials around their median; on the right their standard deviation over their mean"
    return layered(layers, width=width, height=height + 62, autosize=FITTED, title=_folded(heading, width))


def _folded(heading: str, width: int) -> list[str]:
    """In two lines where one is too long."""
    return [heading] if width > 500 else heading.split("; ")


def _marks(comparison: Comparison, shown: Sequence[Box], palette: Palette) -> tuple[list[dict[str, Any]], ...]:
    dots: list[dict[str, Any]] = []
    whiskers, bars, medians = [], [], []
    for number, each in enumerate(shown):
        colour, shape = palette[each.row["platform"]]
        common = {"y": PITCH * number + 27, "colour": colour, "shape": shape}
        low, high = (100 * each.away(value) for value in each.whiskers)
        name = comparison.label(each.row)
        dots += [
            {
                **common,
                "away": 100 * each.away(value),
                **telling(f"{name}, a trial: {seconds(value, 4)}, {signed_percent(each.away(value))} from the median"),
            }
            for value in each.values
        ]
        whiskers.append({**common, "low": low, "high": high})
        if each.is_boxed:
            first, third = (100 * each.away(value) for value in (each.quartiles[0], each.quartiles[2]))
            low_said, middle, high_said = (seconds(value, 4) for value in each.quartiles)
            box_said = telling(f"{name}: the middle half of the trials, {low_said} to {high_said}")
            bars.append({**common, **box_said, "low": first, "high": third})
            medians.append({**common, **telling(f"{name}: median {middle}"), "away": 0.0})
    return dots, whiskers, bars, medians
