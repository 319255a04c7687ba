"""Where an epoch's seconds went: its gradient passes by their parts, and the driver's work between them.

An epoch lasts from its first pass to the first pass of the next one. Between the end of a job and the submission of the
next the driver updates the weights and broadcasts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from models.critical_path import PARTS
from models.event_log import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An epoch as the event log shows it."""

    seconds: float
    cpu_seconds: float
    passes: int
    clock: str  # eventlog | amortized
    ledger: dict[str, float]  # sums to the seconds


def spans(passes: Sequence[Job], shares: Sequence[int]) -> Iterator[Span]:
    """Each epoch has as many of the passes as its share says. A pass that follows the last one only ends it."""
    first = 0
    for count in shares:
        share = passes[first : first + count]
        first += count
        end = passes[first].began if first < len(passes) else _end(share[-1])
        cpu_seconds = sum(job.cpu_seconds for job in share)
        yield Span(
            seconds=_seconds(share[0].began, end),
            cpu_seconds=cpu_seconds,
            passes=count,
            clock="eventlog",
            ledger=ledger(share, end=end),
        )


def amortized(passes: Sequence[Job], epochs: int) -> Iterator[Span]:
    """Where nothing tells which passes were an epoch's, it has its share of them, and each pass is given the mean."""
    end = _end(passes[-1])
    whole = ledger(passes, end=end)
    for number in range(epochs):
        count = len(passes) // epochs + (number < len(passes) % epochs)
        share = count / len(passes)
        seconds = _seconds(passes[0].began, end) * share
        parts = {column: value * share for column, value in whole.items()}
        yield Span(
            seconds=seconds,
            cpu_seconds=sum(job.cpu_seconds for job in passes) * share,
            passes=count,
            clock="amortized",
            ledger=parts | {"other": _rest(seconds, parts)},
        )


def ledger(passes: Sequence[Job], *, end: float) -> dict[str, float]:
    """Seconds by what they went to, from the beginning of the first pass to `end`; `other` is what nothing tells."""
    nexts = [job.began for job in passes[1:]] + [end]
    found = {part: sum(job.parts.get(part, 0.0) for job in passes) for part in PARTS}
    gaps = [_seconds(_end(job), following) for job, following in zip(passes, nexts, strict=True)]
    found["driver"] = sum(max(0.0, gap) for gap in gaps)
    return found | {"other": _rest(_seconds(passes[0].began, end), found)}


def _rest(seconds: float, found: dict[str, float]) -> float:
    rest = fsum([seconds, *(-value for column, value in found.items() if column != "other")])
    return 0.0 if abs(rest) < 1e-9 else rest


def _seconds(began: float, end: float) -> float:
    """The log has whole milliseconds; a difference of two dates as floats has not."""
    return round(end - began, 3)


def _end(job: Job) -> float:
    return job.began if job.ended is None else job.ended
