"""How long trials may begin: until the minutes are over, or until the next one would not fit."""

from __future__ import annotations

import pytest

from pipeline.budget import Budget


@pytest.mark.parametrize(
    ("passed", "took", "refused"),
    [
        (0.0, None, None),
        (119.0, None, None),
        (120.0, None, "2 min have passed"),
        (500.0, 1.0, "2 min have passed"),
        (60.0, 60.0, None),
        (60.0, 61.0, "60 s of 2 min are left, and the next trial took 61 s before"),
    ],
)
def test_a_trial_is_begun_if_it_would_end_in_time(passed: float, took: float | None, refused: str | None) -> None:
    now = 1000.0
    budget = Budget(minutes=2, clock=lambda: now)
    now += passed
    assert budget.left() == 120 - passed
    assert budget.refuses(took) == refused
