"""One training on all executors at once, as the driver sees it: what its ranks tell, and why it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from models.event_log import Application, Failure
from models.protocol import TaintedError
from models.ranks.executor_memory import ExecutorMemory
from models.ranks.telling import Listener
from models.ranks.worker import Errand, Told, Train, work
from models.spark_application import SparkApplication
from store.errors import TrialError

WAIT_SECONDS = 0.1  # for what ranks tell
ADDED_SECONDS = 5.0  # until the event log tells of executors that have come
LOOK_SECONDS = 1.0  # between two looks at whether all executors are there
BEGIN_SECONDS = 60.0  # after all should have met, until every executor's Python has come up, torch imported
LEFT_SECONDS = 30.0  # until the stage has ended that all who train have left
LOSS_SECONDS = 20.0  # until Spark knows of an executor that its peers miss
CRASH_SECONDS = 3.0  # the same, where Spark sees that a Python process is gone: its executor may go too
PEERS_SECONDS = 2.0  # until the word of the rank that failed comes, where others only miss it
CRASHED = "Python worker exited unexpectedly"  # Spark's words

ToldByRank = TypeVar("ToldByRank", bound=Told)


class BarrierStage:
    """A task for every slot, so that each executor has its own; one of an executor's tasks uses all of its cores."""

    def __init__(self, application: SparkApplication, *, group: str, memory: ExecutorMemory) -> None:
        self._application = application
        self._group = group
        self._memory = memory
        self._executors = application.resources.executors or 1
        self._slots = application.resources.total_cores or 1
        self._begin_seconds = application.barrier_seconds + BEGIN_SECONDS
        self._failure: Exception | None = None
        self._began = time.time()
        self._submitted = self._looked = time.monotonic()
        self._all_left: float | None = None  # since when

    def run(
        self, errand: Errand, listener: Listener, *, train: Train, told_as: type[ToldByRank]
    ) -> Iterator[ToldByRank]:
        """What ranks tell, until all have ended. The application is ended where one of its executors is in doubt.

        So it is where a task does not end that only fills its slot; what was told counts.
        """
        from pyspark import InheritableThread  # which closes its connection to the JVM

        self._count_slots()
        task = partial(work, train, errand.encode())
        thread = InheritableThread(target=self._submit, args=(task,), daemon=True, name="barrier-stage")
        thread.start()
        failed: list[Told] = []
        why: Exception | None = None
        is_held = False
        try:
            while why is None and not is_held:
                alive, none = thread.is_alive(), True
                for line in listener.lines(wait_seconds=WAIT_SECONDS if alive else 0):
                    none = False
                    told = msgspec.json.decode(line, type=told_as)
                    if told.kind == "failed":
                        failed.append(told)
                    else:
                        yield told
                if failed or listener.cut or self._failure is not None or (none and self._is_short()):
                    why = self._why(failed, listener)
                elif none and not alive:
                    break
                elif none:
                    why = self._stalled(listener, errand.stall_seconds)
                    is_held = self._is_held(listener)
        finally:
            self._cancel()
            thread.join(LOSS_SECONDS)
        if is_held or (why is not None and not _own(failed)) or any(told.is_held for told in failed):
            SparkApplication.end_shared()
        if why is not None:
            raise why

    def _count_slots(self) -> None:
        """Without enough of them Spark would try for a while, and then say so in a page of Java."""
        log, deadline = self._application.log(), time.monotonic() + ADDED_SECONDS
        while sum((there := log.read().executor_cores).values()) < self._slots:
            if time.monotonic() < deadline:
                time.sleep(WAIT_SECONDS)
                continue
            raise TrialError(
                f"a task for each of {self._slots} cores is needed at once, and Spark has {sum(there.values())} on "
                f"{len(there)} executors; lower executors or cores of the profile, or run again when all are there"
            )

    def _submit(self, task: Callable[[Iterable[Any]], Iterator[Any]]) -> None:
        """In a thread of its own: the driver listens meanwhile."""
        context = self._application.session.sparkContext
        context.setJobGroup(self._group, "yarnstick", interruptOnCancel=True)
        slots = context.parallelize(range(self._slots), self._slots)
        try:
            slots.barrier().mapPartitions(task).collect()
        except Exception as error:  # of Py4J, with a page of Java
            self._failure = error

    def _cancel(self) -> None:
        """Else Spark would try a stage of lost ranks again, and one that stands still would stay."""
        with suppress(Exception):  # of Py4J, where the driver's JVM is gone
            self._application.session.sparkContext.cancelJobGroup(self._group)

    def _is_short(self) -> bool:
        """Of executors; asked now and then."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return False
        self._looked = time.monotonic()
        return not self._is_whole()

    def _is_whole(self) -> bool:
        try:
            return self._application.is_whole()
        except Exception:  # of Py4J, where the driver's JVM is gone
            return False

    def _is_held(self, listener: Listener) -> bool:
        """By a task that stands still, though all who train have taken their leave."""
        if listener.left < self._executors:
            return False
        now = time.monotonic()
        self._all_left = self._all_left or now
        return now - self._all_left > LEFT_SECONDS

    def _stalled(self, listener: Listener, stall_seconds: float) -> TrialError | None:
        if silent := listener.silent(seconds=stall_seconds):
            return TrialError(
                f"the Python process of an executor on {silent[0]} has shown no sign of life for {stall_seconds:g} s "
                f"(yarnstick.spark.stall_seconds): it stands still, or the driver is not reached from there; look at "
                f"that node, or raise the setting"
            )
        if listener.came < self._executors and time.monotonic() - self._submitted > self._begin_seconds:
            return TrialError(
                f"the Python of {listener.came} of {self._executors} executors told the driver within "
                f"{self._begin_seconds:.0f} s that it had begun; can nodes reach {listener.address.host}, on all ports?"
            )
        return None

    def _why(self, failed: list[Told], listener: Listener) -> Exception:
        """The rank that failed knows best, then Spark; others only miss somebody."""
        began = time.monotonic()
        while True:
            failed += _failed(listener)
            if own := _own(failed):
                return TrialError(own)
            if gone := self._application.master.lost():
                return TaintedError(gone)
            if why := self._by_log(waited_seconds=time.monotonic() - began):
                return why
            waited = time.monotonic() - began
            if failed and not listener.cut and waited > PEERS_SECONDS and self._is_whole():
                # Nobody died: one stands still, and who only lost somebody that gave it up may have said so earlier.
                return TrialError(next((told.why for told in failed if told.is_held), failed[0].why))
            if self._failure is not None and not failed and not listener.cut and waited > PEERS_SECONDS:
                return TrialError(f"the executors could not begin: {self._first_words()}")
            if waited > LOSS_SECONDS:
                host = f" on {listener.cut[0]}" if listener.cut else ""
                return TaintedError(failed[0].why if failed else f"an executor{host} was lost")
            time.sleep(WAIT_SECONDS)

    def _by_log(self, *, waited_seconds: float) -> Exception | None:
        """What Spark has seen, and wrote to its event log."""
        seen = self._application.log().read()
        for executor in seen.losses(since=self._began):
            if sentence := self._memory.short(executor.name, executor.why):
                return TrialError(sentence)
            return TaintedError(f"executor {executor.name} was lost")
        crashed = self._crashed(seen)
        if crashed and waited_seconds > CRASH_SECONDS:
            return TrialError(
                f"the Python process of executor {crashed[0]} was killed or crashed, while its JVM lives; if its node "
                f"or container ran out of memory, it had {self._memory.beside} MiB beside its heap: "
                f"{self._memory.to_try}"
            )
        return None

    def _crashed(self, seen: Application) -> list[str]:
        return [each.executor for each in self._failures(seen) if CRASHED in each.why]

    def _first_words(self) -> str:
        """Of the first task that failed, or else of the job."""
        failures = self._failures(self._application.log().read())
        return next((_innermost(each.why) for each in failures), _java(self._failure))

    def _failures(self, seen: Application) -> list[Failure]:
        jobs = [job for job in seen.group(self._group) if job.began >= self._began]
        return [each for job in jobs for each in job.failures]


def _failed(listener: Listener) -> list[Told]:
    """The further words of those who failed; nothing else is of interest then."""
    told = (msgspec.json.decode(line, type=Told) for line in listener.lines(wait_seconds=0))
    return [each for each in told if each.kind == "failed"]


def _own(failed: list[Told]) -> str | None:
    return next((told.why for told in failed if told.is_own), None)


def _innermost(why: str) -> str:
    """The last line of a Python traceback: what was raised, without its module."""
    lines = [line for line in why.strip().splitlines() if line and not line[0].isspace()]
    kind, colon, said = lines[-1].partition(": ")
    return f"{kind.rpartition('.')[2]}{colon}{said}"


def _java(error: Any) -> str:
    """The first line of a page of Java."""
    text = str(getattr(error, "java_exception", None) or error).strip()
    return text.splitlines()[0]
