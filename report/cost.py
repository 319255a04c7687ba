"""COST (McSherry, Isard, Murray 2015): the fewest cores with which a platform beats one thread, one machine, one GPU.

By the epoch for equal work, by the seconds to the target for unequal; without start-up and loading, and with them. A
platform that no number of cores made faster has an unbounded COST, and its best is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from models.spec import UNKNOWN
from report import places
from report.facts import BaselineSpec
from report.imported import NO_MACHINE, all_imported, is_imported
from report.statistics import Call, Sample, call, holm, welch_less
from report.trainings import unequal, without_start_up
from report.verdict import KINDS, PLAIN, Comparison, Row, Standing
from report.words import counted, distinct_seconds, factor, resources, seconds

Against = Literal["one thread", "one machine", "one GPU"]
WON = ("beats", "plain faster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A configuration by the seconds of its trials; where they are a bracket, `low` has their earliest."""

    row: Row
    values: tuple[float, ...]
    low: tuple[float, ...] | None = None

    @property
    def mean(self) -> float:
        return Sample.of(self.values).mean

    @property
    def least(self) -> float:
        return Sample.of(self.low or self.values).mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one platform against one baseline."""

    platform: str
    cores: int | None  # the fewest that beat it
    unit: str  # cores | executors
    winner: Measured | None
    best: Measured
    undecided: bool  # what is known of the accuracy does not tell
    perhaps_fewer: Measured | None  # of fewer cores that may have beaten it too: then `cores` is an upper bound
    reason: str

    @property
    def is_unbounded(self) -> bool:
        return self.winner is None and not self.undecided


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """COST against one baseline; either it is there, or the reason why not."""

    against: Against  # in the files
    named: str  # as people read it
    with_startup: bool
    baseline: Measured | None
    no_baseline: str | None
    costs: tuple[Cost, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)  # platforms without a COST, and why


def questions(comparison: Comparison, *, spec: BaselineSpec) -> list[Question]:
    """Against each baseline without start-up and with it."""
    found = []
    for against, named, row, reason in _baselines(comparison, spec):
        for with_startup in (False, True):
            found.append(_question(comparison, against, named, row, reason, with_startup=with_startup))
    return found


def named_baseline(row: Row) -> str:
    """What a baseline is: `one thread`, `2 threads`, `64 cores of bigbox`."""
    if not is_imported(row):
        return threads_of(row["threads"])
    machine = "an unknown machine" if row["machine"] == UNKNOWN else row["machine"]
    return " of ".join(text for text in (resources(row), machine) if text)


def threads_of(number: int) -> str:
    return "one thread" if number == 1 else counted(number, "thread")


def _question(
    comparison: Comparison, against: Against, named: str, row: Row | None, reason: str | None, *, with_startup: bool
) -> Question:
    if row is not None and with_startup:
        reason = not_whole(comparison, row, beside=row)
    if row is None or reason is not None:
        return Question(
            against=against, named=named, with_startup=with_startup, baseline=None, no_baseline=reason, costs=()
        )
    baseline = measured(row, comparison, with_startup=with_startup)
    groups: dict[str, list[Measured]] = {}
    left_out: dict[str, str] = {}
    for standing in comparison.standings:
        # Times of other machines are compared among themselves.
        if standing.platform == row["platform"] or is_imported(standing.best) != is_imported(row):
            continue
        mine = judged(comparison, standing)
        whys = [not_whole(comparison, each, beside=row) if with_startup else None for each in mine]
        group = [each for each, why in zip(mine, whys, strict=True) if why is None]
        if group:
            groups[standing.platform] = [measured(each, comparison, with_startup=with_startup) for each in group]
        else:
            left_out[standing.platform] = next(why for why in whys if why is not None)
    tested = None
    if against == "one thread" and not with_startup:
        tested = _planned(comparison, baseline, groups.values())
    return Question(
        against=against,
        named=named,
        with_startup=with_startup,
        baseline=baseline,
        no_baseline=None,
        costs=costs_against(baseline, groups, against, tested),
        left_out=left_out,
    )


def _planned(
    comparison: Comparison, baseline: Measured, groups: Iterable[Sequence[Measured]]
) -> dict[int, Call] | None:
    """What the verdict has tested already against this baseline; None where some have another one there."""
    known = {
        test.left["configuration"]: test.call
        for test in comparison.tests
        if test.against == "baseline" and test.right["configuration"] == baseline.row["configuration"]
    }
    return known if all(each.row["configuration"] in known for group in groups for each in group) else None


def costs_against(
    baseline: Measured,
    groups: Mapping[str, Sequence[Measured]],
    against: Against,
    tested: Mapping[int, Call] | None = None,
) -> tuple[Cost, ...]:
    """Of each platform, by Welch's one-sided tests with Holm's correction over all of them, or as `tested` already."""
    every = [each for group in groups.values() for each in group]
    calls = _calls(every, baseline) if tested is None or baseline.low is not None else [
        tested[each.row["configuration"]] for each in every
    ]  # fmt: skip
    called = {id(each): said for each, said in zip(every, calls, strict=True)}
    return tuple(_cost(name, group, baseline, against, called) for name, group in groups.items())


def _calls(candidates: Sequence[Measured], baseline: Measured) -> list[Call]:
    # Of a bracket only its earlier end is beaten for sure.
    left = [Sample.of(each.values) for each in candidates]
    right = [Sample.of(baseline.low or baseline.values)] * len(left)
    if not left:
        return []
    corrected = holm(welch_less(left, right)[2])
    return [call(one, other, float(p)) for one, other, p in zip(left, right, corrected, strict=True)]


def _cost(
    platform: str,
    group: Sequence[Measured],
    baseline: Measured,
    against: Against,
    called: Mapping[int, Call],
) -> Cost:
    column = "total_cores" if any(each.row["total_cores"] is not None for each in group) else "executors"
    unit = "executors" if column == "executors" and any(each.row["executors"] for each in group) else "cores"
    best = min(group, key=lambda each: each.mean)
    winners = [each for each in group if called[id(each)] in WON]
    sized = [each for each in winners if each.row[column] is not None]
    winner = min(sized, key=lambda each: (each.row[column], each.mean)) if sized else next(iter(winners), None)
    open_ones = [
        each for each in group if each not in winners and (each.low or baseline.low) and each.least < baseline.mean
    ]
    undecided = winner is None and bool(open_ones)
    fewer = None if winner is None or winner.row[column] is None else min(
        (each for each in open_ones if each.row[column] is not None and each.row[column] < winner.row[column]),
        key=lambda each: each.row[column],
        default=None,
    )  # fmt: skip
    plain = PLAIN if any(called[id(each)].startswith("plain") for each in group) else ""
    return Cost(
        platform=platform,
        cores=None if winner is None else winner.row[column],
        unit=unit,
        winner=winner,
        best=best,
        undecided=undecided,
        perhaps_fewer=fewer,
        reason=_reason(winner or best, baseline, against, won=winner is not None, undecided=undecided)
        + ("" if fewer is None else f"; with {resources(fewer.row)} it is not known ({_span(fewer)})")
        + plain,
    )  # fmt: skip


def _reason(shown: Measured, baseline: Measured, against: Against, *, won: bool, undecided: bool) -> str:
    own, other = distinct_seconds([shown.mean, baseline.mean])
    named = named_baseline(baseline.row) if against == "one thread" else against
    theirs = f"{named}'s {other}" if named == against else f"the baseline's {other} with {named}"
    if against == "one machine":
        theirs += f" with {resources(baseline.row)}"  # which may be a part of it
    if won:
        return f"{own} against {theirs}"
    if undecided:
        return f"not known: reached at {_span(shown)}, by {named} at {_span(baseline)}"
    at = resources(shown.row)
    ratio = shown.mean / baseline.mean
    # What beats nothing though its mean is smaller is within the noise, or too little faster to matter.
    beside = f"{factor(ratio)}x" if ratio >= 1 else "not surely enough below"
    return f"unbounded: the best it reached, {own}{f' with {at}' if at else ''}, is {beside} {theirs}"


def _span(each: Measured) -> str:
    return f"{seconds(each.least)} to {seconds(each.mean)}" if each.low else seconds(each.mean)


def measured(row: Row, comparison: Comparison, *, with_startup: bool) -> Measured:
    """Its seconds an epoch, or to the target; with start-up, of who has it, those of a whole training."""
    to_target = comparison.is_to_target
    values = comparison.values(row)
    low = row["trial_to_target_low"] if to_target else None
    low = None if low is None or list(low) == values else low
    if not with_startup:
        return Measured(row=row, values=tuple(values), low=None if low is None else tuple(low))
    fixed = row["trial_fixed_to_target" if to_target else "trial_fixed_seconds"]
    trained = values if to_target else row["trial_training_seconds"]
    return Measured(
        row=row,
        values=tuple(before + each for before, each in zip(fixed, trained, strict=True)),
        low=None if low is None else tuple(before + each for before, each in zip(fixed, low, strict=True)),
    )


def not_whole(comparison: Comparison, row: Row, *, beside: Row) -> str | None:
    """Why it is not compared with start-up included; None where it is."""
    work = None if comparison.is_to_target else unequal(row, beside)
    return work or without_start_up(row, to_target=comparison.is_to_target)


def judged(comparison: Comparison, standing: Standing) -> list[Row]:
    """A platform's configurations at the precision and gradient that it is judged by, fastest first."""
    return [
        row
        for row in comparison.ran
        if row["platform"] == standing.platform
        and is_imported(row) == is_imported(standing.best)
        and all(row[name] == standing.best[name] for name in KINDS)
    ]


def _baselines(comparison: Comparison, spec: BaselineSpec) -> list[tuple[Against, str, Row | None, str | None]]:
    """Each with what it is called, and why it is not there."""
    thread, machine, no_thread = comparison.baseline, comparison.machine, comparison.no_baseline
    no_machine = None
    if machine is None or (thread is not None and machine["configuration"] == thread["configuration"]):
        no_machine = _no_more_threads(machine, comparison) if machine else no_thread or NO_MACHINE
        machine = None
    gpu, no_gpu = _gpu(comparison, spec)
    return [
        ("one thread", threads_of(spec.threads) if thread is None else named_baseline(thread), thread, no_thread),
        ("one machine", "one machine", machine, no_machine),
        ("one GPU", "one GPU", gpu, no_gpu),
    ]


def _no_more_threads(row: Row, comparison: Comparison) -> str:
    most = "one number of threads only" if row["threads"] == 1 else f"no more than {threads_of(row['threads'])}"
    return f"{places.titled(row, comparison.ran)} ran with {most}"


def _gpu(comparison: Comparison, spec: BaselineSpec) -> tuple[Row | None, str | None]:
    """The fastest of a process with one GPU, in the baseline's precision where one ran with it."""
    every = [row for row in comparison.ran if is_gpu(row)]
    alone = every if all_imported(comparison.ran) else [row for row in every if not is_imported(row)]
    same = [row for row in alone if row["precision"] == spec.precision]
    if alone:
        return (same or alone)[0], None
    if every:
        return None, "only imported timings are of one, and COST is not counted across machines"
    reasons = [row["status"] for row in comparison.not_run if is_gpu(row)]
    return None, reasons[0] if reasons else "nothing was to run on a GPU"


def is_gpu(row: Row) -> bool:
    """One, of a process by itself."""
    return (row["device"] or "").startswith("cuda") and row["executors"] is None and row["workers"] in (None, 1)


def to_json(question: Question) -> dict[str, Any]:
    baseline = question.baseline
    return {
        "against": question.against,
        "with_startup": question.with_startup,
        "baseline": None if baseline is None else _place(baseline),
        "no_baseline": question.no_baseline,
        "platforms": {
            each.platform: {
                "cores": each.cores,
                "unit": each.unit,
                "unbounded": each.is_unbounded,
                "undecided": each.undecided,
                "upper_bound": each.perhaps_fewer is not None,
                "reason": each.reason,
                "at": None if each.winner is None else _place(each.winner),
                "best": _place(each.best),
            }
            for each in question.costs
        },
        "left_out": dict(question.left_out),
    }


def in_verdict(asked: Sequence[Question]) -> dict[str, dict[str, Any]]:
    """Of each platform the keys that a verdict has of COST against the baseline, where times may be brackets."""
    (question,) = [each for each in asked if each.against == "one thread" and not each.with_startup]
    return {
        each.platform: {"cost_cores": each.cores, "cost_unit": each.unit, "reason": each.reason}
        for each in question.costs
    }


def _place(each: Measured) -> dict[str, Any]:
    names = ("platform", "total_cores", "executors", "cores", "threads", "precision", "solver", "batch_size")
    return {**{name: each.row[name] for name in names}, "seconds": each.mean, "seconds_low": each.least}
