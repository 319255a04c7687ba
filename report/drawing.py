"""How every figure looks: one colour a platform, the page's own ink, round numbers on log axes, labels at the lines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode

WIDE, NARROW = 680, 344
MOST_LINES = 8
# A single view is fitted into the width asked for, with its axes and labels.
FITTED = {"type": "fit", "contains": "padding"}
Spec = dict[str, Any]  # Vega-Lite
Palette = dict[str, tuple[str, str]]  # of each platform: colour and shape
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
FONT = "system-ui, sans-serif"
# What a mark says where one points at it: a field of its datum, told from the labels that Vega makes up.
TOLD = alt.Description("told:N")
TELLING = "told: "
TAG = re.compile(r'<(\w+)((?:\s[\w:-]+="[^"]*")*)\s*(/?)>')


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


def colours(platforms: Sequence[str]) -> Palette:
    """A colour and a shape for each platform: for print in black and white, and for whoever sees no colours."""
    known = [name for name in FIRST if name in platforms]
    order = [*known, *sorted(set(platforms) - set(known))]
    taken = {name: FIRST.index(name) for name in known}
    free = [place for place in range(len(PALETTE)) if place not in taken.values()] or list(range(len(PALETTE)))
    for number, name in enumerate(order[len(known) :]):
        taken[name] = free[number % len(free)]
    return {name: (PALETTE[place], SHAPES[place]) for name, place in taken.items()}


def figure(name: str, sentence: str, table: Table, draw: Callable[[int], Spec], *, as_files: bool = True) -> Figure:
    """`as_files`: to download too, beside the page."""
    # Altair would check every mark against its schema as it is made; the charts are tested instead.
    with debug_mode(False), alt.data_transformers.enable(consolidate_datasets=False):
        wide, narrow = (_render(draw(width)) for width in (WIDE, NARROW))
    file = _inked(wide, AS_FILE)
    png = vl_convert.svg_to_png(file, scale=2) if as_files else b""
    return Figure(
        name=name,
        sentence=sentence,
        table=table,
        wide=_element(wide, f"{name}-wide"),
        narrow=_element(narrow, f"{name}-narrow"),
        files={f"figures/{name}.svg": file.encode(), f"figures/{name}.png": png} if as_files else {},
    )


def layered(layers: Iterable[alt.Chart], **properties: Any) -> Spec:
    """As alt.layer, which copies every layer several times and takes most of a report's time for it."""
    whole = [layer.to_dict(validate=False) for layer in layers]
    return {
        "layer": [{k: v for k, v in spec.items() if k not in ("$schema", "config")} for spec in whole],
        **properties,
    }


def _render(spec: Spec) -> str:
    text = {"labelFont": FONT, "titleFont": FONT, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    ink = {"labelColor": MUTED, "titleColor": MUTED, "domainColor": GRID, "tickColor": GRID, "gridColor": GRID}
    title = {"anchor": "start", "frame": "group", "color": MUTED, "font": FONT, "fontSize": 12, "fontWeight": "normal"}
    config = {
        "background": PAPER,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {**ink, **text, "labelPadding": 5, "titlePadding": 8},
        "axisX": {"titleAnchor": "end", "titleAlign": "right"},
        "legend": {"labelColor": INK, "labelFont": FONT, "labelFontSize": 13, "labelLimit": 260, "offset": 6},
        "title": {**title, "offset": 8},
        "text": {"font": FONT, "limit": 0},
    }
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    svg = vl_convert.vegalite_to_svg({"$schema": alt.SCHEMA_URL, **spec, "config": config}, vl_version=version)
    return TAG.sub(_titled, svg)


def _titled(tag: re.Match[str]) -> str:
    """What a mark tells as its title, which needs no script; no other label stays, as the whole figure has one."""
    name, attributes, closed = tag.groups()
    told = re.search(rf' aria-label="{TELLING}([^"]*)"', attributes)
    plain = re.sub(r' (?:aria-[a-z]+|role)="[^"]*"', "", attributes)
    if told is None:
        return f"<{name}{plain}{closed}>"
    return f"<{name}{plain}><title>{told[1]}</title>{f'</{name}>' if closed else ''}"


def telling(text: str) -> dict[str, str]:
    """For the datum of a mark with TOLD."""
    return {"told": f"{TELLING}{text}"}


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
    body = re.sub(r' (?:(?:pointer-events|font-family)="[^"]*"|opacity="1"(?=[ />]))', "", body)
    # Coordinates to a tenth of a pixel are enough.
    body = re.sub(r'\b(?:transform|d)="[^"]*"', lambda found: re.sub(r"(\d\.\d)\d+", r"\1", found[0]), body)
    return f'<svg viewBox="{size[1] if size else ""}" aria-hidden="true" focusable="false">{_inked(body, ON_PAGE)}'


def data(values: Sequence[dict[str, Any]]) -> Any:
    return alt.InlineData(values=tuple(values))


def on_axis_of(channel: Any, field: str) -> Any:
    """The same axis and scale for another field."""
    other = channel.copy()
    other.shorthand = f"{field}:Q"
    return other


def log_x(field: str, low: float, high: float, *, heading: str, width: int) -> alt.X:
    return alt.X(
        f"{field}:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(
            values=ticks(low, high, pixels=width), labelExpr=SECONDS, title=f"{heading} (log scale)", labelFlush=True
        ),
    )


def log_y(field: str, low: float, high: float, *, height: int) -> alt.Y:
    return alt.Y(
        f"{field}:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=ticks(low, high, pixels=2 * height), labelExpr=SECONDS, title=None),
    )


def ticks(low: float, high: float, *, pixels: float) -> list[float]:
    """Round numbers inside a log scale, as many as there is room for."""
    most = max(3, int(pixels / 70))
    for steps in (
        (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9),
        (1, 1.5, 2, 3, 4, 5, 6, 8),
        (1, 2, 3, 5),
        (1, 2, 5),
        (1, 3),
        (1,),
    ):
        found = [
            float(f"{step * 10.0**power:.3g}")
            for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for step in steps
            if low <= step * 10.0**power <= high
        ]
        if len(found) <= most:
            break
    return thinned(found, most) if len(found) > 1 else [float(f"{value:.3g}") for value in (low * 1.02, high / 1.02)]


def thinned(values: Sequence[Any], most: int) -> list[Any]:
    step = math.ceil(len(values) / most)
    return list(values[::step])


def share(value: float, domain: Sequence[float], *, log: bool = False) -> float:
    """How far along an axis a value lies, from 0 to 1."""
    low, high = domain
    return math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)


def length(text: str) -> float:
    """Pixels of a label of 12 pixels' size, rather too many than too few."""
    return 6.9 * max(len(line) for line in text.split("\n"))


def apart(wanted: Sequence[tuple[float, float, str]], *, bottom: float) -> list[float]:
    """For labels by their left edge and middle, middles near the wanted ones at which none covers another."""
    taken: list[tuple[float, float, float, float]] = []
    places = []
    for left, middle, text in wanted:
        right, half = left + length(text), 7.5 * (1 + text.count("\n"))
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


def in_order(wanted: Sequence[tuple[float, str]], *, bottom: float) -> list[float]:
    """For labels of one column, middles near the wanted ones at which they keep their order and none covers another."""
    order = sorted(range(len(wanted)), key=lambda number: wanted[number][0])
    halves = [7.6 * (1 + wanted[number][1].count("\n")) for number in order]
    above = [sum(2 * half for half in halves[:place]) + half for place, half in enumerate(halves)]
    # Neighbours that would touch move as one block, to the mean of what they want (pool adjacent violators).
    blocks: list[list[float]] = []
    for number, offset in zip(order, above, strict=True):
        blocks.append([wanted[number][0] - offset])
        while len(blocks) > 1 and _mean(blocks[-2]) >= _mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    tops = [_mean(block) for block in blocks for _ in block]
    last = max(bottom + 8 - sum(2 * half for half in halves), -8)
    places = [0.0] * len(wanted)
    for number, offset, top in zip(order, above, tops, strict=True):
        places[number] = min(max(top, -8), last) + offset
    return places


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def texts(labels: list[dict[str, Any]], *, x: Any, y: Any, ink: str, **mark: Any) -> list[Any]:
    """Labels with a halo, so that a line behind one does not cross it out."""
    mark = {"fontSize": 12, "lineBreak": "\n", "lineHeight": 14, "baseline": "middle", **mark}
    halo = {"stroke": PAPER, "strokeWidth": 6, "strokeJoin": "round", "color": PAPER}
    return [
        alt.Chart(data(labels)).mark_text(**{**mark, **look}).encode(x=x, y=y, text=alt.Text("text:N"))
        for look in (halo, {"color": ink})
    ]
