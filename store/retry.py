"""How long a store waits for a NameNode that is restarting, and in which steps."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Pauses grow from the shortest to the longest; after `seconds` no further one begins."""

    seconds: float
    shortest_seconds: float = 0.2
    longest_seconds: float = 5.0


class Waiting:
    """The pauses of one operation. They vary, so that many processes do not come back at once."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._begun = time.monotonic()
        self._pause = patience.shortest_seconds

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.monotonic() - self._begun

    def pause(self, *, most_seconds: float) -> bool:
        """Sleep; False, without sleeping, where that would end after the deadline."""
        pause = self._pause * random.uniform(0.5, 1.0)
        if self.seconds + pause > min(most_seconds, self._patience.seconds):
            return False
        time.sleep(pause)
        self._pause = min(2 * self._pause, self._patience.longest_seconds)
        return True
