"""What each further executor, or thread, brings, and which was the last that paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from report import places
from report.cost import judged
from report.statistics import Call, Sample, call, holm, welch_less
from report.trainings import unequal
from report.verdict import Comparison, Row
from report.words import counted, money, resources, seconds, title

PAID = ("beats", "plain faster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From one size of a platform to the next larger that ran."""

    fewer: Row
    more: Row
    unit: str  # executor | thread
    added: int
    saved: float  # seconds, by what is ranked
    call: Call

    @property
    def paid(self) -> bool:
        return self.call in PAID

    @property
    def added_price(self) -> float | None:
        """Of a whole training."""
        prices = [row["price_per_training"] for row in (self.more, self.fewer)]
        return None if None in prices or unequal(self.more, self.fewer) else prices[0] - prices[1]

    @property
    def saved_each(self) -> float:
        return self.saved / self.added


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Sizes of a platform in one place, with as many cores an executor."""

    platform: str
    place: Mapping[str, Any]  # what tells it from the others'
    steps: tuple[Step, ...]

    @property
    def last_paid(self) -> Row:
        """The largest to which every step paid."""
        row = self.steps[0].fewer
        for step in self.steps:
            if not step.paid:
                break
            row = step.more
        return row


def lines(comparison: Comparison) -> list[Line]:
    """Of each platform that ran with several sizes; the steps of all are planned comparisons of their own family."""
    pairs: list[tuple[tuple[Any, ...], Row, Row]] = []
    for standing in comparison.standings:
        by_size: dict[tuple[Any, ...], dict[int, Row]] = {}
        for row in judged(comparison, standing):  # the fastest of a size comes first
            size = row["executors"] if row["executors"] is not None else row["threads"]
            if size is not None:
                by_size.setdefault((row["cores"], *places.key(row)), {}).setdefault(size, row)
        for key, sizes in sorted(by_size.items(), key=lambda item: item[0][0] or 0):
            order = [sizes[size] for size in sorted(sizes)]
            pairs += [(key, *pair) for pair in pairwise(order)]
    if not pairs:
        return []
    left = [Sample.of(comparison.values(more)) for _, _, more in pairs]
    right = [Sample.of(comparison.values(fewer)) for _, fewer, _ in pairs]
    corrected = holm(welch_less(left, right)[2])
    found: dict[tuple[Any, ...], list[Step]] = {}
    for (key, fewer, more), one, other, p in zip(pairs, left, right, corrected, strict=True):
        unit, column = ("executor", "executors") if more["executors"] is not None else ("thread", "threads")
        found.setdefault(key, []).append(
            Step(
                fewer=fewer,
                more=more,
                unit=unit,
                added=more[column] - fewer[column],
                saved=other.mean - one.mean,
                call=call(one, other, float(p)),
            )
        )
    return [_line(steps, comparison) for steps in found.values()]


def _line(steps: Sequence[Step], comparison: Comparison) -> Line:
    row = steps[0].fewer
    return Line(platform=row["platform"], place=places.place(row, comparison.ran), steps=tuple(steps))


def said(found: Sequence[Line], *, currency: str = "") -> list[str]:
    """`Of Spark MLlib the last executor that paid is the 4th: ...`."""
    texts = []
    for line in found:
        last, unit = line.last_paid, line.steps[0].unit
        inside = [f"{counted(last['cores'], 'core')} each"] if last["cores"] else []
        inside += places.said(line.place)
        name = title(line.platform) + (f" ({', '.join(inside)})" if inside else "")
        text = f"{name} gains by every {unit} up to {resources(last)}"
        if last is line.steps[0].fewer:
            text = f"{name} gains nothing beyond {resources(last)}"
        step = next((step for step in line.steps if not step.paid), None)
        if step is None:
            step = line.steps[-1]
            text += f", the most that ran: {_added('the last', step)} saved {_each(step)}"
        elif step.saved > 0:
            text += f": {_added('the next', step)} {_saves(step)} {_each(step)}, too little to count as a gain"
        else:
            text += f": {_added('the next', step)} {_saves(step)} nothing"
        texts.append(f"{text}{_priced(step, currency)}.")
    return texts


def _added(which: str, step: Step) -> str:
    return f"{which} {step.unit}" if step.added == 1 else f"{which} {counted(step.added, step.unit)} together"


def _priced(step: Step, currency: str) -> str:
    if step.added_price is None:
        return ""
    return f", at {money(abs(step.added_price), currency)} {'more' if step.added_price >= 0 else 'less'} a training"


def _saves(step: Step) -> str:
    return "saves" if step.added == 1 else "save"


def _each(step: Step) -> str:
    whole = seconds(step.saved)
    return whole if step.added == 1 else f"{whole}, {seconds(step.saved_each)} each"


def to_json(line: Line) -> dict[str, Any]:
    sizes = ("executors", "cores", "threads", "total_cores")
    return {
        "platform": line.platform,
        **line.place,
        "last_that_paid": {name: line.last_paid[name] for name in sizes},
        "steps": [
            {
                "from": {name: step.fewer[name] for name in sizes},
                "to": {name: step.more[name] for name in sizes},
                "unit": step.unit,
                "added": step.added,
                "seconds_saved": step.saved,
                "seconds_saved_each": step.saved_each,
                "call": step.call,
                "paid": step.paid,
                "price_added": step.added_price,
            }
            for step in line.steps
        ],
    }
