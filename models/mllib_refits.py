"""MLlib's accuracy on its way: it tells its weights only when a fit is over, so it fits again, to fewer iterations.

From the same weights, rows and partitions a fit to fewer iterations comes to the weights that the trial had after as
many. Its seconds are nobody's: they are in no epoch, and its jobs are in a group that no reader of event logs counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from models.spec import TrialSpec


def accuracies(
    spec: TrialSpec, *, target: float | None, judge: Callable[[TrialSpec], float | None]
) -> dict[int, float]:
    """Test accuracy by iteration, up to the first that reaches the target; what the trial ends with is known anyhow."""
    found: dict[int, float] = {}
    if target is None:
        return found
    for iterations in steps(spec.hyperparameters.epochs):
        reached = judge(replace(spec, hyperparameters=replace(spec.hyperparameters, epochs=iterations)))
        if reached is None:
            break  # the weights are no numbers any more
        found[iterations] = reached
        if reached >= target:
            break
    return found


def steps(epochs: int) -> Iterator[int]:
    """1, 2, 4, 8, ..., as long as the trial goes on after them."""
    iterations = 1
    while iterations < epochs:
        yield iterations
        iterations *= 2
