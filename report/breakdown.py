"""Where an epoch's seconds went: what its arithmetic needs at this machine's speed, and all that came on top of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.probes import MachineProbes
from models.record import LEDGER
from models.spec import PRECISIONS
from report.verdict import Comparison, Row

# In the order in which a bar is stacked. The first three are arithmetic.
FLOOR, PRECISION, SLOWER, REST = "floor", "precision", "slower", "rest"
OVERHEAD = tuple(name for name in LEDGER if name != "compute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """The parts of a configuration's mean seconds; they sum to it."""

    row: Row
    seconds: float
    floor: float | None  # at its own precision with as many cores
    reference: str  # the precision of the part `floor`
    parts: Mapping[str, float]  # none is negative
    has_ledger: bool

    @property
    def below_floor(self) -> bool:
        """Faster than the probe says is possible: the machine was slower while it was probed."""
        return self.floor is not None and self.arithmetic < 0.98 * self.floor

    @property
    def arithmetic(self) -> float:
        """What there is of seconds in which arithmetic may have been done."""
        return sum(self.parts.get(name, 0.0) for name in (FLOOR, PRECISION, SLOWER, REST))


def breakdowns(comparison: Comparison, *, precision: str, probes: Sequence[MachineProbes]) -> list[Breakdown]:
    """Of every configuration that ran and has a ledger or a floor; `precision` is the baseline's."""
    found = (_breakdown(row, precision, probes) for row in comparison.ran)
    return [each for each in found if each is not None]


def _breakdown(row: Row, precision: str, probes: Sequence[MachineProbes]) -> Breakdown | None:
    has_ledger = row["compute"] is not None
    mean, floor = row["mean_seconds"], row["floor_seconds"]
    if mean is None or not (has_ledger or floor is not None):
        return None
    # Where passes are ranked, all of it is of a pass.
    scale = row["rank_by"] / mean
    compute = row["compute"] if has_ledger else mean
    parts: dict[str, float] = {}
    reference = row["precision"]
    if floor is not None:
        at_reference = _floor_at(row, precision, probes)
        if at_reference is not None and at_reference < floor:
            reference = precision
            parts[FLOOR] = min(at_reference, compute)
            parts[PRECISION] = min(floor, compute) - parts[FLOOR]
        else:
            parts[FLOOR] = min(floor, compute)
        parts[SLOWER if has_ledger else REST] = max(compute - floor, 0.0)
    else:
        parts[SLOWER] = compute
    if has_ledger:
        parts |= {name: max(row[name] or 0.0, 0.0) for name in OVERHEAD}
        # What rounding left of the ledger, or a column that it had not.
        parts["other"] = max(parts["other"] + mean - sum(parts.values()), 0.0)
    whole = sum(parts.values())
    return Breakdown(
        row=row,
        seconds=row["rank_by"],
        floor=None if floor is None else floor * scale,
        reference=reference,
        parts={name: value * row["rank_by"] / whole for name, value in parts.items()},
        has_ledger=has_ledger,
    )


def _floor_at(row: Row, precision: str, probes: Sequence[MachineProbes]) -> float | None:
    """The same arithmetic at another, coarser precision with the same cores of the same machine."""
    own = row["precision"]
    if own == precision or own not in PRECISIONS or precision not in PRECISIONS:
        return None
    for machine in probes:
        if machine.machine == row["machine"]:
            mine, other = (machine.peak(name, row["total_cores"]) for name in (own, precision))
            if mine and other and PRECISIONS.index(own) < PRECISIONS.index(precision):
                return float(row["floor_seconds"] * mine / other)
    return None
