"""Every trial in the order it ran, as its distance from the mean of its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from report import captions, drift
from report.drawing import FITTED, INK, MUTED, TOLD, Figure, Palette, Spec, Table, data, figure, layered, telling
from report.words import label, seconds, title

MOST_POINTS = 400


def order_figure(attempts: pl.DataFrame, configurations: pl.DataFrame, *, name: str, palette: Palette) -> Figure | None:
    """Every trial in the order it ran, as its distance from the mean of its configuration."""
    means = configurations.select("configuration", "mean_seconds", "trials")
    frame = (
        attempts.filter(pl.col("seconds").is_not_null() & pl.col("origin").is_null())  # imported ones ran in no order
        .with_row_index("position", offset=1)
        .join(means, on="configuration", how="left", maintain_order="left")
        .filter(pl.col("mean_seconds").is_not_null() & (pl.col("trials") > 1))
        .with_columns(deviation=pl.col("seconds") / pl.col("mean_seconds") - 1)
    )
    shown = _thinned(frame)
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
        for row in shown.to_dicts()
    ]
    if not points:
        return None
    points = [{**point, **telling(_told(point))} for point in points]
    ranked = frame.filter("ranked")
    sentence = captions.of_order(
        ranked["deviation"].to_list(), noisy=int(ranked["noisy"].sum()), shown=shown.filter("ranked").height
    )
    found = drift.drift(attempts)
    if ranked.height:
        sentence += f" {drift.sentence(found)}"
    line = [] if found is None else slope(found, ranked)
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
    return figure(name, sentence, table, lambda width: _order_chart(points, line, palette, width))


def _told(point: dict[str, Any]) -> str:
    attempt = f", attempt {point['attempt']}" if (point["attempt"] or 1) > 1 else ""
    kind = "" if point["kind"] == "ranked" else f", {point['kind']}"
    away = f"{seconds(point['seconds'], 3)}, {point['deviation']:+.1f} % from the mean"
    return f"{point['label']}, trial {point['trial']}{attempt}{kind}: {away}"


def slope(found: drift.Drift, ranked: pl.DataFrame) -> list[dict[str, Any]]:
    """The ends of the line of the drift in each run, in percent."""
    position = pl.col("position")
    runs = ranked.group_by("run_id", maintain_order=True).agg(
        position.mean().alias("middle"), position.min().alias("first"), position.max().alias("last")
    )
    return [
        {"run": run["run_id"], "position": at, "deviation": 100 * found.per_trial * (at - run["middle"])}
        for run in runs.to_dicts()
        for at in (run["first"], run["last"])
    ]


def _thinned(frame: pl.DataFrame) -> pl.DataFrame:
    """All that a reader should look at, and of the rest as many as there is room for, evenly over the run."""
    if frame.height <= MOST_POINTS:
        return frame
    distance = pl.col("deviation").abs()
    told = pl.col("noisy") | ~pl.col("ranked") | (distance >= distance.quantile(0.99))
    looked_at, rest = frame.filter(told).head(MOST_POINTS // 2), frame.filter(~told)
    room = min(MOST_POINTS - looked_at.height, rest.height)
    return pl.concat([looked_at, rest[[n * rest.height // room for n in range(room)]]]).sort("position")


def _order_chart(
    points: Sequence[dict[str, Any]], line: Sequence[dict[str, Any]], palette: Palette, width: int
) -> Spec:
    names = list(dict.fromkeys(point["name"] for point in points))
    names.sort(key=lambda name: list(palette).index(name))
    edge = max(1.0, *(abs(point["deviation"]) for point in points)) * 1.15
    last = max(point["position"] for point in points)
    x = alt.X(
        "position:Q",
        scale=alt.Scale(domain=[0.5, last + 0.5], nice=False),
        axis=alt.Axis(
            title="trials in the order they ran",
            format="d",
            tickMinStep=1,
            grid=False,
            tickCount=8 if width > 500 else 5,
        ),
    )
    y = alt.Y(
        "deviation:Q",
        scale=alt.Scale(domain=[-edge, edge], nice=False),
        axis=alt.Axis(
            title=None, labelExpr="(datum.value > 0 ? '+' : '') + format(datum.value, '~g') + ' %'", tickCount=5
        ),
    )
    domain = [title(name) for name in names]
    legend = alt.Legend(
        orient="top", title=None, columns=4 if width > 500 else 2, columnPadding=18, symbolSize=60, symbolOpacity=1
    )
    colour = alt.Color(
        "platform:N", scale=alt.Scale(domain=domain, range=[palette[name][0] for name in names]), legend=legend
    )
    shape = alt.Shape(
        "platform:N", scale=alt.Scale(domain=domain, range=[palette[name][1] for name in names]), legend=legend
    )
    quiet = [point for point in points if point["kind"] == "ranked"]
    loud = [point for point in points if point["kind"] != "ranked"]
    layers: list[Any] = [alt.Chart(data([{"deviation": 0}])).mark_rule(color=MUTED).encode(y=y)]
    if line:
        drawn = alt.Chart(data(line)).mark_line(color=INK, strokeDash=[5, 4], strokeWidth=1.5)
        layers.append(drawn.encode(x=x, y=y, detail=alt.Detail("run:N")))
    if quiet:
        layers.append(
            alt.Chart(data(quiet))
            .mark_point(size=52, filled=True, opacity=0.9)
            .encode(x=x, y=y, color=colour, shape=shape, description=TOLD)
        )
    if loud:
        layers.append(
            alt.Chart(data(loud))
            .mark_point(size=58, filled=False, strokeWidth=1.8, opacity=1)
            .encode(x=x, y=y, color=colour, shape=shape, description=TOLD)
        )
        layers.append(
            alt.Chart(data(loud[:30]))
            .mark_text(dy=-12, fontSize=11, color=MUTED)
            .encode(x=x, y=y, text=alt.Text("kind:N"))
        )
    heading = "distance from the mean of its configuration"
    return layered(layers, width=width, height=270, autosize=FITTED, title=heading)
