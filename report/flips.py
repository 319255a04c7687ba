"""When the answer would be another one: where two models cross, no farther than they were validated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from report.predictions import Series, reach
from report.scaling_model import Model, Point, Size
from report.verdict import Comparison, Row, Standing
from report.words import counted, listed, percent, resources, seconds, title

STEPS = 24  # of a search along an axis, equally far apart as ratios


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What is changed, of whom, and how it is said."""

    name: str  # a variable of predictions
    of_both: bool  # else only of the slower platform
    change: Callable[[Size, int], Size]
    value: Callable[[Size], int | None]
    said: Callable[[str], str]
    limit: Callable[[str], str]


def _with_hidden(size: Size, units: int) -> Size:
    return replace(size, layers=(size.layers[0], units, size.layers[-1]))


def _hidden(size: Size) -> int | None:
    return size.layers[1] if len(size.layers) == 3 else None


def _with_executors(size: Size, executors: int) -> Size:
    wider = replace(size, executors=executors)
    if size.partitions is None:
        return wider
    return replace(wider, partitions=max(size.partitions, wider.total_cores))


AXES = (
    Axis(
        name="rows",
        of_both=True,
        change=lambda size, value: replace(size, rows=value),
        value=lambda size: size.rows,
        said=lambda number: f"at {number} rows",
        limit=lambda number: f"{number} rows",
    ),
    Axis(
        name="parameters",
        of_both=True,
        change=_with_hidden,
        value=_hidden,
        said=lambda number: f"with {number} hidden units",
        limit=lambda number: f"{number} hidden units",
    ),
    Axis(
        name="executors",
        of_both=False,
        change=_with_executors,
        value=lambda size: size.executors,
        said=lambda number: f"with {number} executors",
        limit=lambda number: f"{number} executors",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A platform at its best, the model of it, and the resources that it was measured with."""

    platform: str
    series: Series
    model: Model
    size: Size
    places: tuple[Size, ...]  # its own size on each of these resources

    def best(self, axis: Axis, value: int) -> tuple[float, Size]:
        """On whichever of its resources it is predicted to be fastest."""
        sizes = [axis.change(size, value) for size in self.places]
        return min(((self.model.seconds(size), size) for size in sizes), key=lambda each: each[0])

    def at(self, size: Size) -> str:
        place = resources({"executors": size.executors, "cores": size.cores, "threads": size.threads})
        return f"{title(self.platform)} ({place})" if place else title(self.platform)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A platform that is slower where it was measured, and the fastest one."""

    slower: Side
    fastest: Side

    def gap(self, axis: Axis, value: int) -> float:
        """How much longer the slower one takes, as a logarithm."""
        other = self.fastest.best(axis, value)[0] if axis.of_both else self.fastest.model.seconds(self.fastest.size)
        return math.log(self.slower.best(axis, value)[0] / other)

    def doubt(self, axis: Axis, value: int) -> float:
        """What both predictions leave open, as if their errors had nothing to do with each other."""
        size = self.slower.best(axis, value)[1]
        other = self.fastest.best(axis, value)[1] if axis.of_both else self.fastest.size
        each = (self.slower.series.doubt(size), self.fastest.series.doubt(other))
        return math.hypot(*(math.inf if doubt is None else doubt for doubt in each))

    @property
    def errors(self) -> str:
        said = [f"{percent(side.series.error, 2)} for {title(side.platform)}" for side in (self.slower, self.fastest)]
        return f"whose median is {listed(said)}"


def flips(comparison: Comparison, found: Sequence[Series]) -> list[str]:
    """Of each slower platform what would make it the faster one, or how far nothing does; models allowing."""
    sides = [side for standing in comparison.standings if (side := _side(standing, found)) is not None]
    if comparison.fastest is None or not sides or sides[0].platform != comparison.fastest.platform:
        return []
    fastest, *others = sides
    said: list[str] = []
    for slower in others:
        # Models that do not see what was measured do not see where it ends, either.
        if slower.model.seconds(slower.size) > fastest.model.seconds(fastest.size) > 0:
            said += _of_pair(Pair(slower=slower, fastest=fastest))
    return said


def _side(standing: Standing, found: Sequence[Series]) -> Side | None:
    row = standing.best
    series = next((series for series in found if series.model is not None and series.holds(row)), None)
    if series is None or series.model is None or series.spread is None or row["unit"] != "epoch":
        return None
    mine = next((point.size for point in series.points if _is_of(point, row)), None)
    if mine is None:
        return None
    places = {
        replace(mine, executors=each.executors, cores=each.cores, threads=each.threads, partitions=each.partitions)
        for each in series.places
    }
    return Side(
        platform=standing.platform,
        series=series,
        model=series.model,
        size=mine,
        places=(mine, *sorted(places - {mine}, key=repr)),
    )


def _is_of(point: Point, row: Row) -> bool:
    names = ("rows", "executors", "cores", "threads", "partitions")
    same = all(getattr(point.size, name) == row[name] for name in names)
    return same and point.row is not None and point.row["network"] == row["network"]


def _of_pair(pair: Pair) -> Iterator[str]:
    limits = []
    for axis in AXES:
        start, bounds = axis.value(pair.slower.size), _bounds(axis, pair)
        if start is None or bounds is None or pair.gap(axis, start) <= 0:
            continue
        low, high = bounds
        ways = [_grid(start, high)] if axis.name == "executors" else [_grid(start, high), _grid(start, low)]
        crossed = [said for way in ways if (said := _crossing(axis, pair, start, way)) is not None]
        yield from crossed
        if not crossed and high > start:
            limits.append(axis.limit(_number(high, exact=axis.name == "executors", down=True)))
    if limits:
        slower, fastest = pair.slower, pair.fastest
        yield (
            f"{slower.at(slower.size)} is not predicted to overtake {fastest.at(fastest.size)} below "
            f"{listed(limits, 'or')}, which is as far as was validated (by held-out errors {pair.errors})."
        )


def _bounds(axis: Axis, pair: Pair) -> tuple[int, int] | None:
    """Values for which both models were validated."""
    sides = (pair.slower, pair.fastest) if axis.of_both else (pair.slower,)
    least, most = [], []
    for side in sides:
        known = reach(side.series, axis.name)
        if known is None:
            return None
        low, high = (_units(side.size, value) for value in known) if axis.name == "parameters" else known
        least.append(math.ceil(low))
        most.append(math.floor(high))
    lowest, highest = max(1, *least), min(most)
    if axis.name == "executors":
        # Cores in all may be beyond their range before executors are.
        widest = reach(pair.slower.series, "cores in all")
        cores = max(size.cores or 1 for size in pair.slower.places)
        highest = min(highest, math.floor(widest[1] / cores) if widest else highest)
    return (lowest, highest) if lowest < highest else None


def _units(size: Size, parameters: float) -> float:
    """Hidden units of a network with so many parameters."""
    if len(size.layers) != 3:
        return 0.0
    inputs, _, classes = size.layers
    return (parameters - classes) / (inputs + 1 + classes)


def _grid(start: int, end: int) -> list[int]:
    """From what was measured outwards."""
    if start < 1 or end < 1:
        return []
    values = np.unique(np.geomspace(start, end, STEPS).round().astype(int))
    return [int(value) for value in (values if end > start else values[::-1])]


def _first(way: Sequence[int], is_so: Callable[[int], bool]) -> int | None:
    """The value nearest to the measured one from which on something is so."""
    number = next((number for number, value in enumerate(way) if is_so(value)), None)
    if number is None:
        return None
    value, last = way[number], way[max(number - 1, 0)]
    while abs(value - last) > 1:
        middle = (value + last) // 2
        value, last = (middle, last) if is_so(middle) else (value, middle)
    return value


def _crossing(axis: Axis, pair: Pair, start: int, way: Sequence[int]) -> str | None:
    value = _first(way, lambda each: pair.gap(axis, each) < 0)
    if value is None:
        return None
    up, exact = value > start, axis.name == "executors"
    earliest = _first(way, lambda each: pair.gap(axis, each) < pair.doubt(axis, each)) or value
    surely = _first(way, lambda each: pair.gap(axis, each) < -pair.doubt(axis, each))
    took, size = pair.slower.best(axis, value)
    other = pair.fastest.best(axis, value)[1] if axis.of_both else pair.fastest.size
    number = _number(value, exact=exact, down=not up)
    ends = sorted(each for each in (earliest, surely) if each is not None)
    told = list(dict.fromkeys(_number(each, exact=exact, down=not up) for each in ends))
    within = " to ".join(told) if surely is not None else f"{told[0]} at the {'least' if up else 'most'}"
    who = pair.slower.at(size)
    if exact:
        number, who = f"not below {counted(value, 'executor')}", title(pair.slower.platform)
        number += f" of {counted(size.cores, 'core')}" if size.cores else ""
    else:
        number = axis.said(number) + ("" if up else " or fewer")
    return (
        f"{number} {who} is predicted to overtake {pair.fastest.at(other)}, at {seconds(took)} "
        f"({within}, 19 times of 20 by the held-out errors, {pair.errors})."
    )


def _number(value: int, *, exact: bool, down: bool) -> str:
    """Two digits are all that a model is good for, rounded away from where the answer is still the old one."""
    if exact or value < 10:
        return f"{value:,}"
    power = 10 ** (len(str(value)) - 2)
    return f"{(value // power if down else -(-value // power)) * power:,}"
