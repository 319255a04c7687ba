"""Loss and test accuracy over training time, a line for the best configuration of each platform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from report import captions
from report.drawing import (
    INK,
    MOST_LINES,
    MUTED,
    SECONDS,
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
    share,
    telling,
    texts,
    ticks,
)
from report.target import accuracy_said
from report.trials import trained_until
from report.verdict import Comparison
from report.words import counted, percent, seconds, title

HEIGHT = 210
BESIDE, DASHED = "triangle-up", [4, 3]  # of trainings with another number of updates an epoch
PANELS = {"loss": ("loss", 1.0), "accuracy": ("test accuracy, percent", 100.0)}


def learning_figure(
    comparison: Comparison, *, beside: Sequence[Comparison], epochs: pl.DataFrame, name: str, palette: Palette
) -> Figure | None:
    """Loss and test accuracy over training seconds; None where neither was recorded.

    How far a training has come by when may be compared with trainings that are `beside` it: of the same rows with
    another number of updates an epoch, as with a parameter server that waits for nobody.
    """
    curves = _curves(comparison, epochs)
    for other in beside:
        updates = f"{counted(round(other.work['updates_per_epoch']), 'update')} an epoch"
        curves += [curve | {"text": f"{curve['text']}, {updates}", "beside": True} for curve in _curves(other, epochs)]
    if not any(
        point["loss"] is not None or point["accuracy"] is not None for curve in curves for point in curve["points"]
    ):
        return None
    table = Table(
        heads=("platform", "epoch", "training seconds", "loss", "test accuracy"),
        rows=tuple(
            (
                curve["text"],
                str(point["epoch"]),
                seconds(point["seconds"], 3),
                "" if point["loss"] is None else f"{point['loss']:.4g}",
                "" if point["accuracy"] is None else f"{point['accuracy']:.4f}",
            )
            for curve in curves
            for point in curve["points"]
        ),
    )
    said = captions.of_learning(curves) + captions.cut(MOST_LINES, len(curves), "lines")
    target = comparison.work["target"]
    if target is not None:
        said += f" The dashed line is the target, {accuracy_said(target)}; a ring is where a line first reaches it."
    return figure(name, said, table, lambda width: _learning_chart(curves[:MOST_LINES], palette, width, target))


def _learning_chart(curves: Sequence[dict[str, Any]], palette: Palette, width: int, target: float | None) -> Spec:
    wide = width > 500
    panels = [name for name in PANELS if any(point[name] is not None for curve in curves for point in curve["points"])]
    across = (width - 8 - 39 * len(panels) - 20 * (len(panels) - 1)) / len(panels) if wide else width - 47
    ends = [curve["seconds"] for curve in curves]
    log = max(ends) > 20 * min(ends)
    first = min(point["seconds"] for curve in curves for point in curve["points"])
    domain = [first / 1.1, max(ends) * 1.05] if log else [0, max(ends) * 1.02]
    axis: dict[str, Any] = {"values": ticks(domain[0], domain[1], pixels=across)} if log else {"tickCount": 5}
    heading = "training time" + (" (log scale)" if log else "")
    x = alt.X(
        "seconds:Q",
        scale=alt.Scale(type="log" if log else "linear", domain=domain, nice=False),
        axis=alt.Axis(title=heading, labelExpr=SECONDS, grid=False, labelFlush=True, **axis),
    )
    # Labels at the lines where there is room, else a legend.
    crowded = len(curves) > (4 if wide else 3) or any(curve["beside"] for curve in curves)
    names = [curve["text"] for curve in curves]
    colours, own = zip(*(palette[curve["platform"]] for curve in curves), strict=True)
    shapes = [BESIDE if curve["beside"] else shape for curve, shape in zip(curves, own, strict=True)]
    legend = (
        alt.Legend(orient="top", title=None, columns=4 if wide else 2, columnPadding=18, symbolSize=60)
        if crowded
        else None
    )
    colour = alt.Color("text:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    shape = alt.Shape("text:N", scale=alt.Scale(domain=names, range=shapes), legend=legend)
    dashes = [DASHED if curve["beside"] else [1, 0] for curve in curves]
    dash = alt.StrokeDash("text:N", scale=alt.Scale(domain=names, range=dashes), legend=None)
    drawn = []
    for name in panels:
        words, factor = PANELS[name]
        points = [
            {
                "line": n,
                "seconds": point["seconds"],
                "value": point[name] * factor,
                "text": curve["text"],
                **telling(
                    f"{curve['text']}, epoch {point['epoch']}, {seconds(point['seconds'], 3)}: {_value(point, name)}"
                ),
            }
            for n, curve in enumerate(curves)
            for point in curve["points"]
            if point[name] is not None
        ]
        goal = target if name == "accuracy" else None
        values = [point["value"] for point in points] + ([] if goal is None else [factor * goal])
        margin = 0.1 * ((max(values) - min(values)) or abs(max(values)) or 1.0)
        up = [min(values) - margin, max(values) + margin]
        y = alt.Y(
            "value:Q",
            scale=alt.Scale(domain=up, zero=False, nice=False),
            axis=alt.Axis(title=None, tickCount=5, minExtent=34, maxExtent=34, format="~r"),
        )
        layers: list[Any] = [
            *([] if goal is None else _target(points, factor * goal, x=x, y=y)),
            alt.Chart(data(points))
            .mark_line(strokeWidth=2)
            .encode(x=x, y=y, color=colour, strokeDash=dash, detail=alt.Detail("line:N")),
        ]
        if not crowded:
            last = list({point["line"]: point for point in points}.values())
            at = [(across * share(p["seconds"], domain, log=log), HEIGHT * (1 - share(p["value"], up))) for p in last]
            layers += _labels(last, at, x=x, y=y, across=across, falling=name == "loss")
        # Over the names' halos.
        dots = alt.Chart(data(points)).mark_point(size=34, filled=True, opacity=1)
        layers.append(dots.encode(x=x, y=y, color=colour, shape=shape, description=TOLD))
        drawn.append(layered(layers, width=across, height=HEIGHT, title=words))
    padding = {"left": 0, "right": 6, "top": 4, "bottom": 2}
    if wide:
        return {"hconcat": drawn, "spacing": 59, "bounds": "flush", "padding": padding}
    return {"vconcat": drawn, "spacing": 14, "padding": padding}


def _value(point: dict[str, Any], name: str) -> str:
    return f"loss {point[name]:.3g}" if name == "loss" else f"{percent(point[name])} of the test rows right"


def _target(points: Sequence[dict[str, Any]], goal: float, *, x: Any, y: Any) -> list[Any]:
    """A line across, and a ring around the first point of each line that is on it or above."""
    firsts: dict[int, dict[str, Any]] = {}
    for point in points:
        if point["value"] >= goal:
            firsts.setdefault(point["line"], {"seconds": point["seconds"], "value": point["value"]})
    across = alt.Chart(data([{"value": goal, **telling(f"target: {percent(goal / 100)}")}]))
    rule = across.mark_rule(color=MUTED, strokeDash=[3, 3]).encode(y=y, description=TOLD)
    ring = alt.Chart(data(list(firsts.values()))).mark_point(size=150, filled=False, color=INK, strokeWidth=1.5)
    return [rule, ring.encode(x=x, y=y)] if firsts else [rule]


def _labels(
    points: Sequence[dict[str, Any]], at: Sequence[tuple[float, float]], *, x: Any, y: Any, across: float, falling: bool
) -> list[Any]:
    """The names of the lines at their ends, which lie `at` these pixels."""
    wanted = []
    for point, (left, top) in zip(points, at, strict=True):
        # Right of an early end there is room; at the right edge, below a falling line and above a rising one.
        if left + 9 + length(point["text"]) > across:
            wanted.append((left + 2 - length(point["text"]), top + (14 if falling else -12), point["text"]))
        else:
            wanted.append((left + 9, top, point["text"]))
    layers: list[Any] = []
    for point, (left, top), wish, place in zip(points, at, wanted, apart(wanted, bottom=HEIGHT), strict=True):
        layers += texts([point], x=x, y=y, ink=INK, align="left", dx=wish[0] - left, dy=place - top)
    return layers


def _curves(comparison: Comparison, epochs: pl.DataFrame) -> list[dict[str, Any]]:
    """The mean over trials of cumulated seconds, loss and accuracy at each epoch, for each platform's best."""
    curves = []
    for standing in comparison.standings:
        best = standing.best
        mean = (
            epochs.filter((pl.col("configuration") == best["configuration"]) & pl.col("epoch").is_not_null())
            .sort("trial", "epoch")
            .with_columns(at=trained_until())
            .filter(pl.col("at").is_not_null())
            .group_by("epoch")
            .agg(pl.col("at").mean(), pl.col("loss").mean(), pl.col("test_accuracy").mean(), pl.len().alias("trials"))
            .filter(pl.col("trials") == pl.col("trials").max())
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
                "text": title(standing.platform),
                "beside": False,
                "points": points,
                "epochs": mean.height,
                "seconds": points[-1]["seconds"],
                "loss": losses[-1] if losses else None,
                "accuracy": accuracies[-1] if accuracies else None,
            }
        )
    return curves
