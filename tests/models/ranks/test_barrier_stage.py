"""Slots are counted in the event log, to which Spark writes a moment later what it has."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from models.ranks import barrier_stage
from models.ranks.barrier_stage import BarrierStage
from store.errors import TrialError


def stage(*told: dict[str, int]) -> BarrierStage:
    """Of two cores, whose log tells one after the other of these executors, and of the last ones for ever."""
    rest: Iterator[dict[str, int]] = iter(told[:-1])
    application: Any = SimpleNamespace(
        resources=SimpleNamespace(executors=2, total_cores=2),
        barrier_seconds=1.0,
        log=lambda: SimpleNamespace(read=lambda: SimpleNamespace(executor_cores=next(rest, told[-1]))),
    )
    return BarrierStage(application, group="g", memory=SimpleNamespace())  # type: ignore[arg-type]


def test_executors_that_the_log_tells_of_late_are_waited_for() -> None:
    stage({}, {"0": 1}, {"0": 1, "1": 1})._count_slots()


def test_too_few_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(barrier_stage, "ADDED_SECONDS", 0.3)
    with pytest.raises(TrialError, match="each of 2 cores is needed at once, and Spark has 1 on 1 executors"):
        stage({}, {"0": 1})._count_slots()
