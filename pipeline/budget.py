"""How long a run may begin trials: `--max-minutes`, which ends it between two trials and never inside one."""

from __future__ import annotations

import time
from collections.abc import Callable

from report.words import seconds


class Budget:
    def __init__(self, *, minutes: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.minutes = minutes
        self._clock = clock
        self._ends = clock() + 60 * minutes

    def left(self) -> float:
        """Seconds, less than nothing when it is over."""
        return self._ends - self._clock()

    def refuses(self, took: float | None) -> str | None:
        """Why no trial is begun that took that many seconds before, or None."""
        left = self.left()
        if left <= 0:
            return f"{self.minutes:g} min have passed"
        if took is not None and took > left:
            return f"{seconds(left)} of {self.minutes:g} min are left, and the next trial took {seconds(took)} before"
        return None
