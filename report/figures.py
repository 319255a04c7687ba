"""The figures: each in a wide and a narrow variant, whose ink is the page's own, and as a file of its own."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl
import vl_convert
from altair.utils.schemapi import debug_mode

from report import sentences
from report.statistics import interval
from report.verdict import Comparison, Row
from report.words import distinct_seconds, label, period, resources, seconds, seconds_between, title

WIDE, NARROW = 680, 344
MOST_ROWS, MOST_POINTS, MOST_LINES = 24, 400, 8
# Okabe and Ito's palette, the colours that are faint on white last.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000001", "#f0e442")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "circle", "square")
# The platforms we know keep their colour from run to run.
FIRST = ("torch-cpu", "mllib", "torch-cuda", "torch-spark", "numpy", "keras")

# Colours that stand for the page's: each is replaced once a figure is drawn.
INK, MUTED, GRID, PAPER = "#010203", "#040506", "#070809", "#0a0b0c"
ON_PAGE = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    PAPER: "var(--paper)",
    **{colour: f"var(--platform-{number})" for number, colour in enumerate(PALETTE)},
}
AS_FILE = {INK: "#1c2126", MUTED: "#5d666f", GRID: "#e2e4e6", PAPER: "#ffffff"}
SECONDS = (
    "datum.value > 0 && datum.value < 0.0995 ? format(datum.value * 1000, '~g') + ' ms' : "
    "datum.value > 120 ? format(datum.value / 60, ',~g') + ' min' : format(datum.value, '~g') + ' s'"
)
# A second and third line of a platform, as of 2 cores an executor, is told from the first by its dashes.
DASHES = alt.Scale(domain=[0, 1, 2, 3], range=[[1, 0], [6, 3], [2, 3], [8, 3, 2, 3]])
FONT = "system-ui, sans-serif"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a figure shows, as a table behind it."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    name: str
    sentence: str
    table: Table
    wide: str  # SVG elements for the page
    narrow: str
    files: dict[str, bytes]


def colours(platforms: Sequence[str]) -> dict[str, tuple[str, str]]:
    """A colour and a shape for each platform: for print in black and white, and for whoever sees no colours."""
    known = [name for name in FIRST if name in platforms]
    order = [*known, *sorted(set(platforms) - set(known))]
    taken = {name: FIRST.index(name) for name in known}
    free = [place for place in range(len(PALETTE)) if place not in taken.values()] or list(range(len(PALETTE)))
    for number, name in enumerate(order[len(known) :]):
        taken[name] = free[number % len(free)]
    return {name: (PALETTE[place], SHAPES[place]) for name, place in taken.items()}


def seconds_figure(comparison: Comparison, *, name: str, palette: dict[str, tuple[str, str]]) -> Figure:
    """Every trial a dot, the interval of their mean a bar, on a log scale, fastest first."""
    shown = _shown(comparison)
    sentence = sentences.of_seconds(comparison, len(shown))
    what = period(comparison.work, by_pass=comparison.by_pass)
    table = Table(
        heads=("configuration", f"seconds {what}", "95 % interval", "trials", "status"),
        rows=tuple(
            (
                comparison.label(row),
                "" if row["rank_by"] is None else seconds(row["rank_by"], 3),
                "" if comparison.by_pass else seconds_between(row["ci_low"], row["ci_high"]),
                str(row["trials"]),
                row["status"],
            )
            for row in (*comparison.ran, *comparison.not_run)[:200]
        ),
    )
    return _figure(name, sentence, table, lambda width: _seconds_chart(comparison, shown, palette, width))


def cores_figure(comparison: Comparison, *, name: str, palette: dict[str, tuple[str, str]]) -> Figure | None:
    """Seconds over total cores, both on log scales, so that perfect scaling is a straight line; None without a sweep."""
    lines = _scaling(comparison)
    if len({row["total_cores"] for line in lines for row in line}) < 2:
        return None
    table = Table(
        heads=("platform", "resources", "cores in all", "seconds", "95 % interval", "status"),
        rows=tuple(
            (
                title(row["platform"]),
                resources(row),
                str(row["total_cores"] or ""),
                "" if row["rank_by"] is None else seconds(row["rank_by"], 3),
                "" if comparison.by_pass else seconds_between(row["ci_low"], row["ci_high"]),
                row["status"],
            )
            for row in sorted(
                [*(row for line in lines for row in line), *comparison.not_run],
                key=lambda row: (row["platform"], row["executors"] or 0, row["cores"] or 0, row["threads"] or 0),
            )
        ),
    )
    return _figure(name, sentences.of_cores(comparison), table, lambda w: _cores_chart(comparison, lines, palette, w))


def learning_figure(
    comparison: Comparison, *, epochs: pl.DataFrame, name: str, palette: dict[str, tuple[str, str]]
) -> Figure | None:
    """Loss and test accuracy over training seconds, for the best configuration of each platform; None without losses."""
    curves = _curves(comparison, epochs)
    if not any(point["loss"] is not None or point["accuracy"] is not None for curve in curves for point in curve["points"]):
        return None
    table = Table(
        heads=("platform", "epoch", "training seconds", "loss", "test accuracy"),
        rows=tuple(
            (
                title(curve["platform"]),
                str(point["epoch"]),
                seconds(point["seconds"], 3),
                "" if point["loss"] is None else f"{point['loss']:.4g}",
                "" if point["accuracy"] is None else f"{point['accuracy']:.4f}",
            )
            for curve in curves
            for point in curve["points"]
        ),
    )
    return _figure(name, sentences.of_learning(curves), table, lambda width: _learning_chart(curves, palette, width))


def order_figure(
    attempts: pl.DataFrame, configurations: pl.DataFrame, *, name: str, palette: dict[str, tuple[str, str]]
) -> Figure | None:
    """Every trial in the order it ran, as its distance from the mean of its configuration."""
    means = configurations.select("configuration", "mean_seconds", "trials")
    frame = (
        attempts.filter(pl.col("seconds").is_not_null())
        .with_row_index("position", offset=1)
        .join(means, on="configuration", how="left", maintain_order="left")
        .filter(pl.col("mean_seconds").is_not_null() & (pl.col("trials") > 1))
        .with_columns(deviation=pl.col("seconds") / pl.col("mean_seconds") - 1)
    )
    total = frame.height
    if total > MOST_POINTS:
        frame = frame.gather_every(math.ceil(total / MOST_POINTS))
    points = [
        {
            "position": row["position"],
            "deviation": row["deviation"] * 100,
            "platform": title(row["platform"]),
            "name": row["platform"],
            "label": label(row),
            "kind": "ranked" if row["ranked"] and not row["noisy"] else "noisy" if row["noisy"] else row["outcome"],
            "seconds": row["seconds"],
            "trial": row["trial"],
            "attempt": row["attempt"],
        }
        for row in frame.to_dicts()
    ]
    if not points:
        return None
    ranked = frame.filter("ranked")
    sentence = sentences.of_order(
        ranked["deviation"].to_list(), noisy=int(ranked["noisy"].sum()), total=ranked.height if total == frame.height else total
    )
    table = Table(
        heads=("order", "configuration", "trial", "attempt", "seconds", "from the mean", "kind"),
        rows=tuple(
            (
                str(point["position"]),
                point["label"],
                str(point["trial"] or ""),
                str(point["attempt"] or ""),
                seconds(point["seconds"], 3),
                f"{point['deviation']:+.1f} %",
                point["kind"],
            )
            for point in points
        ),
    )
    return _figure(name, sentence, table, lambda width: _order_chart(points, palette, width))


# How each is drawn.


def _seconds_chart(
    comparison: Comparison, shown: Sequence[Row], palette: dict[str, tuple[str, str]], width: int
) -> alt.LayerChart:
    lines = [("baseline", comparison.baseline)]
    if comparison.machine is not None and comparison.machine is not comparison.baseline:
        lines.append(("whole machine", comparison.machine))
    lines = [(word, row) for word, row in lines if row is not None]
    above, pitch = 17 * len(lines) + (6 if lines else 0), 40
    height = above + pitch * len(shown)
    dots, bars, captions = [], [], []
    said = distinct_seconds([row["rank_by"] for row in shown])
    for number, row in enumerate(shown):
        y = above + pitch * number
        colour, shape = palette[row["platform"]]
        common = {"y": y + 27, "colour": colour, "shape": shape}
        dots += [{**common, "seconds": value} for value in comparison.values(row)]
        sample = comparison.sample(row)
        low, high = _interval(sample.mean, sample.deviation, sample.n)
        bars.append({**common, "seconds": row["rank_by"], "low": max(low, sample.mean / 10), "high": high})
        captions.append({"y": y + 10, "left": comparison.label(row), "right": said[number]})
    low = min(*(dot["seconds"] for dot in dots), *(bar["low"] for bar in bars))
    high = max(*(dot["seconds"] for dot in dots), *(bar["high"] for bar in bars), low * 1.05)
    span = (high / low) ** 0.04
    x = _log_x("seconds", low / span, high * span, "seconds " + period(comparison.work, by_pass=comparison.by_pass), width)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False, zero=False), axis=None)
    colour = alt.Color("colour:N", scale=None)
    layers: list[Any] = [
        alt.Chart(_data(captions)).transform_calculate(track="datum.y + 17").mark_rule(color=GRID).encode(
            x=alt.value(0), x2=alt.value("width"), y=alt.Y("track:Q", scale=alt.Scale(domain=[height, 0], nice=False), axis=None)
        )
    ]
    above_lines: list[Any] = []
    for number, (word, row) in enumerate(lines):
        top = 12 + 17 * number
        line = [{"seconds": row["rank_by"], "y": top + 5, "end": height, "text": f"{word}: {label(row)}"}]
        right = math.log(row["rank_by"] / low) > 0.5 * math.log(high / low)
        layers.append(alt.Chart(_data(line)).mark_rule(color=MUTED, strokeDash=[3, 3]).encode(x=x, y=y, y2="end:Q"))
        for ink in ({"stroke": PAPER, "strokeWidth": 7, "color": PAPER}, {"color": MUTED}):
            above_lines.append(
                alt.Chart(_data([{**line[0], "y": top}]))
                .mark_text(fontSize=12, align="right" if right else "left", dx=3 if right else -3, baseline="middle", **ink)
                .encode(x=x, y=y, text="text:N")
            )
    layers += above_lines
    layers += [
        alt.Chart(_data(bars)).mark_bar(height=9, opacity=0.28, cornerRadius=4.5).encode(x=_at(x, "low"), x2="high:Q", y=y, color=colour),
        alt.Chart(_data(dots)).mark_point(size=42, opacity=0.75, filled=True).encode(
            x=x, y=y, color=colour, shape=alt.Shape("shape:N", scale=None)
        ),
        alt.Chart(_data(bars)).mark_tick(thickness=2, size=17, orient="vertical", color=INK).encode(x=x, y=y),
    ]
    for side, align, weight in (("left", "left", "normal"), ("right", "right", "bold")):
        place = alt.value(0) if side == "left" else alt.value("width")
        for halo in (True, False):
            mark = {"stroke": PAPER, "strokeWidth": 7, "color": PAPER} if halo else {"color": INK}
            layers.append(
                alt.Chart(_data(captions))
                .mark_text(align=align, fontSize=13, fontWeight=weight, baseline="middle", **mark)
                .encode(x=place, y=y, text=f"{side}:N")
            )
    return alt.layer(*layers).properties(width=width, height=height + 44, autosize=_fit())


def _cores_chart(
    comparison: Comparison, lines: Sequence[Sequence[Row]], palette: dict[str, tuple[str, str]], width: int
) -> alt.LayerChart:
    height = 320
    rows = [row for line in lines for row in line]
    totals = sorted({row["total_cores"] for row in rows})
    points = []
    for number, line in enumerate(lines):
        for row in line:
            sample = comparison.sample(row)
            low, high = _interval(sample.mean, sample.deviation, sample.n)
            colour, shape = palette[row["platform"]]
            points.append(
                {
                    "line": number,
                    "cores": row["total_cores"],
                    "seconds": row["rank_by"],
                    "low": max(low, row["rank_by"] / 10),
                    "high": high,
                    "colour": colour,
                    "shape": shape,
                    "dash": sum(lines[other][0]["platform"] == row["platform"] for other in range(number)),
                }
            )
    values = [point[key] for point in points for key in ("low", "high")]
    if comparison.baseline is not None:
        values.append(comparison.baseline["rank_by"])
    low, high = min(values) / 1.25, max(values) * 1.25
    first, last = totals[0], totals[-1]
    pad = (last / first) ** 0.06
    x = alt.X(
        "cores:Q",
        scale=alt.Scale(type="log", base=2, domain=[first / pad, last * pad], nice=False),
        axis=alt.Axis(values=_thinned(totals, 8 if width > 500 else 5), format="d", grid=False, title="cores in all (log scale)"),
    )
    y = _log_y("seconds", low, high, height)
    colour = alt.Color("colour:N", scale=None)
    ideals = [
        {"ideal": number, "cores": total, "seconds": line[0]["rank_by"] * line[0]["total_cores"] / total}
        for number, line in enumerate(lines)
        for total in (line[0]["total_cores"], last)
        if len(line) > 1 and line[0]["rank_by"] * line[0]["total_cores"] / last > low
    ]
    layers: list[Any] = [
        alt.Chart(_data(ideals)).mark_line(color=MUTED, strokeWidth=1, strokeDash=[1, 4], strokeCap="round").encode(x=x, y=y, detail="ideal:N")
    ]
    marks = []
    for number, line in enumerate(lines):
        end = [point for point in points if point["line"] == number][-1]
        marks.append((end["cores"], end["seconds"], _line_name(line, lines)))
    if comparison.baseline is not None:
        base = [{"seconds": comparison.baseline["rank_by"]}]
        layers.append(alt.Chart(_data(base)).mark_rule(color=MUTED, strokeDash=[3, 3]).encode(y=y))
        marks.append((None, comparison.baseline["rank_by"], "baseline"))
    layers += [
        alt.Chart(_data(points))
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=colour, detail="line:N", strokeDash=alt.StrokeDash("dash:O", scale=DASHES, legend=None)),
        alt.Chart(_data(points)).mark_rule(strokeWidth=2, opacity=0.5).encode(x=x, y=_at(y, "low"), y2="high:Q", color=colour),
        alt.Chart(_data(points))
        .mark_point(size=60, filled=True, opacity=1, stroke=PAPER, strokeWidth=1)
        .encode(x=x, y=y, color=colour, shape=alt.Shape("shape:N", scale=None)),
    ]
    # A label stands right of its line's end: in the margin, for a line that goes as far as any.
    inner = height - 46
    across = width - 44 - max(_length(text) for total, _, text in marks if total in (None, last))
    wanted = [
        (
            across + 8 if total in (None, last) else across * _share(total, [first / pad, last * pad], True) + 10,
            inner * (1 - _share(value, [low, high], True)),
            text,
        )
        for total, value, text in marks
    ]
    for (total, value, text), wish, place in zip(marks, wanted, _apart(wanted, bottom=inner), strict=True):
        at_edge = total in (None, last)
        row = [{"cores": total or last, "seconds": value, "text": text}]
        layers += _texts(
            row, x=alt.value("width") if at_edge else x, y=y, ink=MUTED if total is None else INK,
            align="left", dx=8 if at_edge else 10, dy=place - wish[1] - 7 * text.count("\n"),
        )  # fmt: skip
    return alt.layer(*layers).properties(
        width=width, height=height, autosize=_fit(), padding={"left": 2, "right": 4, "top": 4, "bottom": 2},
        title=alt.TitleParams("seconds " + period(comparison.work, by_pass=comparison.by_pass) + " (log scale)"),
    )


def _learning_chart(curves: Sequence[dict[str, Any]], palette: dict[str, tuple[str, str]], width: int) -> Any:
    wide = width > 500
    panels = [name for name in ("loss", "accuracy") if any(p[name] is not None for c in curves for p in c["points"])]
    across = (width - 8 - 39 * len(panels) - 20 * (len(panels) - 1)) / len(panels) if wide else width - 47
    ends = [curve["seconds"] for curve in curves]
    log = max(ends) > 20 * min(ends)
    first = min(point["seconds"] for curve in curves for point in curve["points"])
    domain = [first / 1.1, max(ends) * 1.05] if log else [0, max(ends) * 1.02]
    scale = alt.Scale(type="log" if log else "linear", domain=domain, nice=False)
    axis: dict[str, Any] = {"values": _ticks(*domain, across)} if log else {"tickCount": 5}
    x = alt.X(
        "seconds:Q", scale=scale,
        axis=alt.Axis(title="training time" + (" (log scale)" if log else ""), labelExpr=SECONDS, grid=False, labelFlush=True, **axis),
    )
    # Labels at the lines where there is room, else a legend.
    crowded = len(curves) > (4 if wide else 3)
    names = [title(curve["platform"]) for curve in curves]
    range_of = [[palette[curve["platform"]][place] for curve in curves] for place in (0, 1)]
    legend = alt.Legend(orient="top", title=None, columns=4 if wide else 2, symbolSize=60) if crowded else None
    colour = alt.Color("text:N", scale=alt.Scale(domain=names, range=range_of[0]), legend=legend)
    shape = alt.Shape("text:N", scale=alt.Scale(domain=names, range=range_of[1]), legend=legend)
    drawn = []
    for name, words, factor in (("loss", "loss", 1.0), ("accuracy", "test accuracy, percent", 100.0)):
        if name not in panels:
            continue
        points = [
            {"line": n, "seconds": p["seconds"], "value": p[name] * factor, "text": title(c["platform"])}
            for n, c in enumerate(curves)
            for p in c["points"]
            if p[name] is not None
        ]
        values = [point["value"] for point in points]
        margin = 0.1 * ((max(values) - min(values)) or abs(max(values)) or 1.0)
        low, high = min(values) - margin, max(values) + margin
        y = alt.Y(
            "value:Q", scale=alt.Scale(domain=[low, high], zero=False, nice=False),
            axis=alt.Axis(title=None, tickCount=5, minExtent=34, maxExtent=34, format="~g"),
        )
        layers: list[Any] = [
            alt.Chart(_data(points)).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, detail="line:N"),
            alt.Chart(_data(points)).mark_point(size=34, filled=True, opacity=1).encode(x=x, y=y, color=colour, shape=shape),
        ]
        last = [[point for point in points if point["line"] == n][-1] for n in sorted({point["line"] for point in points})]
        wanted = []
        for point in last if not crowded else []:
            here = across * _share(point["seconds"], domain, log)
            edge = here + 9 + _length(point["text"]) > across
            # Right of an early end there is room; at the right edge there is some below a falling line and above a rising one.
            aside = (14 if name == "loss" else -12) if edge else 0
            left = here + 2 - _length(point["text"]) if edge else here + 9
            wanted.append((left, 210 * (high - point["value"]) / (high - low) + aside, point["text"]))
        for point, wish, place in zip(last, wanted, _apart(wanted, bottom=210), strict=False):
            here = across * _share(point["seconds"], domain, log)
            at = 210 * (high - point["value"]) / (high - low)
            layers += _texts([point], x=x, y=y, ink=INK, align="left", dx=wish[0] - here, dy=place - at)
        drawn.append(alt.layer(*layers).properties(width=across, height=210, title=alt.TitleParams(words)))
    return (alt.hconcat if wide else alt.vconcat)(*drawn, spacing=59 if wide else 14, bounds="flush" if wide else "full").properties(padding={"left": 0, "right": 6, "top": 4, "bottom": 2})


def _order_chart(points: Sequence[dict[str, Any]], palette: dict[str, tuple[str, str]], width: int) -> alt.LayerChart:
    names = list(dict.fromkeys(point["name"] for point in points))
    names.sort(key=lambda name: list(palette).index(name))
    edge = max(1.0, *(abs(point["deviation"]) for point in points)) * 1.15
    last = max(point["position"] for point in points)
    x = alt.X(
        "position:Q", scale=alt.Scale(domain=[0.5, last + 0.5], nice=False),
        axis=alt.Axis(title="trials in the order they ran", format="d", tickMinStep=1, grid=False, tickCount=8 if width > 500 else 5),
    )
    y = alt.Y(
        "deviation:Q", scale=alt.Scale(domain=[-edge, edge], nice=False),
        axis=alt.Axis(title=None, labelExpr="(datum.value > 0 ? '+' : '') + format(datum.value, '~g') + ' %'", tickCount=5),
    )
    domain = [title(name) for name in names]
    legend = alt.Legend(orient="top", title=None, columns=4 if width > 500 else 2, symbolSize=60, symbolOpacity=1)
    colour = alt.Color("platform:N", scale=alt.Scale(domain=domain, range=[palette[name][0] for name in names]), legend=legend)
    shape = alt.Shape("platform:N", scale=alt.Scale(domain=domain, range=[palette[name][1] for name in names]), legend=legend)
    quiet = [point for point in points if point["kind"] == "ranked"]
    loud = [point for point in points if point["kind"] != "ranked"]
    layers: list[Any] = [alt.Chart(_data([{"deviation": 0}])).mark_rule(color=MUTED).encode(y=y)]
    if quiet:
        layers.append(alt.Chart(_data(quiet)).mark_point(size=52, filled=True, opacity=0.9).encode(x=x, y=y, color=colour, shape=shape))
    if loud:
        layers.append(alt.Chart(_data(loud)).mark_point(size=58, filled=False, strokeWidth=1.8, opacity=1).encode(x=x, y=y, color=colour, shape=shape))
        layers.append(alt.Chart(_data(loud[:30])).mark_text(dy=-12, fontSize=11, color=MUTED).encode(x=x, y=y, text="kind:N"))
    heading = alt.TitleParams("distance from the mean of its configuration")
    return alt.layer(*layers).properties(width=width, height=270, autosize=_fit(), title=heading)


# What they have in common.


def _figure(name: str, sentence: str, table: Table, draw: Callable[[int], Any]) -> Figure:
    # Altair would check every mark against its schema: a third of the time, for charts that are tested.
    with debug_mode(False):
        wide, narrow = (_render(draw(width)) for width in (WIDE, NARROW))
    file = _inked(wide, AS_FILE)
    return Figure(
        name=name,
        sentence=sentence,
        table=table,
        wide=_element(wide, f"{name}-wide"),
        narrow=_element(narrow, f"{name}-narrow"),
        files={f"figures/{name}.svg": file.encode(), f"figures/{name}.png": vl_convert.svg_to_png(file, scale=2)},
    )


def _render(chart: Any) -> str:
    text = {"labelFont": FONT, "titleFont": FONT, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    configured = (
        chart.configure(aria=False, background=PAPER, font=FONT)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=MUTED, titleColor=MUTED, domainColor=GRID, tickColor=GRID, gridColor=GRID, labelPadding=5, titlePadding=8, **text
        )
        .configure_axisX(titleAnchor="end", titleAlign="right")
        .configure_legend(labelColor=INK, labelFont=FONT, labelFontSize=13, labelLimit=260, offset=6)
        .configure_title(anchor="start", frame="group", color=MUTED, font=FONT, fontSize=12, fontWeight="normal", offset=8)
        .configure_text(font=FONT, limit=0)
    )
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return vl_convert.vegalite_to_svg(configured.to_dict(), vl_version=version)


def _inked(svg: str, inks: dict[str, str]) -> str:
    for sentinel, colour in inks.items():
        svg = svg.replace(sentinel, colour)
    return svg


def _element(svg: str, name: str) -> str:
    """For the page: it scales with the column, its ids are its own, and its ink is the page's."""
    size = re.search(r'viewBox="([^"]*)"', svg)
    body = svg[svg.index(">") + 1 :]
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", body)
    body = re.sub(r' (?:aria-hidden|role|aria-roledescription|pointer-events|font-family)="[^"]*"', "", body)
    # Coordinates to a tenth of a pixel are enough.
    body = re.sub(r'\b(?:transform|d)="[^"]*"', lambda found: re.sub(r"(\d\.\d)\d+", r"\1", found[0]), body)
    return f'<svg viewBox="{size[1] if size else ""}" aria-hidden="true" focusable="false">{_inked(body, ON_PAGE)}'


def _data(values: Sequence[dict[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=list(values))


def _fit() -> alt.AutoSizeParams:
    return alt.AutoSizeParams(type="fit", contains="padding")


def _at(channel: Any, field: str) -> Any:
    """The same axis and scale for another field."""
    other = channel.copy()
    other.shorthand = f"{field}:Q"
    return other


def _log_x(field: str, low: float, high: float, heading: str, width: int) -> alt.X:
    return alt.X(
        f"{field}:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=_ticks(low, high, width), labelExpr=SECONDS, title=f"{heading} (log scale)", labelFlush=True),
    )


def _log_y(field: str, low: float, high: float, height: int) -> alt.Y:
    return alt.Y(
        f"{field}:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=_ticks(low, high, 2 * height), labelExpr=SECONDS, title=None),
    )


def _ticks(low: float, high: float, pixels: float) -> list[float]:
    """Round numbers inside a log scale, as many as there is room for."""
    most = max(3, int(pixels / 70))
    for steps in ((1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9), (1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        found = [
            float(f"{step * 10.0**power:.3g}")
            for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for step in steps
            if low <= step * 10.0**power <= high
        ]
        if len(found) <= most:
            break
    return _thinned(found, most) if len(found) > 1 else [float(f"{value:.3g}") for value in (low * 1.02, high / 1.02)]


def _thinned(values: Sequence[Any], most: int) -> list[Any]:
    step = math.ceil(len(values) / most)
    return list(values[::step])


def _share(value: float, domain: Sequence[float], log: bool) -> float:
    low, high = domain
    return math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)


def _length(text: str) -> float:
    """Pixels of a label of 12 pixels' size, rather too many than too few."""
    return 6.9 * max(len(line) for line in text.split("\n"))


def _apart(wanted: Sequence[tuple[float, float, str]], *, bottom: float) -> list[float]:
    """For labels by their left edge and middle, middles near the wanted ones at which none covers another."""
    taken: list[tuple[float, float, float, float]] = []
    places = []
    for left, middle, text in wanted:
        right, half = left + _length(text), 7.5 * (1 + text.count("\n"))
        inside = min(max(middle, half - 8), bottom - half + 4)
        steps = sorted(range(-120, 121), key=lambda step: (abs(step), -step))
        free = (
            inside + step
            for step in steps
            if half - 8 <= inside + step <= bottom - half + 8
            and not any(
                left < there_right and there_left < right and abs(inside + step - there) < half + there_half
                for there_left, there_right, there, there_half in taken
            )
        )
        place = next(free, inside)
        taken.append((left, right, place, half))
        places.append(place)
    return places


def _texts(row: list[dict[str, Any]], *, x: Any, y: Any, ink: str, **mark: Any) -> list[Any]:
    """A label with a halo, so that a line behind it does not cross it out."""
    return [
        alt.Chart(_data(row))
        .mark_text(fontSize=12, lineBreak="\n", lineHeight=14, baseline="middle", color=fill, **halo, **mark)
        .encode(x=x, y=y, text="text:N")
        for fill, halo in ((PAPER, {"stroke": PAPER, "strokeWidth": 4}), (ink, {}))
    ]


def _interval(mean: float, deviation: float, n: int) -> tuple[float, float]:
    if n < 2:
        return mean, mean
    low, high = interval(mean, deviation, n)
    return float(low), float(high)


def _shown(comparison: Comparison) -> list[Row]:
    """All that ran, or the fastest and the best of each platform."""
    if len(comparison.ran) <= MOST_ROWS:
        return list(comparison.ran)
    must = [standing.best["configuration"] for standing in comparison.standings if standing.best is not None]
    must += [row["configuration"] for row in (comparison.baseline, comparison.machine) if row is not None]
    must += [row["configuration"] for row in comparison.ran if row["configuration"] not in must]
    keep = set(must[:MOST_ROWS])
    return [row for row in comparison.ran if row["configuration"] in keep]


def _scaling(comparison: Comparison) -> list[list[Row]]:
    """Lines over total cores: one for a platform and its cores an executor, at what the platform is judged by."""
    lines: dict[tuple[Any, ...], dict[int, Row]] = {}
    for standing in comparison.standings:
        for row in comparison.ran:
            best = standing.best
            if best is None or row["platform"] != standing.platform or row["total_cores"] is None:
                continue
            if (row["precision"], row["gradient"]) == (best["precision"], best["gradient"]):
                per = row["cores"] if row["executors"] is not None else None
                # The fastest of several at the same size comes first.
                lines.setdefault((row["platform"], per or 0), {}).setdefault(row["total_cores"], row)
    order = {standing.platform: number for number, standing in enumerate(comparison.standings)}
    kept = sorted(lines, key=lambda key: (order[key[0]], key[1]))[:MOST_LINES]
    return [[lines[key][total] for total in sorted(lines[key])] for key in kept]


def _line_name(line: Sequence[Row], lines: Sequence[Sequence[Row]]) -> str:
    row = line[0]
    if sum(other[0]["platform"] == row["platform"] for other in lines) < 2 or row["executors"] is None:
        return title(row["platform"])
    cores = row["cores"]
    return f"{title(row['platform'])},\n{cores} {'core' if cores == 1 else 'cores'} each"


def _curves(comparison: Comparison, epochs: pl.DataFrame) -> list[dict[str, Any]]:
    """The mean over trials of cumulated seconds, loss and accuracy at each epoch, for each platform's best."""
    curves = []
    for standing in [each for each in comparison.standings if each.best is not None][:MOST_LINES]:
        best = standing.best
        assert best is not None
        mean = (
            epochs.filter((pl.col("configuration") == best["configuration"]) & pl.col("epoch").is_not_null())
            .sort("trial", "epoch")
            .with_columns(at=pl.col("seconds").cum_sum().over("trial"))
            .group_by("epoch")
            .agg(pl.col("at").mean(), pl.col("loss").mean(), pl.col("test_accuracy").mean(), pl.len().alias("trials"))
            .filter((pl.col("trials") == pl.col("trials").max()) & pl.col("at").is_not_null())
            .sort("epoch")
        )
        if not mean.height:
            continue
        step = math.ceil(mean.height / 60)
        thin = mean if step == 1 else pl.concat([mean.gather_every(step), mean.tail(1)]).unique("epoch").sort("epoch")
        points = [
            {"epoch": row["epoch"], "seconds": row["at"], "loss": row["loss"], "accuracy": row["test_accuracy"]}
            for row in thin.to_dicts()
        ]
        losses = [point["loss"] for point in points if point["loss"] is not None]
        accuracies = [point["accuracy"] for point in points if point["accuracy"] is not None]
        curves.append(
            {
                "platform": standing.platform,
                "label": comparison.label(best),
                "points": points,
                "epochs": mean.height,
                "seconds": points[-1]["seconds"],
                "loss": losses[-1] if losses else None,
                "accuracy": accuracies[-1] if accuracies else None,
            }
        )
    return curves
