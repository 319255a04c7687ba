"""Do cores or does memory explain the seconds? Straight lines over machines, each alone and both together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from models.record import IDENTITY
from report import tables
from report.statistics import Floats
from report.words import counted, significant, title

Row = Mapping[str, Any]  # of comparison.configurations
# The resources by their names in fits.csv, and the columns they are in.
RESOURCES = {"cores": "total_cores", "memory_gb": "machine_memory_gb"}
BOTH = "cores and memory_gb"
# What may differ among the points of a line. All else has to be equal, for else the work is another.
OF_MACHINE = (
    "run_id", "machine", "machine_memory_gb", "executors", "cores", "threads", "memory_mib", "partitions", "workers",
    "nodes", "deploy_mode",
)  # fmt: skip
WORK = tuple(name for name in IDENTITY if name not in OF_MACHINE)
# Variance inflation from which on, by a cautious custom and by the usual one, causes can hardly or not be told apart.
HARDLY, NOT = 2.5, 10.0
# The contract's, then what is ours.
COLUMNS: dict[str, type[pl.DataType]] = {
    "platform": pl.String,
    "dataset": pl.String,
    "resource": pl.String,
    "n": pl.Int64,
    "slope": pl.Float64,  # seconds for each further core or GB
    "intercept": pl.Float64,
    "r_squared": pl.Float64,
    "p": pl.Float64,  # that the slope, or both, are zero
    "cores_slope": pl.Float64,  # of the joint fit
    "memory_gb_slope": pl.Float64,
    "cores_partial_r_squared": pl.Float64,
    "memory_gb_partial_r_squared": pl.Float64,
    "variance_inflation": pl.Float64,
    "condition_number": pl.Float64,
    "note": pl.String,
    "network": pl.String,
    "solver": pl.String,
    "learning_rate": pl.Float64,
    "precision": pl.String,
    "gradient": pl.String,
    "batch_size": pl.Int64,
    "data_fraction": pl.Float64,
    "rows": pl.Int64,
    "device": pl.String,
    "unit": pl.String,
    "epochs": pl.Int64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Seconds over one resource, by least squares over configurations, each by the mean of its trials."""

    row: Row  # any of its configurations
    resource: str
    n: int
    slope: float
    intercept: float
    r_squared: float
    p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """Seconds over cores and memory together; the numbers are None where the two can't be told apart at all."""

    row: Row
    n: int
    slopes: tuple[float, float] | None
    intercept: float | None
    r_squared: float | None
    p: float | None
    partial: tuple[float | None, float | None]  # the share that each explains of what the other one leaves
    inflation: float | None  # 1 / (1 - r squared between the two)
    condition: float | None  # of the columns 1, cores and memory, each of length one
    note: str


def fits(configurations: pl.DataFrame) -> list[Line | Plane]:
    """For each platform, dataset and kind of work: the line of each resource that varies, then both together."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in configurations.to_dicts():
        if row["mean_seconds"] is not None and (row["executors"] is None or row["executors"] <= 1):
            groups.setdefault(tuple(row[name] for name in (*WORK, "whole_epochs")), []).append(row)
    trained = {_but_unit(rows[0]) for rows in groups.values() if rows[0]["unit"] == "training"}
    found: list[Line | Plane] = []
    for rows in groups.values():
        if rows[0]["unit"] == "training" or _but_unit(rows[0]) not in trained:
            found += [line for resource in RESOURCES if (line := _line(rows, resource)) is not None]
            found += [plane] if (plane := _plane(rows)) is not None else []
    return found


def csv(found: Sequence[Line | Plane]) -> bytes:
    rows = [{**_work(each.row), **(_of_line(each) if isinstance(each, Line) else _of_plane(each))} for each in found]
    return tables.csv(pl.DataFrame([[row.get(name) for name in COLUMNS] for row in rows], COLUMNS, orient="row"))


def sentences(found: Sequence[Line | Plane]) -> list[str]:
    """What cores and memory explain together: only where both varied, which is where one may be taken for the other."""
    return [_sentence(each) for each in found if isinstance(each, Plane)]


def _but_unit(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in WORK if name != "unit")


def _points(rows: Sequence[Row], *resources: str) -> tuple[Floats, ...]:
    """A column for each resource and one of seconds, a point for each row of which all are known.

    Repeats on one machine tell how noisy it is, and nothing more of what its cores or memory do.
    """
    points = [
        (*(float(row[RESOURCES[name]]) for name in resources), float(row["mean_seconds"]))
        for row in rows
        if all(row[RESOURCES[name]] is not None for name in resources)
    ]
    return tuple(np.array(column, np.float64) for column in zip(*points, strict=True)) or (np.empty(0),) * 3


def _line(rows: Sequence[Row], resource: str) -> Line | None:
    from scipy import stats

    x, y, *_ = _points(rows, resource)
    if len(x) == 0 or np.ptp(x) == 0:
        return None
    found = stats.linregress(x, y)
    return Line(
        row=rows[0],
        resource=resource,
        n=len(x),
        slope=float(found.slope),
        intercept=float(found.intercept),
        r_squared=float(found.rvalue**2),
        p=float(found.pvalue) if len(x) > 2 else None,  # a line always fits two points
    )


def _plane(rows: Sequence[Row]) -> Plane | None:
    from scipy import stats

    cores, memory, y = _points(rows, *RESOURCES)
    n = len(y)
    if n == 0 or np.ptp(cores) == 0 or np.ptp(memory) == 0:
        return None
    between = float(np.corrcoef(cores, memory)[0, 1]) ** 2
    columns = np.column_stack([np.ones(n), cores, memory])
    scaled = columns / np.sqrt((columns**2).sum(axis=0))
    singular = np.linalg.svd(scaled, compute_uv=False)
    in_step = len(singular) < 3 or singular[-1] <= 1e-10 or between >= 1 - 1e-9
    condition = None if in_step else float(singular[0] / singular[-1])
    if condition is None or n < 4 or np.ptp(y) == 0:
        why = (
            "cores and memory_gb rise in step: nothing tells which of them it is"
            if condition is None
            else f"{counted(n, 'point')} are too few for two resources: it takes 4"
            if n < 4
            else "all took equally long"
        )
        inflation = 1 / (1 - between) if condition is not None else None
        return Plane(
            row=rows[0], n=n, slopes=None, intercept=None, r_squared=None, p=None, partial=(None, None),
            inflation=inflation, condition=condition, note=why,
        )  # fmt: skip
    intercept, *slopes = (float(value) for value in np.linalg.lstsq(columns, y, rcond=None)[0])
    rest = _rest(columns, y)
    total = float(((y - y.mean()) ** 2).sum())
    # A fit that leaves nothing has no residual to test against.
    f = ((total - rest) / 2) / (rest / (n - 3)) if rest > 1e-12 * total else float("inf")
    inflation = 1 / (1 - between)
    return Plane(
        row=rows[0],
        n=n,
        slopes=(slopes[0], slopes[1]),
        intercept=intercept,
        r_squared=1 - rest / total,
        p=float(stats.f.sf(f, 2, n - 3)),
        partial=(_partial(columns[:, [0, 2]], y, rest, total), _partial(columns[:, [0, 1]], y, rest, total)),
        inflation=inflation,
        condition=condition,
        note=_note(inflation),
    )


def _rest(columns: Floats, y: Floats) -> float:
    """The sum of squares that a least-squares fit leaves."""
    coefficients = np.linalg.lstsq(columns, y, rcond=None)[0]
    return float(((y - columns @ coefficients) ** 2).sum())


def _partial(without: Floats, y: Floats, rest: float, total: float) -> float | None:
    left = _rest(without, y)
    return max(0.0, (left - rest) / left) if left > 1e-12 * total else None


def _note(inflation: float) -> str:
    said = significant(inflation, 2)
    if inflation >= NOT:
        return f"cores and memory_gb rise together (variance inflation {said}): their shares can't be told apart"
    if inflation >= HARDLY:
        return f"cores and memory_gb rise largely together (variance inflation {said}): their shares are uncertain"
    return f"cores and memory_gb vary apart (variance inflation {said}): their shares can be told"


def _sentence(plane: Plane) -> str:
    name = f"{title(plane.row['platform'])} on {plane.row['dataset']}"
    if plane.r_squared is None:
        return f"{name}: {plane.note}."
    shares = [
        f"{resource} {significant(share, 2)} of what {other} leaves"
        for (resource, other), share in zip((("cores", "memory"), ("memory", "cores")), plane.partial, strict=True)
        if share is not None
    ]
    alone = f" ({'; '.join(shares)})" if shares else ""
    return (
        f"{name}, {counted(plane.n, 'point')}: a straight line of cores and memory together has an R squared of "
        f"{significant(plane.r_squared, 2)}{alone}; {plane.note}."
    )


def _work(row: Row) -> dict[str, Any]:
    return {**{name: row[name] for name in COLUMNS if name in row and name in WORK}, "epochs": row["whole_epochs"]}


def _of_line(line: Line) -> dict[str, Any]:
    return {
        "resource": line.resource,
        **{name: getattr(line, name) for name in ("n", "slope", "intercept", "r_squared", "p")},
    }


def _of_plane(plane: Plane) -> dict[str, Any]:
    slopes = plane.slopes or (None, None)
    return {
        "resource": BOTH,
        **{name: getattr(plane, name) for name in ("n", "intercept", "r_squared", "p", "note")},
        "cores_slope": slopes[0],
        "memory_gb_slope": slopes[1],
        "cores_partial_r_squared": plane.partial[0],
        "memory_gb_partial_r_squared": plane.partial[1],
        "variance_inflation": plane.inflation,
        "condition_number": plane.condition,
    }
