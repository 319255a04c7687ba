"""A fit that loses executors again and again is ended: Spark would begin its tasks anew for ever.

As long as some of them come to their end before the next executor is gone, no task fails often enough for it.
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

from models.event_files import LogFiles
from models.spark_application import SparkApplication
from models.spark_master import Master

POLL_SECONDS = 5.0
REMOVED = b'"Event":"SparkListenerExecutorRemoved"'


class Losses:
    """Looks after an application while a fit runs in it, and cancels its jobs when there are too many."""

    def __init__(self, application: SparkApplication) -> None:
        self.too_many: str | None = None  # the sentence, where it did
        self._is_needed = not application.master.gives_up
        self._removals = Removals(application.master)
        self._most = most(application.resources.executors or 1)
        self._context = application.session.sparkContext
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="executor-losses")

    def __enter__(self) -> Losses:
        if self._is_needed:
            self._removals.new()  # those before are nothing of this fit
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._is_needed:
            self._thread.join()

    def _watch(self) -> None:
        lost = 0
        while not self._is_over.wait(POLL_SECONDS):
            lost += self._removals.new()
            if lost > self._most:
                self.too_many = (
                    f"{lost} executors were lost one after the other; see why in their own logs, or try more memory_mib"
                )
                self._context.cancelAllJobs()
                return


class Removals:
    """Of executors, in an event log that grows. It is searched and not read: the driver may share their cores."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self._offsets: dict[Path, int] = {}

    def new(self) -> int:
        """Since the last time."""
        found = 0
        for path in LogFiles.at(self._master.event_log()).files:
            offset = self._offsets.get(path, 0)
            with path.open("rb") as file:
                file.seek(offset)
                lines = file.read()
            whole = lines.rfind(b"\n") + 1
            found += lines.count(REMOVED, 0, whole)
            self._offsets[path] = offset + whole
        return found


def most(executors: int) -> int:
    """As many as Spark lets an application on YARN lose."""
    return max(2 * executors, 3)
