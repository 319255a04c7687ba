"""Where each second goes: a stacked bar for each configuration, from zero, with its floor marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from report import spent
from report.breakdown import FLOOR, OVERHEAD, PRECISION, REST, SLOWER, Breakdown
from report.communication import exchange_seconds
from report.drawing import (
    FITTED,
    INK,
    MUTED,
    PAPER,
    SECONDS,
    TOLD,
    Figure,
    Palette,
    Spec,
    Table,
    data,
    figure,
    layered,
    length,
    on_axis_of,
    telling,
    texts,
)
from report.figure_seconds import most_telling
from report.verdict import Comparison
from report.words import period, seconds

MOST_ROWS = 16
PITCH = 42  # pixels of a row: its caption, and its bar below
LINE = 19  # of the legend
ORDER = (FLOOR, PRECISION, SLOWER, REST, *OVERHEAD)
# Arithmetic is of the platform's colour, the fainter the less it had to be; the rest is of colours of its own.
FAINT = {FLOOR: 1.0, PRECISION: 0.62, SLOWER: 0.34, REST: 0.16}
COLOURS = {
    "comm": "#88ccee",
    "scheduling": "#ddcc77",
    "gc": "#cc6677",
    "serialization": "#44aa99",
    "driver": "#aa4499",
    "other": "#999b9d",
}


def ledger_figure(comparison: Comparison, found: Sequence[Breakdown], *, name: str, palette: Palette) -> Figure | None:
    """None where neither a ledger nor a floor is known of anything."""
    if not found:
        return None
    found = _side_by_side(found)
    rows = [each.row for each in found]
    kept = {row["configuration"] for row in most_telling(comparison, rows, MOST_ROWS)}
    shown = [each for each in found if each.row["configuration"] in kept]
    present = [part for part in ORDER if any(each.parts.get(part) for each in found)]
    probed = any(exchange_seconds(each.row) is not None for each in found)
    table = Table(
        heads=(
            "configuration",
            "seconds " + period(comparison.work, by_pass=comparison.by_pass),
            "floor",
            *map(_head, present),
            *(["its exchange, by the probe"] if probed else []),
        ),
        rows=tuple(
            (
                comparison.label(each.row),
                seconds(each.seconds, 3),
                "" if each.floor is None else seconds(each.floor, 3),
                *(seconds(each.parts[part], 3) if each.parts.get(part) else "" for part in present),
                *([_exchange(each)] if probed else []),
            )
            for each in found
        ),
    )
    sentence = spent.of_ledger(comparison, shown, len(found))
    return figure(name, sentence, table, lambda width: _chart(comparison, shown, present, palette, width))


def _side_by_side(found: Sequence[Breakdown]) -> list[Breakdown]:
    """Fastest first, but what ran on equal executors stands together: there platforms are what differs."""
    groups: dict[tuple[Any, ...], list[Breakdown]] = {}
    for each in found:
        row = each.row
        of = (row["executors"], row["cores"]) if row["executors"] is not None else (row["configuration"],)
        groups.setdefault(of, []).append(each)
    return [each for group in groups.values() for each in group]


def _exchange(each: Breakdown) -> str:
    exchange = exchange_seconds(each.row)
    return "" if exchange is None else seconds(exchange, 3)


def _head(part: str) -> str:
    return {
        FLOOR: "its arithmetic",
        PRECISION: "its precision",
        SLOWER: "slower arithmetic",
        REST: "above the floor",
    }.get(part, part)


def _chart(
    comparison: Comparison, shown: Sequence[Breakdown], present: Sequence[str], palette: Palette, width: int
) -> Spec:
    legend, above = _legend(shown, present, palette, width)
    height = above + PITCH * len(shown)
    longest = max(each.seconds for each in shown)
    ends = [longest, *(each.floor for each in shown if each.floor)]
    heading = "seconds " + period(comparison.work, by_pass=comparison.by_pass)
    x = alt.X(
        "from:Q",
        scale=alt.Scale(domain=[0, max(ends) * 1.02], nice=False),
        axis=alt.Axis(labelExpr=SECONDS, title=heading, tickCount=6 if width > 500 else 4, labelFlush=True),
    )
    y = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False, zero=False), axis=None)
    bars, floors = _marks(comparison, shown, palette, above)
    layers: list[Any] = [
        alt.Chart(data(bars))
        .mark_bar(height=15, stroke=PAPER, strokeWidth=0.8)
        .encode(
            x=x,
            x2=alt.X2("to:Q"),
            y=y,
            color=alt.Color("colour:N", scale=None),
            opacity=alt.Opacity("faint:Q", scale=None),
            description=TOLD,
        )
    ]
    if floors:
        ticks = alt.Chart(data(floors)).mark_tick(thickness=2.2, size=25, orient="vertical", color=INK)
        layers.append(ticks.encode(x=on_axis_of(x, "at"), y=y, description=TOLD))
    heights = [above + PITCH * number + 10 for number in range(len(shown))]
    names = [{"y": at, "text": comparison.label(each.row)} for at, each in zip(heights, shown, strict=True)]
    totals = [{"y": at, "text": seconds(each.seconds)} for at, each in zip(heights, shown, strict=True)]
    layers += texts(names, x=alt.XValue(0), y=y, ink=INK, align="left", fontSize=13, limit=width - 84)
    layers += texts(totals, x=alt.XValue("width"), y=y, ink=INK, align="right", fontSize=13, fontWeight="bold")
    layers += _drawn_legend(legend, y=y)
    return layered(layers, width=width, height=height + 44, autosize=FITTED)


def _marks(
    comparison: Comparison, shown: Sequence[Breakdown], palette: Palette, above: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    bars, floors = [], []
    for number, each in enumerate(shown):
        middle, at = above + PITCH * number + 28, 0.0
        name = comparison.label(each.row)
        for part in ORDER:
            value = each.parts.get(part, 0.0)
            if value:
                colour = COLOURS.get(part) or palette[each.row["platform"]][0]
                told = telling(f"{name}: {seconds(value, 3)} {spent.part_name(part, each)}")
                look = {"colour": colour, "faint": FAINT.get(part, 1.0)}
                bars.append({"y": middle, "from": at, "to": at + value, **look, **told})
                at += value
        if each.floor is not None:
            told = telling(f"{name}: floor of {seconds(each.floor, 3)} in {each.row['precision']}")
            floors.append({"y": middle, "at": each.floor, **told})
    return bars, floors


def _legend(
    shown: Sequence[Breakdown], present: Sequence[str], palette: Palette, width: int
) -> tuple[list[dict[str, Any]], float]:
    """Where each entry stands, broken into lines, and how much room they take."""
    entries: list[dict[str, Any]] = []
    for part in present:
        # Faintness is explained in the colour of the first that has such a part.
        each = next((each for each in shown if each.parts.get(part)), None)
        if each is not None:
            colour = COLOURS.get(part) or palette[each.row["platform"]][0]
            text = spent.part_name(part, each)
            if part == FLOOR and len({each.reference for each in shown}) > 1:
                text = text.rpartition(" in ")[0]
            entries.append({"text": text, "colour": colour, "faint": FAINT.get(part, 1.0)})
    if any(each.floor is not None for each in shown):
        entries.append({"text": "floor, in its own precision", "colour": None, "faint": 1.0})
    left, line, placed = 0.0, 0, []
    for entry in entries:
        wide = 17 + length(entry["text"]) + 14
        if left and left + wide - 14 > width:
            left, line = 0.0, line + 1
        placed.append({**entry, "left": left, "y": 8 + LINE * line})
        left += wide
    return placed, LINE * (line + 1) + 12


def _drawn_legend(legend: Sequence[dict[str, Any]], *, y: Any) -> list[Any]:
    layers: list[Any] = []
    for entry in legend:
        at = data([{"y": entry["y"], "text": entry["text"]}])
        if entry["colour"] is None:
            mark = alt.Chart(at).mark_tick(thickness=2.2, size=13, orient="vertical", color=INK)
        else:
            mark = alt.Chart(at).mark_square(size=110, color=entry["colour"], opacity=entry["faint"])
        text = alt.Chart(at).mark_text(align="left", baseline="middle", fontSize=12, color=MUTED)
        layers.append(mark.encode(x=alt.XValue(entry["left"] + 6), y=y))
        layers.append(text.encode(x=alt.XValue(entry["left"] + 17), y=y, text=alt.Text("text:N")))
    return layers
