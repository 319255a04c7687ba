"""Which of an executor's Python processes trains: always the same one, for torch stays in the memory of each that did.

Spark keeps a process for each slot, and gives tasks to them in the order in which they became idle: each that is idle
when a stage begins has one of its tasks.
"""

from __future__ import annotations

import fcntl
import os
import time

SETTLED_SECONDS = 0.2  # until one that Spark has killed is gone


class Claim:
    """Of this process on its executor's training: a lock that ends with it at the latest."""

    def __init__(self) -> None:
        self._held: int | None = None
        self._stage: int | None = None  # that was trained last

    def is_mine(self, stage: int, *, otherwise: bool) -> bool:
        """Whether nobody else has it; `otherwise` where there can be no lock.

        A second task of a stage, which begins when the first has trained already, has nothing to do.
        """
        try:
            if not self._taken():
                time.sleep(SETTLED_SECONDS)
            if not self._taken() or stage == self._stage:
                return False
        except OSError:  # as of a directory that nobody may write to
            return otherwise
        self._stage = stage
        return True

    def give_up(self) -> None:
        """Spark ends a process whose task failed, but goes on before it is gone."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _taken(self) -> bool:
        if self._held is not None:
            return True
        # In the executor's own directory; all of its processes are children of one.
        file = os.open(f".yarnstick-trains-{os.getppid()}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._held = file
        return True


CLAIM = Claim()
