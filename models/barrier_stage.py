"""One training on all executors at once, as the driver sees it: what its ranks tell, and why it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from models.protocol import TaintedError
from models.spark_application import SparkApplication
from models.telling import Listener
from models.worker import Errand, Told, work
from store.errors import TrialError

LOOK_SECONDS = 1.0  # between two looks at whether all executors are there
LOSS_SECONDS = 20.0  # until Spark knows of an executor that its peers miss


class BarrierStage:
    """A task for every slot, so that each executor has its own; one of an executor's tasks uses all of its cores."""

    def __init__(self, application: SparkApplication, *, group: str) -> None:
        self._application = application
        self._group = group
        self._slots = application.resources.total_cores or 1
        self._failure: Exception | None = None
        self._began = time.time()

    def run(self, errand: Errand, listener: Listener) -> Iterator[Told]:
        """What ranks tell, until all have ended."""
        from pyspark import InheritableThread  # which closes its connection to the JVM

        thread = InheritableThread(target=self._submit, args=(errand.encode(),), daemon=True, name="barrier-stage")
        thread.start()
        failed: list[Told] = []
        try:
            while True:
                alive = thread.is_alive()
                none = True
                for line in listener.lines(wait_seconds=LOOK_SECONDS if alive else 0):
                    none = False
                    told = msgspec.json.decode(line, type=Told)
                    if told.kind == "failed":
                        failed.append(told)
                    else:
                        yield told
                if failed or (none and not alive) or (none and not self._application.is_whole()):
                    break
        finally:
            self._cancel()
            thread.join(LOSS_SECONDS)
        if failed or self._failure is not None or not self._application.is_whole():
            raise self._why(failed)

    def _submit(self, errand: bytes) -> None:
        """In a thread of its own: the driver listens meanwhile."""
        context = self._application.session.sparkContext
        context.setJobGroup(self._group, "yarnstick", interruptOnCancel=True)
        slots = context.parallelize(range(self._slots), self._slots)
        try:
            slots.barrier().mapPartitions(partial(work, errand)).collect()
        except Exception as error:  # of Py4J, with a page of Java
            self._failure = error

    def _cancel(self) -> None:
        """Else Spark would try a stage of lost ranks again."""
        self._application.session.sparkContext.cancelJobGroup(self._group)

    def _why(self, failed: list[Told]) -> Exception:
        own = [told for told in failed if told.is_own]
        if own:
            return TrialError(f"{own[0].why}")
        if lost := self._lost():
            return TaintedError(f"executor {lost[0]} was lost")
        if failed:
            return TaintedError(failed[0].why)
        return TrialError(_java(self._failure))

    def _lost(self) -> list[str]:
        log = self._application.log()
        deadline = time.monotonic() + LOSS_SECONDS
        while not (lost := log.read().lost_executors(since=self._began)) and time.monotonic() < deadline:
            time.sleep(0.2)
        return lost


def _java(error: Any) -> str:
    """The innermost sentence of a page of Java."""
    text = str(getattr(error, "java_exception", None) or error).strip()
    return text.splitlines()[0]
