"""What may be said of where the seconds went, in whole sentences. The page and the terminal say the same."""

from __future__ import annotations

from collections.abc import Sequence

from report import places
from report.breakdown import FLOOR, OVERHEAD, PRECISION, REST, SLOWER, Breakdown
from report.factors import Factor, Split
from report.facts import RunFacts
from report.verdict import Comparison
from report.words import (
    capped,
    counted,
    listed,
    percent,
    period,
    resources,
    seconds,
    significant,
    times,
    times_between,
    title,
)

SLOW_PROBE = "the machine was slower while its speed was probed"
SMALL = 0.01  # parts below this share of the whole are told together
NAMES = {
    "comm": "communication",
    "scheduling": "scheduling",
    "gc": "garbage collection",
    "serialization": "serialization",
    "driver": "the driver",
    "other": "what the ledger cannot tell",
}


def part_name(part: str, each: Breakdown) -> str:
    """As the legend and the table call it."""
    return {
        FLOOR: f"arithmetic at the machine's speed in {each.reference}",
        PRECISION: f"{each.row['precision']} instead of {each.reference}",
        SLOWER: "slower arithmetic" if each.floor is not None else "arithmetic",
        REST: "above the floor",
        "driver": "driver",
        "other": "other",
    }.get(part) or NAMES[part]


def whole(comparison: Comparison, each: Breakdown) -> str:
    """Of a configuration with a ledger: `Of Spark MLlib's 3.1 s an epoch (...), 1.0 s is the arithmetic at ...`."""
    what = period(comparison.work, by_pass=comparison.by_pass)
    at = f" ({resources(each.row)})" if resources(each.row) else ""
    parts = [_arithmetic(each), *_overhead(each)]
    said = f"Of {title(each.row['platform'])}'s {seconds(each.seconds)} {what}{at}, {listed([p for p in parts if p])}."
    return f"{said} {_disturbed(each)}".strip()


def _arithmetic(each: Breakdown) -> str:
    row, parts = each.row, each.parts
    if FLOOR not in parts:
        return f"{seconds(parts[SLOWER])} is arithmetic, whose least time on this machine is not known"
    cores = f" with {counted(row['total_cores'], 'core')}" if row["total_cores"] else ""
    said = [f"{seconds(parts[FLOOR])} is the arithmetic at this machine's speed in {each.reference}{cores}"]
    if parts.get(PRECISION):
        said.append(f"{seconds(parts[PRECISION])} more is {row['precision']} instead of {each.reference}")
    if parts.get(SLOWER):
        # No metric of Spark's tells the fetch of the weights from the work of a task.
        fetched = "" if row["clock"] == "measured" else "the fetch of the weights is in it"
        inside = "; ".join(text for text in (listed(row["blas"] or []), fetched) if text)
        said.append(f"{seconds(parts[SLOWER])} slower arithmetic" + (f" ({inside})" if inside else ""))
    return ", ".join(said)


def _overhead(each: Breakdown) -> list[str]:
    told = [name for name in OVERHEAD if each.parts.get(name, 0.0) >= SMALL * each.seconds]
    rest = sum(each.parts.get(name, 0.0) for name in OVERHEAD if name not in told)
    told.sort(key=lambda name: (name == "other", -each.parts[name]))
    said = [f"{seconds(each.parts[name])} {NAMES[name]}" for name in told]
    small = f"less than {percent(SMALL, 1)} each" if told else "all that is neither"
    return [*said, f"{seconds(rest)} the rest ({small})"] if rest >= SMALL * each.seconds / 2 else said


def _disturbed(each: Breakdown) -> str:
    if not each.below_floor:
        return ""
    return f"That is less than its arithmetic should take: {SLOW_PROBE}."


def split(comparison: Comparison, each: Split) -> str:
    """torch in the platform's own precision stands between precision and runtime."""
    what = period(comparison.work, by_pass=comparison.by_pass)
    base, fine, row = each.coarse, each.fine, each.row
    gradient = f"the {base['gradient']} gradient" if "gradient" in comparison.varying and base["gradient"] else ""
    inside = [text for text in (resources(base), gradient) if text]
    at = f" with {listed(inside)}" if inside else ""
    return (
        f"{places.titled(base, comparison.ran)}{at} needs {seconds(base['rank_by'])} {what} in {base['precision']} and "
        f"{seconds(fine['rank_by'])} in {fine['precision']}: of the {times(each.whole.value)} that "
        f"{title(row['platform'])} takes with as many cores, "
        f"{times_between(each.precision.value, each.precision.low, each.precision.high)} is the precision and "
        f"{times_between(each.runtime.value, each.runtime.low, each.runtime.high)} the runtime."
    )


def factor(each: Factor) -> str:
    """`float64 takes 2.1x (2.0 to 2.2) of float32 on torch-cpu, 1 thread`."""
    row = each.row
    fixed = row["gradient"] if each.what == "precision" else row["precision"]
    at = ", ".join(text for text in (resources(row), fixed or "") if text)
    ratio = times_between(each.ratio.value, each.ratio.low, each.ratio.high)
    name = {"gradient": "the {} gradient", "compression": "sending gradients in {}"}.get(each.what, "{}")
    against = "sending them whole" if each.what == "compression" else each.against[each.what]
    said = f"{name.format(row[each.what])} takes {ratio} of {against} on {title(row['platform'])}"
    return said + (f" ({at})" if at else "") + (_accuracies(each) if each.what == "compression" else "")


def _accuracies(each: Factor) -> str:
    """What is lost where less is sent."""
    own, other = each.row["final_accuracy"], each.against["final_accuracy"]
    return (
        ""
        if None in (own, other)
        else f", with {percent(own, 4)} of the test rows right instead of {percent(other, 4)}"
    )


def doubt(run: RunFacts) -> list[str]:
    """Machines that were busy while their speed was probed: their peaks are too low."""
    share = float(run.settings.get("yarnstick.noisy_share", 0.05))
    busy = [each for each in run.probes if run.cores and each.other_load > share * run.cores]
    return [
        f"others kept {significant(each.other_load)} cores of {each.machine} busy while its matrix product was "
        f"measured: its floors are rather too high"
        for each in busy
    ]


def of_ledger(comparison: Comparison, shown: Sequence[Breakdown], there: int) -> str:
    """Below the figure: how much of each platform's best time is its floor."""
    what = period(comparison.work, by_pass=comparison.by_pass)
    of_row = {each.row["configuration"]: each for each in shown}
    bests = [standing.best["configuration"] for standing in comparison.standings]
    best = {of_row[name].row["platform"]: of_row[name] for name in bests if name in of_row}
    floors = [
        f"{title(name)} needs {times(each.seconds / each.floor)} of its floor ({seconds(each.seconds)} {what} against "
        f"{seconds(each.floor)} in {each.row['precision']})"
        for name, each in best.items()
        if each.floor
    ]
    without = [title(name) for name, each in best.items() if not each.floor]
    if without:
        floors.append(f"of {listed(without)} no floor is known")
    cut = f" {len(shown)} of {there} configurations shown; the table has all." if there > len(shown) else ""
    below = sum(each.below_floor for each in shown)
    below_said = f" {counted(below, 'bar')} end below the floor: {SLOW_PROBE}." if below else ""
    return f"At its best, {'; '.join(floors)}.{below_said}{cut}" if floors else f"{capped(cut.strip())}{below_said}"
