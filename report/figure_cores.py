"""Seconds over cores, both on log scales, so that perfect scaling is a straight line: McSherry's picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from report import captions, places
from report.cost import Question
from report.drawing import (
    FITTED,
    INK,
    MOST_LINES,
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
    in_order,
    layered,
    length,
    log_y,
    on_axis_of,
    share,
    telling,
    texts,
    thinned,
)
from report.verdict import Comparison, Row
from report.words import counted, period, resources, seconds, seconds_between, title

MOST_LETTERS = 20  # of a line of a label
# A second and third line of a platform, as of 2 cores an executor, is told from the first by its dashes.
DASHES = alt.Scale(domain=[0, 1, 2, 3], range=[[1, 0], [6, 3], [2, 3], [8, 3, 2, 3]])


def cores_figure(
    comparison: Comparison, *, name: str, palette: Palette, asked: Sequence[Question] = ()
) -> Figure | None:
    """A line for each platform, place and cores an executor; None where no number of cores was varied.

    The baselines are lines across. A ring is where a platform first beats one: its COST.
    """
    lines = lines_of(comparison)
    if len({row["total_cores"] for line in lines for row in line}) < 2:
        return None
    table = Table(
        heads=("platform", "resources", "cores in all", "seconds", "95 % interval", "status"),
        rows=tuple(
            (
                places.titled(row, comparison.ran),
                resources(row),
                str(row["total_cores"] or ""),
                "" if row["rank_by"] is None else seconds(row["rank_by"], 3),
                seconds_between(*comparison.interval(row)),
                row["status"],
            )
            for row in sorted(
                [*(row for line in lines for row in line), *comparison.not_run],
                key=lambda row: (row["platform"], row["executors"] or 0, row["cores"] or 0, row["threads"] or 0),
            )
        ),
    )
    across = [each for each in asked if each.baseline is not None and not each.with_startup]
    rings = _rings(lines[:MOST_LINES], across)
    said = captions.of_cores(comparison) + captions.cut(MOST_LINES, len(lines), "lines")
    if rings:
        said += " A ring is where a platform first beats a baseline."
    return figure(name, said, table, lambda w: _cores_chart(comparison, lines[:MOST_LINES], across, rings, palette, w))


def _rings(lines: Sequence[Sequence[Row]], asked: Sequence[Question]) -> list[dict[str, Any]]:
    drawn = {row["configuration"] for line in lines for row in line}
    winners = [each.winner for question in asked for each in question.costs if each.winner is not None]
    points = [
        {
            "cores": each.row["total_cores"],
            "seconds": each.mean,
            **telling(f"{title(each.row['platform'])}, {resources(each.row)}: first to beat a baseline"),
        }
        for each in winners
        if each.row["configuration"] in drawn
    ]
    return list({tuple(point.values()): point for point in points}.values())


def _cores_chart(
    comparison: Comparison,
    lines: Sequence[Sequence[Row]],
    asked: Sequence[Question],
    rings: list[dict[str, Any]],
    palette: Palette,
    width: int,
) -> Spec:
    height = 320
    points = _points(comparison, lines, palette)
    totals = sorted({point["cores"] for point in points})
    ideals = _ideals(lines)
    values = [point[key] for point in points for key in ("low", "high")] + [point["seconds"] for point in ideals]
    level = [(each.named, each.baseline.mean) for each in asked if each.baseline is not None]
    values += [value for _, value in level]
    low, high = min(values) / 1.25, max(values) * 1.25
    x, across = cores_axis(totals, width=width)
    y = log_y("seconds", low, high, height=height)
    colour, shape = alt.Color("colour:N", scale=None), alt.Shape("shape:N", scale=None)
    dash = alt.StrokeDash("dash:O", scale=DASHES, legend=None)
    labels = [(line[-1]["total_cores"], line[-1]["rank_by"], line_name(comparison, line, lines)) for line in lines]
    layers: list[Any] = [
        alt.Chart(data(ideals))
        .mark_line(color=MUTED, strokeWidth=1, strokeDash=[1, 4], strokeCap="round")
        .encode(x=x, y=y, detail=alt.Detail("line:N"))
    ]
    for text, value in level:
        across_all = alt.Chart(data([{"seconds": value, **telling(f"{text}: {seconds(value, 3)}")}]))
        layers.append(across_all.mark_rule(color=MUTED, strokeDash=[3, 3]).encode(y=y, description=TOLD))
        labels.append((None, value, _cut(text)))
    layers += [
        alt.Chart(data(points))
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=colour, detail=alt.Detail("line:N"), strokeDash=dash),
        alt.Chart(data(points))
        .mark_rule(strokeWidth=2, opacity=0.5)
        .encode(x=x, y=on_axis_of(y, "low"), y2=alt.Y2("high:Q"), color=colour),
        alt.Chart(data(points))
        .mark_point(size=60, filled=True, opacity=1, stroke=PAPER, strokeWidth=1)
        .encode(x=x, y=y, color=colour, shape=shape, description=TOLD),
    ]
    if rings:
        ring = alt.Chart(data(rings)).mark_point(size=230, filled=False, color=INK, strokeWidth=1.5, shape="circle")
        layers.append(ring.encode(x=x, y=y, description=TOLD))
    layers += end_labels(labels, x=x, y=y, across=across, up=[low, high], last=totals[-1], width=width, height=height)
    heading = "seconds " + period(comparison.work, by_pass=comparison.by_pass) + " (log scale)"
    padding = {"left": 8, "right": 12, "top": 4, "bottom": 2}
    return layered(layers, width=width, height=height, autosize=FITTED, padding=padding, title=heading)


def end_labels(
    labels: Sequence[tuple[int | None, float, str]],
    *,
    x: Any,
    y: Any,
    across: Sequence[float],
    up: Sequence[float],
    last: int,
    width: float,
    height: float,
) -> list[Any]:
    """By cores, seconds and text. A label stands right of its line's end: in the margin, if the line goes to the edge.

    Without cores it is of a line through all of them.
    """
    margin = max(length(text) for total, _, text in labels if total in (None, last))
    inner, wide = height - 73, width - 58 - margin
    wanted = [
        (
            wide + 8 if total in (None, last) else wide * share(total, across, log=True) + 10,
            inner * (1 - share(value, up, log=True)),
            text,
        )
        for total, value, text in labels
    ]
    at_edge = [number for number, (total, _, _) in enumerate(labels) if total in (None, last)]
    column = in_order([(wanted[number][1], labels[number][2]) for number in at_edge], bottom=inner)
    settled = dict(zip(at_edge, column, strict=True))
    # What stands at the edge comes first: the rest goes around it.
    order = sorted(range(len(labels)), key=lambda number: number not in settled)
    asked = [(wanted[number][0], settled.get(number, wanted[number][1]), labels[number][2]) for number in order]
    found = dict(zip(order, apart(asked, bottom=inner), strict=True)) | settled
    layers: list[Any] = []
    for (total, value, text), wish, place in zip(
        labels, wanted, map(found.__getitem__, range(len(labels))), strict=True
    ):
        edge = total in (None, last)
        layers += texts(
            [{"cores": total or last, "seconds": value, "text": text}],
            x=alt.XValue("width") if edge else x,
            y=y,
            ink=MUTED if total is None else INK,
            align="left",
            dx=8 if edge else 10,
            dy=place - wish[1] - 7 * text.count("\n"),
        )
    return layers


def cores_axis(totals: Sequence[int], *, width: int) -> tuple[alt.X, list[float]]:
    """Every doubling as wide as the other; and from where to where it goes."""
    first, last = totals[0], totals[-1]
    across = [first / (last / first) ** 0.06, last * (last / first) ** 0.06]
    x = alt.X(
        "cores:Q",
        scale=alt.Scale(type="log", base=2, domain=across, nice=False),
        axis=alt.Axis(
            values=thinned(totals, 8 if width > 500 else 5), format="d", grid=False, title="cores in all (log scale)"
        ),
    )
    return x, across


def _points(comparison: Comparison, lines: Sequence[Sequence[Row]], palette: Palette) -> list[dict[str, Any]]:
    points = []
    what = period(comparison.work, by_pass=comparison.by_pass)
    for number, line in enumerate(lines):
        platform = line[0]["platform"]
        colour, shape = palette[platform]
        same = {"line": number, "colour": colour, "shape": shape}
        dash = sum(other[0]["platform"] == platform for other in lines[:number])
        for row in line:
            low, high = comparison.sample(row).interval()
            at = {"cores": row["total_cores"], "seconds": row["rank_by"]}
            told = telling(f"{comparison.label(row)}: {seconds(row['rank_by'], 3)} {what}")
            points.append({**same, **at, **told, "low": max(low, row["rank_by"] / 10), "high": high, "dash": dash})
    return points


def _ideals(lines: Sequence[Sequence[Row]]) -> list[dict[str, Any]]:
    """Half the time on twice the cores, from a line's first point as far as the line goes."""
    return [
        {"line": number, "cores": cores, "seconds": line[0]["rank_by"] * line[0]["total_cores"] / cores}
        for number, line in enumerate(lines)
        if len(line) > 1
        for cores in (line[0]["total_cores"], line[-1]["total_cores"])
    ]


def lines_of(comparison: Comparison) -> list[list[Row]]:
    """Lines over total cores: one for a platform in one place and its cores an executor."""
    lines = []
    for group in places.sized(comparison):
        per: dict[int, dict[int, Row]] = {}
        for row in group:
            cores = row["cores"] if row["executors"] is not None else None
            # The fastest of several at the same size comes first.
            per.setdefault(cores or 0, {}).setdefault(row["total_cores"], row)
        lines += [[per[cores][total] for total in sorted(per[cores])] for cores in sorted(per)]
    return lines


def line_name(comparison: Comparison, line: Sequence[Row], lines: Sequence[Sequence[Row]]) -> str:
    row = line[0]
    several = row["executors"] is not None and sum(places.key(other[0]) == places.key(row) for other in lines) > 1
    text = title(row["platform"]) + (f",\n{counted(row['cores'], 'core')} each" if several else "")
    for told in map(_cut, places.said(places.place(row, comparison.ran))):
        fits = len(text.rpartition("\n")[2]) + len(f", {told}") <= MOST_LETTERS
        text += f", {told}" if fits else f",\n{told}"
    return text


def _cut(text: str) -> str:
    """The name of a host or a file may be wider than the figure; the marks tell all of it."""
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
