"""When the answer would be another one, as the first screen and the terminal say it; or why nobody can tell yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from report.flips import flips
from report.predictions import Series
from report.verdict import Comparison
from report.words import capped, title

MOST_FIRST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Turning:
    said: tuple[str, ...]  # what would make a slower platform the faster one, or how far nothing does
    reason: str  # why nothing is said; empty where something is

    @property
    def first(self) -> list[str]:
        """Sentences for where there is little room."""
        if self.reason:
            return [f"When the answer flips cannot be told: {self.reason}."]
        head, *rest = self.said[:MOST_FIRST]
        shown = [f"When it flips: {head}", *map(capped, rest)]
        if len(self.said) > MOST_FIRST:
            shown.append(f"{MOST_FIRST} of {len(self.said)} predictions of that are shown here; verdict.json has all.")
        return shown


def turning(comparison: Comparison, found: Sequence[Series]) -> Turning:
    said = tuple(flips(comparison, found))
    return Turning(said=said, reason="" if said else _reason(comparison, found))


def _reason(comparison: Comparison, found: Sequence[Series]) -> str:
    ran = comparison.standings
    if not ran:
        return "nothing ran to the end"
    if len(ran) == 1:
        return f"only {title(ran[0].platform)} ran"
    if comparison.work["unit"] != "epoch":
        return "models are made of epochs, and whole trainings were timed"
    lacking = []
    for standing in ran:
        series = next((each for each in found if each.holds(standing.best)), None)
        if series is None:
            lacking.append(f"of {title(standing.platform)} it is not known how many rows an epoch had")
        elif series.model is None:
            lacking.append(series.refusal or "")
    # Two models are what it takes: the fastest platform's and another's.
    if len(ran) - len(lacking) < 2 and lacking:
        return lacking[0]
    return "rows, hidden units and executors were not varied far enough for models to say who is faster where"
