"""A fit of MLlib as its clock, its objective history and Spark's event log tell of it: which epochs it had."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from models.event_log import Application, Job
from models.ledger import Span, amortized, spans
from models.networks import Layer
from models.spec import TrialSpec
from store.errors import TrialError

EVENTS_SECONDS = 20.0
CLOCKS_SHARE, CLOCKS_SECONDS = 0.02, 0.1
CLOCK_STEP = 0.001  # of the event log's clock
AGAIN = "run again, and if it stays so look whether the disk that the log is on is full"


class GrowingLog(Protocol):
    """An event log that is still written: each `read` takes what is new."""

    def read(self) -> Application: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A fit as both clocks saw it."""

    seconds: float  # monotonic
    began: float  # wall clock, as the event log's
    ended: float
    losses: list[float]
    layers: list[Layer]  # as they were found


def finished_jobs(log: GrowingLog, *, group: str, fit: Fit) -> tuple[list[Job], Application]:
    """The fit's jobs, once the log holds the end of all of them: it is written a moment later."""
    deadline = time.monotonic() + EVENTS_SECONDS
    while True:
        seen = log.read()
        jobs = [job for job in seen.group(group) if job.began >= fit.began - CLOCK_STEP]
        passes = [job for job in jobs if job.is_pass]
        if len(passes) >= len(fit.losses) and all(job.ended is not None for job in jobs):
            return jobs, seen
        if time.monotonic() > deadline:
            raise TrialError(
                f"the event log shows {len(passes)} finished gradient passes where the objective history has "
                f"{len(fit.losses)} values; such a trial has no epochs that can be trusted; {AGAIN}"
            )
        time.sleep(0.05)


def epoch_spans(spec: TrialSpec, passes: list[Job], fit: Fit, *, told: list[float]) -> Iterator[Span]:
    """Each epoch from its first pass to the next epoch's; `told` is when l-bfgs said that an iteration had ended."""
    epochs = len(fit.losses) - 1  # the history ends with the loss of the final weights
    if spec.hyperparameters.solver == "gd":
        # One pass an update; the last pass only finds the final loss, and belongs to no epoch.
        if len(passes) != epochs + 1:
            raise TrialError(
                f"{len(passes)} gradient passes for {epochs} updates: the event log is not of this fit; {AGAIN}"
            )
        shares = [[job] for job in passes[:-1]]
    elif len(told) == epochs:
        # An iteration has the passes that ended before it did; the first has the one at the initial weights too.
        shares = [
            [job for job in passes if since < ended(job) <= until]
            for since, until in zip([0.0, *told], told, strict=False)
        ]
    else:
        shares = []
    if shares and all(shares):
        return spans(passes, [len(share) for share in shares])
    # Some line search took more than one pass, and nothing tells which.
    return amortized(passes, epochs)


def disagreement(jobs: list[Job], fit: Fit) -> str | None:
    """A sentence where the event log's clock and the monotonic one do not tell the same time of the fit."""
    first, last = jobs[0].began, max(ended(job) for job in jobs)
    inside = fit.began - CLOCK_STEP <= first and last <= fit.ended + CLOCK_STEP
    by_log = fit.ended - fit.began
    if inside and abs(by_log - fit.seconds) <= max(CLOCKS_SHARE * fit.seconds, CLOCKS_SECONDS):
        return None
    return (
        f"the event log's clock and the monotonic clock disagree: {by_log:.3f} s against {fit.seconds:.3f} s for the "
        f"fit, jobs from {first - fit.began:.3f} s to {last - fit.began:.3f} s"
    )


def ended(job: Job) -> float:
    if job.ended is None:
        raise TrialError(f"Spark job {job.number} ({job.name}) has no end in the event log; {AGAIN}")
    return job.ended
