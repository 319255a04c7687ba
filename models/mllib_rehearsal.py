"""MLlib trains once for nobody: what an application's JVMs compile in their first training is in no epoch of a trial.

Only where trials share applications. Else the first of them, in whatever order, would be the slow one, and with short
epochs by far; where each has its own they are alike without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from models.fits import REHEARSAL
from models.spec import TrialSpec

# Of a core's passes, after which its JVM executes what it has compiled.
ENOUGH_FLOP = 1e10
LEAST_FLOP = 1e7  # passes with less arithmetic are scheduling, and nobody decides by them
MOST_ITERATIONS = 20


class Rehearsals:
    """One for each application, before the first trial in it."""

    def __init__(self) -> None:
        self._done: set[str] = set()

    def before(self, spec: TrialSpec, context: Any, *, rows: int, fit: Callable[[TrialSpec], object]) -> None:
        """Fit the trial itself to a few iterations, in a group of jobs that no reader of event logs counts."""
        if context.applicationId in self._done:
            return
        self._done.add(context.applicationId)
        if few := iterations(spec, rows=rows):
            context.setJobGroup(REHEARSAL, "yarnstick")
            fit(replace(spec, hyperparameters=replace(spec.hyperparameters, epochs=few)))
            context.setJobGroup(spec.slug, "yarnstick")


def iterations(spec: TrialSpec, *, rows: int) -> int:
    """How many are due; none where the first epoch does it by itself, which is warm-up and left out."""
    of_a_pass = rows * (spec.network.flop_per_row() or 0) / (spec.resources.total_cores or 1)
    if not LEAST_FLOP <= of_a_pass < ENOUGH_FLOP:
        return 0
    return min(MOST_ITERATIONS, math.ceil(ENOUGH_FLOP / of_a_pass))
