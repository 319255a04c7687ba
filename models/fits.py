"""Fits of MLlib that an event log shows, whoever ran them: their gradient passes, and whether they came to an end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from models.event_log import PASS, Application, Job
from models.ledger import Span, amortized, spans
from store.errors import DataError

SOLVERS = {"LBFGS": "l-bfgs", "GradientDescent": "gd", "RDDLossFunction": "l-bfgs"}
# With these a fit of MLlib begins: it counts its rows, which caches them, or looks at how they are distributed.
LOADING = re.compile(r"count at (?:LBFGS|GradientDescent)\.scala|treeAggregate at Summarizer\.scala")
# The slug of one of our own trials.
OWN = re.compile(
    r"(?P<platform>mllib(?:-logistic)?)-(?P<kind>mlp|perceptron)-(?P<sizes>\d+(?:-\d+)+)-(?P<solver>gd|l-bfgs)"
    r"-(?P<executors>\d+)x(?P<cores>\d+)-(?P<digest>[0-9a-f]{8})-t(?P<trial>\d{1,9})-a(?P<attempt>\d{1,9})"
)
# The groups of our fits that are no training: over a row a partition (models/mllib_exchange.py), to fewer iterations
# for their accuracy (models/mllib_refits.py), and before the first of an application (models/mllib_rehearsal.py).
EXCHANGE, REFIT, REHEARSAL = "yarnstick-exchange", "yarnstick-refit", "yarnstick-rehearsal"
NAMES_TOLD = 4


@dataclass(slots=True, kw_only=True)
class LoggedFit:
    group: str | None  # Spark's name for a group of jobs
    solver: str
    where: str  # the file of MLlib's that asks for the passes
    loading: list[Job]
    passes: list[Job] = field(default_factory=list)  # all that began

    @property
    def finished(self) -> list[Job]:
        return [job for job in self.passes if job.ended is not None and job.succeeded]

    @property
    def began(self) -> float:
        return (self.loading or self.passes)[0].began

    @property
    def ended(self) -> float:
        last = self.passes[-1]
        return last.began if last.ended is None else last.ended

    @property
    def broken(self) -> str | None:
        """Why it did not come to its end; a fit that did releases its rows, or something else follows it."""
        last, finished = self.passes[-1], len(self.finished)
        if last.ended is not None and not last.succeeded:
            return f"Spark job {last.number} failed after {finished} finished passes: {last.failure}"
        return None if last.ended is not None and last.followed else f"killed after {finished} of its passes"

    def spans(self) -> Iterator[Span]:
        """Its epochs as far as the log tells them.

        An epoch of gd ends where the next pass begins: the last pass only finds the final loss, or its end is nowhere.
        Iterations of l-bfgs have one pass or more, and the log does not tell which: each pass is given the mean.
        """
        if self.solver == "gd":
            return spans(self.passes, [1] * (len(self.passes) - 1))
        return amortized(self.finished, len(self.finished))


def fits(application: Application) -> list[LoggedFit]:
    """In the order in which they began: those of our own trials, and all others of a perceptron by its solvers."""
    groups: dict[str | None, list[Job]] = {}
    for job in application.jobs.values():
        if job.group not in (EXCHANGE, REFIT, REHEARSAL):
            groups.setdefault(job.group, []).append(job)
    found = [fit for jobs in groups.values() for fit in _of_group(jobs)]
    for fit in found:
        _check_alone(fit)
    return sorted(found, key=lambda fit: fit.began)


def _of_group(jobs: Sequence[Job]) -> Iterator[LoggedFit]:
    """A fit is a run of passes with nothing between them."""
    fit: LoggedFit | None = None
    before: list[Job] = []
    for job in jobs:
        own = OWN.fullmatch(job.group or "")
        match = PASS.match(job.name)
        if match is None or (match[1] == "RDDLossFunction" and not own):  # other models use that one too
            if fit is not None:
                yield fit
                fit, before = None, []
            before = [*before, job] if own or LOADING.match(job.name) else []
            continue
        if fit is None or fit.where != match[1]:
            if fit is not None:
                yield fit
                before = []
            fit = LoggedFit(group=job.group, solver=SOLVERS[match[1]], where=match[1], loading=before)
        fit.passes.append(job)
    if fit is not None:
        yield fit


def _check_alone(fit: LoggedFit) -> None:
    for job, following in zip(fit.passes, fit.passes[1:], strict=False):
        if job.ended is not None and following.began < job.ended:
            raise DataError(
                f"Spark jobs {job.number} and {following.number} ran at the same time: fits side by side in one job "
                f"group cannot be told apart; run them one after the other, or give each a group"
            )


def refuse_other_work(path: Path, application: Application) -> NoReturn:
    """A log without a fit is told by the jobs that it has."""
    names = Counter(job.name.partition(":")[0] or "a job without a name" for job in application.jobs.values())
    told = ", ".join(f"{name[:80]!r} ({count})" for name, count in names.most_common(NAMES_TOLD))
    more = f" and {len(names) - NAMES_TOLD} others" if len(names) > NAMES_TOLD else ""
    had = f"its jobs were {told}{more}" if names else "it has no job"
    why = "; it was compacted, which drops jobs that have ended" if application.compacted else ""
    raise DataError(
        f"{path} ({application.name or 'an application without a name'}) has no gradient pass of MLlib's perceptron "
        f"(treeAggregate at LBFGS or GradientDescent): {had}{why}"
    )


def epochs_of(fit: LoggedFit, passes: Iterable[int] | None = None) -> dict[int, int]:
    """The epoch of each pass by the number of its job. `passes` says how many each epoch had, where that is known."""
    last = len(fit.passes) - 1 if fit.solver == "gd" else len(fit.passes)
    counts = [1] * last if passes is None else passes
    numbers = (epoch for epoch, count in enumerate(counts, 1) for _ in range(count))
    return {job.number: epoch for job, epoch in zip(fit.passes, numbers, strict=False)}
