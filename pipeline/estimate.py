"""What a plan would take, from how long the same configurations took before in this store; nothing is guessed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from models.outcome import Outcome
from models.spec import TrialSpec
from pipeline.trials import Trials
from report.words import counted, seconds
from store.errors import YarnstickError
from store.protocol import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Of the trials whose configurations ran before; `unknown` is how many configurations did not."""

    seconds: float
    core_hours: float
    unknown: int

    def __str__(self) -> str:
        missing = f"{counted(self.unknown, 'configuration')} never ran in this store, so no estimate includes them"
        if not self.seconds:
            return f"no estimate: {missing}"
        known = (
            f"about {seconds(self.seconds)} and {self.core_hours:.2g} core-hours, by the last time the same ran here"
        )
        return f"{known}; {missing}" if self.unknown else known


def estimate(store: Store, specs: Iterable[TrialSpec]) -> Estimate:
    took = last_times(store)
    known, core_hours, unknown = 0.0, 0.0, set()
    for spec in specs:
        duration = took.get(spec.configuration)
        if duration is None:
            unknown.add(spec.configuration)
        else:
            known += duration
            core_hours += duration * (spec.resources.total_cores or 1) / 3600
    return Estimate(seconds=known, core_hours=core_hours, unknown=len(unknown))


def last_times(store: Store) -> dict[str, float]:
    """Seconds of the last trial of each configuration in any run of a store: start-up, load and epochs."""
    outcomes: list[Outcome] = []
    for run in store.list("runs"):
        with suppress(YarnstickError):  # what is damaged is told by the command that needs it
            outcomes += Trials(store, f"runs/{run.name}/trials", invocation="", noisy_repeats=0).outcomes()
    return times_of(outcomes)


def times_of(outcomes: Iterable[Outcome]) -> dict[str, float]:
    found: dict[str, tuple[str, float]] = {}
    for outcome in outcomes:
        when = str(outcome.records[0].started_at)
        if outcome.outcome == "ok" and when >= found.get(outcome.spec.configuration, ("", 0.0))[0]:
            found[outcome.spec.configuration] = (when, _seconds(outcome))
    return {configuration: duration for configuration, (_, duration) in found.items()}


def _seconds(outcome: Outcome) -> float:
    first = outcome.records[0]
    epochs = sum(record.seconds or 0.0 for record in outcome.records)
    return epochs + (first.startup_seconds or 0.0) + (first.load_seconds or 0.0)
