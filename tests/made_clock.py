"""A clock that only sleeping moves: how long somebody waits is then no matter of how busy the machine is."""

from __future__ import annotations


class MadeClock:
    """To stand in for the module `time` where one is waited by."""

    def __init__(self) -> None:
        self.now = self.began = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
