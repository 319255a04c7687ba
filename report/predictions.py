"""A model for each kind of training that was measured, how far off it is on what was held out, and its answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from models.spec import Network
from report.scaling_model import Measured, Model, Point, Size, communication_of
from report.words import counted, listed, title
from store.errors import SettingError

if TYPE_CHECKING:
    import polars as pl

LEAST = 5  # configurations: one to hold out, and more than two terms for the others
MOST_HELD_OUT = 300
FARTHEST = 4  # times the measured range in each variable
LEVEL = 0.95
NOT_VALIDATED = "physics model, not validated"
Edge = Literal["smallest", "largest"]
EDGES: tuple[Edge, Edge] = ("smallest", "largest")
# Trainings that differ in one of these have a model each.
ALIKE = (
    "machine", "origin", "platform", "device", "deploy_mode", "solver", "precision", "gradient", "compression",
    "batch_size", "balance", "shards", "staleness",
)  # fmt: skip
OWN_KINDS = ("csv", "parquet", "synthetic")
# What can be asked for, and by which axis of a profile it is varied; some follow from others.
AXES = {
    "rows": "rows (fractions)",
    "parameters": "hidden units (networks)",
    "executors": "executors",
    "cores": "cores",
    "threads": "threads",
    "cores in all": "",
    "columns": "",
    "hidden layers": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """A configuration, and what the others said of it."""

    point: Point
    predicted: float

    @property
    def error(self) -> float:
        return abs(self.predicted / self.point.seconds - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Trainings alike but for their size, and the model of them; or why there is none."""

    of: Mapping[str, Any]  # the fields of ALIKE
    family: str
    kind: str  # of dataset
    points: tuple[Point, ...]
    passes: float  # of an epoch
    known: Mapping[str, tuple[int, ...]]  # the values of each variable, from the smallest on
    places: tuple[Size, ...]  # a size for each of the resources
    refusal: str | None = None
    model: Model | None = None
    held_out: tuple[HeldOut, ...] = ()
    # Errors of what has a variable's smallest, or largest, value, all of that held out.
    edges: Mapping[tuple[str, Edge], float] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """The median over the configurations that were held out."""
        return median(each.error for each in self.held_out)

    @property
    def largest(self) -> HeldOut:
        return max(self.held_out, key=lambda each: _largeness(each.point))

    @property
    def spread(self) -> float | None:
        """The typical error as a logarithm; None where something was predicted to take no time."""
        if any(each.predicted <= 0 for each in self.held_out):
            return None
        squares = [math.log(each.predicted / each.point.seconds) ** 2 for each in self.held_out]
        return math.sqrt(sum(squares) / len(squares))

    def doubt(self, size: Size) -> float | None:
        """How far off a prediction may be, as a logarithm, 19 times of 20; None where that is not known."""
        from scipy.special import stdtrit

        spread = self.spread
        passed = [(name, edge) for name, (edge, _) in _passed(self, size).items()]
        if spread is None or any(each not in self.edges for each in passed):
            return None
        errors = [spread, *(math.log1p(self.edges[each]) for each in passed)]
        return float(stdtrit(len(self.held_out) - 1, (1 + LEVEL) / 2)) * max(errors)

    def holds(self, row: Mapping[str, Any]) -> bool:
        return (
            all(row[name] == self.of[name] for name in ALIKE)
            and _family(row["network"])[0] == self.family
            and kind_of(row["dataset"]) == self.kind
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Of a pass, with what is known of how far off it may be."""

    size: Size
    seconds: float
    low: float | None
    high: float | None
    parts: Mapping[str, float]
    error: float
    extrapolated: tuple[str, ...]  # variables outside of what was measured
    outside: tuple[str, ...]  # why it is not validated

    @property
    def is_validated(self) -> bool:
        return not self.outside

    @property
    def note(self) -> str | None:
        return f"{NOT_VALIDATED}: {'; '.join(self.outside)}" if self.outside else None


def all_series(attempts: pl.DataFrame) -> list[Series]:
    """Of every kind of training with epochs that may be ranked, in the order in which they first ran."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in _configurations(attempts):
        key = (*(row[name] for name in ALIKE), _family(row["network"])[0], kind_of(row["dataset"]))
        groups.setdefault(key, []).append(row)
    return [_series(rows) for rows in groups.values()]


def kind_of(dataset: str) -> str:
    kind, colon, _ = dataset.partition(":")
    return kind if colon and kind in OWN_KINDS else "images"


def variables(size: Size) -> dict[str, int]:
    """By which a size is inside or outside of what was measured."""
    found = {
        "rows": size.rows,
        "parameters": size.parameters if size.layers else None,
        "columns": size.layers[0] if size.layers else None,
        "hidden layers": len(size.layers) - 2 if size.layers else None,
        "executors": size.executors,
        "cores": size.cores,
        "threads": size.threads,
        "cores in all": size.total_cores if size.executors is not None else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def predicted(series: Series, size: Size) -> Prediction:
    """SettingError where there is no model, or where it says nothing of this."""
    if series.model is None:
        raise SettingError(f"no prediction: {series.refusal}")
    seconds = series.model.seconds(size)
    if seconds <= 0:
        raise SettingError(
            f"no prediction: what was measured of {named(series)} does not say what a pass on so little takes; "
            f"measure rows or executors farther apart"
        )
    extrapolated, outside = _placed(series, size)
    doubt = None if outside else series.doubt(size)
    return Prediction(
        size=size,
        seconds=seconds,
        low=None if doubt is None else seconds / math.exp(doubt),
        high=None if doubt is None else seconds * math.exp(doubt),
        parts=series.model.parts(size),
        error=series.error,
        extrapolated=extrapolated,
        outside=outside,
    )


def reach(series: Series, name: str) -> tuple[float, float] | None:
    """From where to where a variable is validated; None where it was not varied."""
    known = series.known.get(name, ())
    if len(known) < 2:
        return None
    below, above = (FARTHEST if (name, edge) in series.edges else 1 for edge in EDGES)
    return known[0] / below, float(known[-1] * above)


def named(series: Series) -> str:
    """`Spark MLlib (gd, float64)`."""
    of = series.of
    batch = None if of["batch_size"] is None else f"batches of {of['batch_size']:,}"
    sent = None if of["compression"] in (None, "none") else f"gradients sent in {of['compression']}"
    inside = [text for text in (of["solver"], batch, of["precision"], of["gradient"], sent) if text]
    return title(of["platform"]) + (f" ({', '.join(inside)})" if inside else "")


def _passed(series: Series, size: Size) -> dict[str, tuple[Edge, int]]:
    """The variables that are outside of what was measured, with the edge beyond which they are."""
    found: dict[str, tuple[Edge, int]] = {}
    for name, value in variables(size).items():
        known = series.known.get(name, ())
        if known and not known[0] <= value <= known[-1]:
            found[name] = ("largest", known[-1]) if value > known[-1] else ("smallest", known[0])
    return found


def _placed(series: Series, size: Size) -> tuple[tuple[str, ...], tuple[str, ...]]:
    passed, outside = _passed(series, size), []
    for name, (edge, known) in passed.items():
        value = variables(size)[name]
        if len(series.known[name]) == 1 and name != "cores in all":
            outside.append(f"{name} {value:,} where only {known:,} was measured")
        elif value > FARTHEST * known:
            outside.append(f"{name} {value:,} is beyond {FARTHEST} times the {known:,} that was measured")
        elif value * FARTHEST < known:
            outside.append(f"{name} {value:,} is below a quarter of the {known:,} that was measured")
        elif (name, edge) not in series.edges and not (name == "cores in all" and outside):
            side = "above" if edge == "largest" else "below"
            outside.append(f"{name} {value:,} is {side} the {known:,} that was measured, which was not held out")
    return tuple(passed), tuple(outside)


def _configurations(attempts: pl.DataFrame) -> list[dict[str, Any]]:
    """Of ranked epochs, a row for each configuration: the mean over its trials."""
    import polars as pl

    ranked = attempts.filter(pl.col("ranked") & (pl.col("unit") == "epoch") & pl.col("rows").is_not_null())
    means = ("seconds", "seconds_per_pass", "passes_per_epoch", "exchange_seconds", "floor_seconds")
    first = ("rows", "network", "dataset", "executors", "cores", "threads", "partitions", *ALIKE)
    grouped = ranked.group_by("configuration", maintain_order=True)
    return grouped.agg(
        *(pl.col(name).first() for name in first),
        *(pl.col(name).mean() for name in means),
    ).to_dicts()


def _series(rows: Sequence[Mapping[str, Any]]) -> Series:
    points = tuple(_points(rows))
    family, _ = _family(rows[0]["network"])
    passes = [row["passes_per_epoch"] or 1.0 for row in rows]
    plain = Series(
        of={name: rows[0][name] for name in ALIKE},
        family=family,
        kind=kind_of(rows[0]["dataset"]),
        points=points,
        passes=sum(passes) / len(passes),
        known=_known(points),
        places=tuple({_place(point.size): point.size for point in points}.values()),
    )
    if len(points) < LEAST:
        return replace(plain, refusal=_too_few(plain))
    measured = Measured.of(points, communication=communication_of(plain.of["platform"], points))
    every = np.arange(len(points))
    held_out = [
        HeldOut(point=points[number], predicted=measured.fitted(every[every != number]).seconds(points[number].size))
        for number in _tried(points)
    ]
    edges = {
        (name, edge): error
        for name in AXES
        for edge in EDGES
        if (error := _edge_error(points, name, edge, measured)) is not None
    }
    return replace(plain, model=measured.fitted(), held_out=tuple(held_out), edges=edges)


def _known(points: Sequence[Point]) -> dict[str, tuple[int, ...]]:
    found: dict[str, set[int]] = {}
    for point in points:
        for name, value in variables(point.size).items():
            found.setdefault(name, set()).add(value)
    return {name: tuple(sorted(values)) for name, values in found.items()}


def _place(size: Size) -> tuple[int | None, ...]:
    return size.executors, size.cores, size.threads, size.partitions


def _tried(points: Sequence[Point]) -> list[int]:
    """Which are held out: all, or of very many some, with the largest."""
    step = math.ceil(len(points) / MOST_HELD_OUT)
    largest = max(range(len(points)), key=lambda number: _largeness(points[number]))
    return sorted({*range(0, len(points), step), largest})


def _largeness(point: Point) -> tuple[float, int]:
    return point.size.flop, point.size.total_cores


def _edge_error(points: Sequence[Point], name: str, edge: Edge, measured: Measured) -> float | None:
    """The median error at the smallest or largest value of a variable, of a model that has seen nothing with it.

    None where that leaves a single value of it, of which no model learns what another one takes; or too few points.
    """
    values = [variables(point.size).get(name) for point in points]
    known = sorted({value for value in values if value is not None})
    if len(known) < 3:
        return None
    last = known[-1] if edge == "largest" else known[0]
    rest = [number for number, value in enumerate(values) if value != last]
    if len(rest) < LEAST - 1:
        return None
    model = measured.fitted(rest)
    held_out = [point for point, value in zip(points, values, strict=True) if value == last]
    return median(abs(model.seconds(point.size) / point.seconds - 1) for point in held_out)


def _too_few(series: Series) -> str:
    flat = [words for name, words in AXES.items() if words and len(series.known.get(name, ())) == 1]
    vary = f"vary {listed(flat, 'or')} too" if flat else "add values to an axis of the profile"
    return (
        f"{named(series)} was measured in {counted(len(series.points), 'configuration')} of different size, and a "
        f"model takes {LEAST}: {vary}"
    )


def _points(rows: Iterable[Mapping[str, Any]]) -> Iterable[Point]:
    """One for each size: what differs only in memory or learning rate is one of them."""
    sized: dict[Size, list[Mapping[str, Any]]] = {}
    for row in rows:
        sized.setdefault(_size(row), []).append(row)
    for size, alike in sized.items():
        exchanges = [row["exchange_seconds"] for row in alike if row["exchange_seconds"] is not None]
        seconds = [_seconds(row) for row in alike]
        yield Point(
            size=size,
            seconds=sum(seconds) / len(seconds),
            exchange_seconds=sum(exchanges) / len(exchanges) if exchanges else None,
            flops=_flops(alike[0], size),
            row=alike[0],
            datasets=tuple(dict.fromkeys(row["dataset"] for row in alike)),
        )


def _size(row: Mapping[str, Any]) -> Size:
    return Size(
        rows=row["rows"],
        layers=_family(row["network"])[1],
        executors=row["executors"],
        cores=row["cores"],
        threads=row["threads"],
        partitions=row["partitions"],
        batch_size=row["batch_size"],
    )


def _seconds(row: Mapping[str, Any]) -> float:
    """Of a pass; of an epoch where passes are not known."""
    return float(row["seconds"] if row["seconds_per_pass"] is None else row["seconds_per_pass"])


def _flops(row: Mapping[str, Any], size: Size) -> float | None:
    if row["floor_seconds"] is None or not row["floor_seconds"]:
        return None
    return size.flop * (row["passes_per_epoch"] or 1.0) / float(row["floor_seconds"])


def _family(name: str) -> tuple[str, tuple[int, ...]]:
    """What networks have in common whose arithmetic differs only in size, and that size."""
    try:
        network = Network.parse(name)
    except SettingError:
        return name, ()
    if network.source is not None or not network.sizes:
        return name, ()
    return f"{name.partition(':')[0]}:{','.join(network.activations)}", network.sizes
