"""Configurations by training time and by what else one wants of them: a low price, or a high accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from report.drawing import (
    FITTED,
    INK,
    MUTED,
    PAPER,
    TOLD,
    Figure,
    Palette,
    Spec,
    Table,
    apart,
    data,
    figure,
    layered,
    length,
    log_x,
    share,
    telling,
    texts,
    ticks,
)
from report.price import frontier
from report.words import seconds, title

HEIGHT = 300
MOST_POINTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    platform: str
    label: str
    seconds: float
    value: float
    said: str  # the value with its unit


def pareto_figure(
    points: Sequence[Point], *, name: str, palette: Palette, heading: str, time: str, more_is_better: bool, what: str
) -> Figure | None:
    """None where there are no two points. A line goes along those than which none is better in both."""
    if len(points) < 2:
        return None
    ordered = sorted(points, key=lambda point: (point.seconds, point.label))
    sign = -1 if more_is_better else 1
    best = [ordered[place] for place in frontier([(point.seconds, sign * point.value) for point in ordered])]
    table = Table(
        heads=("configuration", "training time", what, "not beaten in both"),
        rows=tuple(
            (point.label, seconds(point.seconds, 3), point.said, "yes" if point in best else "") for point in ordered
        ),
    )
    said = sentence(ordered, best, what=what)
    shown = [*best, *(point for point in ordered if point not in best)][:MOST_POINTS]
    if len(ordered) > len(shown):
        said += f" {len(shown)} of {len(ordered)} configurations shown; the table has all."
    return figure(
        name, said, table, lambda width: _chart(shown, best, palette, heading, time, not more_is_better, width)
    )


def sentence(points: Sequence[Point], best: Sequence[Point], *, what: str) -> str:
    ends = [f"{each.label} ({seconds(each.seconds)}, {what} {each.said})" for each in (best[0], best[-1])]
    if len(best) == 1:
        return f"{ends[0]} is beaten in neither by any other of {len(points)} configurations."
    return f"{len(best)} of {len(points)} configurations are not beaten in both: from {ends[0]} to {ends[1]}."


def _chart(
    points: Sequence[Point], best: Sequence[Point], palette: Palette, heading: str, time: str, log: bool, width: int
) -> Spec:
    across = [min(point.seconds for point in points) / 1.25, max(point.seconds for point in points) * 1.25]
    values = [point.value for point in points]
    log = log and min(values) > 0
    margin = 0.08 * ((max(values) - min(values)) or abs(max(values)) or 1.0)
    up = [min(values) / 1.3, max(values) * 1.3] if log else [min(values) - margin, max(values) + margin]
    x = log_x("seconds", *across, heading=time, width=width)
    axis: dict[str, Any] = {"values": ticks(*up, pixels=2 * HEIGHT)} if log else {"tickCount": 5}
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(type="log" if log else "linear", domain=up, zero=False, nice=False),
        axis=alt.Axis(title=None, format="~r", **axis),
    )
    drawn = [
        {
            "seconds": p.seconds,
            "value": p.value,
            "colour": palette[p.platform][0],
            "shape": palette[p.platform][1],
            **telling(f"{p.label}: {seconds(p.seconds, 3)}, {p.said}"),
        }
        for p in points
    ]
    marks = {"colour": alt.Color("colour:N", scale=None), "shape": alt.Shape("shape:N", scale=None)}
    layers: list[Any] = [
        alt.Chart(data([{"seconds": p.seconds, "value": p.value} for p in best]))
        .mark_line(color=MUTED, strokeWidth=1, strokeDash=[3, 3], interpolate="step-after")
        .encode(x=x, y=y),
        *_names([*best, *points], x=x, y=y, across=across, up=up, log=log, width=width),
        # Over the names' halos.
        alt.Chart(data(drawn))
        .mark_point(size=70, filled=True, opacity=1, stroke=PAPER, strokeWidth=1)
        .encode(x=x, y=y, color=marks["colour"], shape=marks["shape"], description=TOLD),
    ]
    text = heading + (" (log scale)" if log else "")
    padding = {"left": 2, "right": 12, "top": 4, "bottom": 2}
    return layered(layers, width=width, height=HEIGHT, autosize=FITTED, padding=padding, title=text)


def _names(
    points: Sequence[Point], *, x: Any, y: Any, across: Sequence[float], up: Sequence[float], log: bool, width: float
) -> list[Any]:
    """Each platform's name at the first of its points, of those on the line where it has any there."""
    firsts = list({point.platform: point for point in reversed(points)}.values())
    inner, wide = HEIGHT - 73, width - 66
    wanted = []
    for point in firsts:
        left = wide * share(point.seconds, across, log=True)
        room = left + 10 + length(title(point.platform)) < wide
        place = left + 10 if room else left - 10 - length(title(point.platform))
        wanted.append((place, inner * (1 - share(point.value, up, log=log)) - 10, title(point.platform)))
    layers: list[Any] = []
    for point, wish, place in zip(firsts, wanted, apart(wanted, bottom=inner), strict=True):
        left = wide * share(point.seconds, across, log=True)
        at = [{"seconds": point.seconds, "value": point.value, "text": title(point.platform)}]
        layers += texts(at, x=x, y=y, ink=INK, align="left", dx=wish[0] - left, dy=place - wish[1] - 10)
    return layers
