"""How far models are off on configurations that they have not seen, over what was measured: zero is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from report.captions import cut
from report.drawing import (
    FITTED,
    MUTED,
    PAPER,
    TOLD,
    Figure,
    Palette,
    Spec,
    Table,
    data,
    figure,
    layered,
    log_x,
    telling,
    thinned,
)
from report.predictions import HeldOut, Series, named
from report.words import counted, label, percent, seconds, signed_percent, title

MOST_POINTS = 300
MOST_TOLD = 6
MOST_PERCENT = 200.0


def predicted_figure(found: Sequence[Series], *, name: str, palette: Palette) -> Figure | None:
    """A point for each configuration, predicted by all others of its kind; None where there is no model."""
    whole = [(series, each) for series in found for each in series.held_out]
    if not whole:
        return None
    shown = thinned(whole, MOST_POINTS)
    table = Table(
        heads=("configuration", "measured", "predicted by the others", "error"),
        rows=tuple(
            (
                described(each),
                seconds(each.point.seconds, 3),
                seconds(each.predicted, 3) if each.predicted > 0 else "nothing",
                signed_percent(each.predicted / each.point.seconds - 1),
            )
            for _, each in whole
        ),
    )
    sentence = of_predictions(found) + cut(len(shown), len(whole), "configurations")
    return figure(name, sentence, table, lambda width: _chart(shown, palette, width))


def of_predictions(found: Sequence[Series]) -> str:
    """How far off the model of each kind is: the median, and its largest configuration."""
    said = [
        f"{named(series)}, {counted(len(series.held_out), 'configuration')}: {percent(series.error, 2)}, and "
        f"{percent(series.largest.error, 2)} for the largest"
        for series in found
        if series.held_out
    ]
    more = [f"{len(said) - MOST_TOLD} more kinds are in the table"] if len(said) > MOST_TOLD else []
    return f"Median error of what was held out: {'; '.join([*said[:MOST_TOLD], *more])}."


def described(each: HeldOut) -> str:
    row = each.point.row or {}
    return f"{label(row)}, {row['rows']:,} rows of {row['dataset']}, {row['network']}"


def _chart(shown: Sequence[tuple[Series, HeldOut]], palette: Palette, width: int) -> Spec:
    height = 280
    points: list[dict[str, Any]] = []
    for series, each in shown:
        colour, shape = palette[series.of["platform"]]
        off = 100 * (each.predicted / each.point.seconds - 1)
        # One that is far off would press all others together.
        off = min(off, MOST_PERCENT)
        at = {"measured": each.point.seconds, "off": off, "platform": title(series.of["platform"])}
        guess = seconds(each.predicted, 3) if each.predicted > 0 else "nothing"
        told = telling(f"{described(each)}: measured {seconds(each.point.seconds, 3)}, predicted {guess}")
        points.append({**at, **told, "colour": colour, "shape": shape})
    measured = [point["measured"] for point in points]
    x = log_x("measured", min(measured) / 1.15, max(measured) * 1.15, heading="measured", width=width)
    most = max(5.0, *(abs(point["off"]) for point in points)) * 1.15
    y = alt.Y(
        "off:Q",
        scale=alt.Scale(domain=[-most, most], nice=False),
        axis=alt.Axis(
            title=None, tickCount=5, labelExpr="(datum.value > 0 ? '+' : '') + format(datum.value, '~g') + ' %'"
        ),
    )
    names = list(dict.fromkeys((point["platform"], point["colour"], point["shape"]) for point in points))
    legend = alt.Legend(title=None, orient="top", direction="horizontal", columns=3 if width > 500 else 2)
    domain = [name for name, _, _ in names]
    layers: list[Any] = [
        alt.Chart(data([{"off": 0.0}])).mark_rule(color=MUTED, strokeDash=[3, 3]).encode(y=y),
        alt.Chart(data(points))
        .mark_point(size=60, filled=True, opacity=0.85, stroke=PAPER, strokeWidth=1)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "platform:N", scale=alt.Scale(domain=domain, range=[each[1] for each in names]), legend=legend
            ),
            shape=alt.Shape(
                "platform:N", scale=alt.Scale(domain=domain, range=[each[2] for each in names]), legend=legend
            ),
            description=TOLD,
        ),
    ]
    padding = {"left": 2, "right": 12, "top": 4, "bottom": 2}
    heading = "predicted by the others, against measured"
    return layered(layers, width=width, height=height, autosize=FITTED, padding=padding, title=heading)
