"""Seconds of a pass as a sum of physical terms, none of them negative, fitted as Ernest does (Venkataraman, NSDI 2016).

Physics comes first: the arithmetic is divided by the measured speed of the machine's matrix product where records have
it, and what executors exchange is fitted to its own probe where they have that. A term that the measured configurations
cannot tell from those before it is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.spec import Network

Floats = NDArray[np.float64]

# How gradients come together: a rank sums a piece for all, and has a message for each. Of other platforms: by a tree.
PIECES, SERVER, TREE = "pieces", "server", "tree"
COMMUNICATION = {"torch-spark": PIECES, "torch-spark-async": SERVER}
# The part of a column that no column before it explains; below it the two cannot be told apart.
DISTINCT = 0.03
# Of what a user is told, each term is one of these.
COMPUTE, UPDATE, EXCHANGE, SCHEDULING, FIXED = "compute", "update", "communication", "scheduling", "fixed"
PARTS = {
    "arithmetic": COMPUTE,
    "inputs": COMPUTE,
    "values": COMPUTE,
    "shared": COMPUTE,
    "update": UPDATE,
    "rounds": EXCHANGE,
    "bytes": EXCHANGE,
    "gradients": EXCHANGE,
    "exchange": EXCHANGE,
    "waves": SCHEDULING,
    "fixed": FIXED,
}
# In the order in which they are taken in; the first group only where no probe of the exchange stands for it.
EXCHANGED = ("fixed", "bytes", "rounds", "update", "gradients", "waves")
PROBED = ("arithmetic", "exchange", "fixed", "inputs", "values", "update", "shared")
DIRECT = ("arithmetic", "fixed", "bytes", "rounds", "update", "gradients", "waves", "inputs", "values", "shared")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a training is, and on how much it runs."""

    rows: int
    layers: tuple[int, ...]  # inputs, hidden layers, classes; empty where nobody knows its arithmetic
    executors: int | None = None
    cores: int | None = None  # of each
    threads: int | None = None
    partitions: int | None = None
    batch_size: int | None = None

    @property
    def total_cores(self) -> int:
        if self.executors is not None:
            return self.executors * (self.cores or 1)
        return self.threads or self.cores or 1

    @property
    def flop(self) -> float:
        return float(self.rows * (Network(sizes=self.layers).flop_per_row() or 1))

    @property
    def parameters(self) -> int:
        return Network(sizes=self.layers).parameters or 1

    @property
    def sums(self) -> int:
        """Of gradients in a pass: one for each batch."""
        return 1 if self.batch_size is None else math.ceil(self.rows / self.batch_size)

    @property
    def waves(self) -> int:
        """Of tasks, one after the other on a core."""
        return 1 if self.partitions is None else math.ceil(self.partitions / self.total_cores)

    @property
    def share(self) -> float:
        """Of the rows, that the busiest core has."""
        return 1 / self.total_cores if self.partitions is None else self.waves / self.partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A configuration that was measured."""

    size: Size
    seconds: float  # of a pass
    exchange_seconds: float | None = None  # of one sum of gradients, by a probe
    flops: float | None = None  # of the machine's matrix product with as many cores
    row: Mapping[str, Any] | None = None  # what it is called by
    datasets: tuple[str, ...] = ()  # all that were trained on at this size


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """FLOP/s of a core, by how many work at once; 1 where it was not measured.

    A speed that is the very same with more cores is that of a machine which has no more.
    """

    cores: tuple[int, ...] = ()
    of_a_core: tuple[float, ...] = ()

    @classmethod
    def of(cls, points: Sequence[Point]) -> Speeds:
        measured = [(point.size.total_cores, point.flops) for point in points if point.flops is not None]
        if len(measured) < len(points):
            return cls()
        fewest: dict[str, int] = {}
        for cores, flops in sorted(measured):
            fewest.setdefault(f"{flops:.9g}", cores)
        found: dict[int, list[float]] = {}
        for cores, flops in measured:
            found.setdefault(cores, []).append(flops / fewest[f"{flops:.9g}"])
        return cls(cores=tuple(sorted(found)), of_a_core=tuple(median(found[cores]) for cores in sorted(found)))

    def at(self, cores: int) -> float:
        return float(np.interp(cores, self.cores, self.of_a_core)) if self.cores else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Coefficients of what a pass takes; each is at least 0."""

    communication: str | None
    speeds: Speeds
    exchange: Mapping[str, float]  # of one sum, by its probe; empty without one
    coefficients: Mapping[str, float]

    def terms(self, size: Size) -> dict[str, float]:
        """Seconds of each term; their sum is the prediction."""
        found = features(size, communication=self.communication, speeds=self.speeds)
        found["exchange"] = sum(value * found[name] for name, value in self.exchange.items())
        return {name: value * found[name] for name, value in self.coefficients.items()}

    def seconds(self, size: Size) -> float:
        return sum(self.terms(size).values())

    def parts(self, size: Size) -> dict[str, float]:
        """The same in words of the report."""
        parts: dict[str, float] = {}
        for name, value in self.terms(size).items():
            parts[PARTS[name]] = parts.get(PARTS[name], 0.0) + value
        return parts


def communication_of(platform: str, points: Sequence[Point]) -> str | None:
    """None of platforms that run in one process."""
    return COMMUNICATION.get(platform, TREE) if any(point.size.executors for point in points) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Configurations as columns, one for each term, so that many parts of them can be fitted."""

    communication: str | None
    speeds: Speeds
    columns: Mapping[str, Floats]
    seconds: Floats
    sums: Floats
    exchange_seconds: Floats  # NaN where there is no probe
    has_exchange: bool  # every configuration with somebody to sum with has a probe

    @classmethod
    def of(cls, points: Sequence[Point], *, communication: str | None) -> Measured:
        speeds = Speeds.of(points)
        found = [features(point.size, communication=communication, speeds=speeds) for point in points]
        alone = [point.size for point in points if point.exchange_seconds is None]
        # A rank by itself has no probe; the driver of a tree exchanges with one executor, too.
        lonely = communication != TREE and all(size.executors == 1 for size in alone)
        return cls(
            communication=communication,
            speeds=speeds,
            columns={name: np.array([each[name] for each in found]) for name in DIRECT},
            seconds=np.array([point.seconds for point in points]),
            sums=np.array([float(point.size.sums) for point in points]),
            exchange_seconds=np.array([point.exchange_seconds for point in points], np.float64),
            has_exchange=communication is not None and len(alone) < len(points) and (not alone or lonely),
        )

    def fitted(self, kept: Sequence[int] | NDArray[np.int64] | None = None) -> Model:
        """Of some of them, by non-negative least squares on relative errors: a small one counts as much as a large."""
        chosen = np.arange(len(self.seconds)) if kept is None else np.asarray(kept)
        columns = {name: column[chosen] for name, column in self.columns.items()}
        exchange = self._exchange(chosen)
        if exchange:
            columns["exchange"] = np.sum([value * columns[name] for name, value in exchange.items()], axis=0)
        return Model(
            communication=self.communication,
            speeds=self.speeds,
            exchange=exchange,
            coefficients=solved(
                columns,
                self.seconds[chosen],
                names=PROBED if exchange else DIRECT,
                least={"arithmetic": self._least(chosen)},
            ),
        )

    def _least(self, chosen: NDArray[np.int64]) -> float:
        """Arithmetic takes no less than its floor, unless the machine was slower when that was probed."""
        above = self.seconds[chosen] >= self.columns["arithmetic"][chosen]
        return 1.0 if self.speeds.cores and bool(above.all()) else 0.0

    def _exchange(self, chosen: NDArray[np.int64]) -> dict[str, float]:
        """Of one sum of gradients, by its probes."""
        probed = chosen[np.isfinite(self.exchange_seconds[chosen])] if self.has_exchange else chosen[:0]
        if not len(probed):
            return {}
        # Who is alone has nobody to send to: what does not vanish there is none of its terms.
        names = EXCHANGED if self.communication == TREE else ("bytes", "rounds")
        columns = {name: self.columns[name][probed] / self.sums[probed] for name in names}
        return solved(columns, self.exchange_seconds[probed], names=names)


def features(size: Size, *, communication: str | None, speeds: Speeds) -> dict[str, float]:
    """What each term is before its coefficient."""
    inputs, *others = size.layers or (0,)
    return {
        "arithmetic": size.flop * size.share / speeds.at(size.total_cores),
        "inputs": size.rows * inputs * size.share,  # that become numbers, and make narrow products inefficient
        "values": size.rows * sum(others) * size.share,  # that go through an activation
        "shared": float(size.rows * (sum(size.layers) or 1)),  # that cores wait for together: memory
        "fixed": float(size.sums),
        "update": float(size.sums * size.parameters),
        **_between(size, communication),
    }


def _between(size: Size, communication: str | None) -> dict[str, float]:
    """What executors do among each other."""
    if communication is None or size.executors is None:
        return dict.fromkeys(("bytes", "rounds", "waves", "gradients"), 0.0)
    sums, n = size.sums, size.executors
    trips = {PIECES: 2 * (n - 1) / n, SERVER: n - 1.0, TREE: math.log2(n)}[communication]
    rounds = math.log2(n) if communication == TREE else n - 1.0
    tasks = size.waves if size.partitions is not None else 0
    return {
        "bytes": sums * size.parameters * trips,
        "rounds": sums * rounds,
        "waves": float(sums * tasks),
        "gradients": float(sums * tasks * size.parameters),  # each task has one to send
    }


def solved(
    columns: Mapping[str, Floats],
    seconds: Floats,
    *,
    names: Sequence[str],
    least: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Coefficients of the terms that can be told apart, at least 0 or what is named, in the order of `names`."""
    from scipy.optimize import nnls

    relative = {name: columns[name] / seconds for name in names}
    kept = _distinct(relative, most=max(1, len(seconds) - 1))
    if not kept:
        return {}
    matrix = np.column_stack([relative[name] for name in kept])
    scale = np.linalg.norm(matrix, axis=0)
    start = np.array([(least or {}).get(name, 0.0) for name in kept])
    # What lies above the least is what is fitted.
    found, _ = nnls(matrix / scale, 1 - matrix @ start, maxiter=100 * len(kept))
    return {name: float(value) for name, value in zip(kept, start + found / scale, strict=True)}


def _distinct(columns: Mapping[str, Floats], *, most: int) -> list[str]:
    basis: list[Floats] = []
    kept: list[str] = []
    for name, column in columns.items():
        length = float(np.linalg.norm(column))
        if length == 0 or len(kept) == most:
            continue
        rest = column / length
        for other in basis:
            rest = rest - (other @ rest) * other
        left = float(np.linalg.norm(rest))
        if left >= DISTINCT:
            basis.append(rest / left)
            kept.append(name)
    return kept
