"""One Spark application: started with its executors counted, shared by trials of equal resources."""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from models.event_log import Application, EventLog
from models.protocol import Surroundings
from models.ranks.telling import Listener
from models.spark_conf import DRIVER_OPTIONS, common, together
from models.spark_master import ITERATIONS, Master, master
from models.spec import Resources
from store.errors import TrialError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOST_SECONDS = 20.0  # until it is known that an application is gone whose Spark has stopped
# One row a task slot. MLlib takes the same choice of this library; a process tells one executor from another.
ASK_BLAS = """
SELECT concat(reflect('java.lang.ProcessHandle', 'current'), '@', reflect('java.net.InetAddress', 'getLocalHost')) jvm,
       reflect('dev.ludovic.netlib.blas.BLAS', 'getInstance') blas,
       concat(reflect('java.lang.System', 'getProperty', 'java.version'), ' (',
              reflect('java.lang.System', 'getProperty', 'java.vendor'), ')') java
FROM range(0, {slots}, 1, {slots})
"""


class SparkApplication:
    # Spark allows one to a process, so platforms of one session share it.
    _shared: ClassVar[SparkApplication | None] = None

    @classmethod
    def shared(cls, resources: Resources, surroundings: Surroundings) -> SparkApplication:
        """The one that is there, if it has these resources; else a new one."""
        there = cls._shared
        if there is not None and (there.resources.executors_alike != resources.executors_alike or not there.is_whole()):
            cls.end_shared()
        if cls._shared is None:
            cls._shared = cls(resources, surroundings)
        return cls._shared

    @classmethod
    def end_shared(cls) -> None:
        if cls._shared is not None:
            cls._shared.stop()
            cls._shared = None

    def __init__(self, resources: Resources, surroundings: Surroundings) -> None:
        began = time.perf_counter()
        if resources.executors is None or resources.cores is None or resources.memory_mib is None:
            raise TrialError("a Spark trial needs executors, cores and memory_mib")
        self.resources = resources
        self.master = master(surroundings)
        self._iterations = surroundings.work / ITERATIONS
        self._blas: str | None = None
        self._javas: set[str] = set()
        self._has_code = False
        self.session = self._start(surroundings)
        self.master.started(self.session.sparkContext.applicationId)
        self._wait_for_executors(resources.executors)
        self.startup_seconds = time.perf_counter() - began

    def log(self) -> GrowingLog:
        """The event log of this application, read from its beginning."""
        return GrowingLog(self.master)

    def granted(self) -> tuple[int, int, str | None]:
        """Executors and cores that it really has, and a sentence where they are not what it says."""
        return self.master.granted(self.log().read())

    def listener(self) -> Listener:
        """Where Python tasks of ours, which from now on find our code, can tell something while they run."""
        context = self.session.sparkContext
        if not self._has_code:
            self.master.send_code(context)
            self._has_code = True
        given = context.getConf()
        host = str(given.get("spark.driver.host"))
        return Listener(str(given.get("spark.driver.bindAddress", host)), known_as=host)

    @property
    def barrier_seconds(self) -> float:
        """That Spark waits for all tasks of a barrier stage to meet."""
        conf = self.session.sparkContext._jsc.sc().conf()
        return float(conf.getTimeAsSeconds("spark.barrier.sync.timeout"))

    def executors(self) -> int:
        """How many are there now; the driver is in Spark's list too."""
        context = self.session.sparkContext
        return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1

    def is_whole(self) -> bool:
        """All executors that were asked for are there."""
        return self.executors() >= (self.resources.executors or 1)

    def lost(self) -> str | None:
        """Why it is gone, if it is. Spark sees its end, and stops, before whoever watches YARN has looked again."""
        return self.master.lost(within_seconds=LOST_SECONDS if self._has_stopped() else 0.0)

    def _has_stopped(self) -> bool:
        """Without our doing, or its JVM is gone."""
        try:
            return bool(self.session.sparkContext._jsc.sc().isStopped())
        except Exception:  # of Py4J, or of Python where PySpark has forgotten its JVM
            return True

    def blas(self) -> str:
        """What MLlib multiplies matrices with, as every executor's JVM says: `VectorBLAS`, or each with its share."""
        if self._blas is None:
            self._blas = told_blas(self._asked_blas(), executors=self.executors())
        return self._blas

    def versions(self) -> dict[str, str]:
        """Of the Spark that runs, and of its executors' Java, which need not be the driver's: as event logs say it."""
        self.blas()
        return {"spark": self.session.version, "java": " and ".join(sorted(self._javas))}

    def _asked_blas(self) -> list[tuple[str, str]]:
        """Of each slot the JVM that answered, and its answer: reflection in SQL gets there without Python."""
        slots = (self.resources.executors or 1) * (self.resources.cores or 1)
        self.session.sparkContext.setJobGroup("blas", "yarnstick")  # a job of no trial
        rows = self.session.sql(ASK_BLAS.format(slots=slots)).collect()
        self._javas = {str(row.java) for row in rows}
        return [(str(row.jvm), str(row.blas)) for row in rows]

    def iterations(self, *, since: float) -> list[float]:
        """When l-bfgs said that it had done an iteration, in seconds of the driver's wall clock."""
        if not self._iterations.exists():
            return []
        told = (line.partition(" ") for line in self._iterations.read_text(encoding="utf-8").splitlines())
        ends = [int(millis) / 1000 for millis, _, what in told if what.startswith("Val and Grad Norm")]
        return [end for end in ends if end >= since]

    def stop(self) -> None:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        with suppress(Py4JError, OSError):  # of a JVM that is gone
            self.master.stop(self.session, gateway)
        type(self.session)._instantiatedSession = None
        _forget_jvm()

    def _start(self, surroundings: Surroundings) -> SparkSession:
        from pyspark.sql import SparkSession

        r = self.resources
        os.environ["PYSPARK_PYTHON"] = self.master.python
        logging.getLogger().addFilter(_is_news)
        conf = together({**common(r), **self.master.conf(r)}, surroundings.spark_conf)
        if options := conf.get(DRIVER_OPTIONS):  # must be known before its JVM starts, if that is ours to start
            os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-java-options {shlex.quote(options)} pyspark-shell"
        builder = SparkSession.builder
        for key, value in conf.items():
            builder = builder.config(key, value)
        try:
            return builder.getOrCreate()
        except Exception as error:  # of Py4J's own, and pyspark's where the JVM did not come up
            message = _message(error)
            _end_jvm()
            raise self.master.refused(message) from None

    def _wait_for_executors(self, wanted: int) -> None:
        deadline = time.monotonic() + self.master.executors_seconds
        while self._came() < wanted:
            if time.monotonic() > deadline:
                came = self.executors()
                self.stop()
                raise TrialError(
                    f"{came} of {wanted} executors came within {self.master.executors_seconds:.0f} s; "
                    f"lower executors, cores or memory_mib of the profile"
                )
            time.sleep(0.05)

    def _came(self) -> int:
        """As long as there are too few; an application that YARN has ended meanwhile has none to count."""
        try:
            return self.executors()
        except Exception as error:  # of Py4J, or of Java through it
            message = _message(error)
            self.stop()
            raise self.master.refused(message) from None


class GrowingLog:
    """The event log of an application that runs: each `read` goes on where the last one ended."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self._log: EventLog | None = None

    def read(self) -> Application:
        path = self._master.event_log()
        self._log = self._log or EventLog(path)
        return self._log.read()


def _message(error: Exception) -> str:
    """What Java says, where it was Java; the first line of it."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() if java is not None else error).strip()
    return (text or type(error).__name__).splitlines()[0]


def _is_news(record: logging.LogRecord) -> bool:
    """Py4J logs a traceback of each call that a JVM which we kill leaves unanswered, and tells its caller besides.

    Its own thread calls too, for objects that nobody uses any more.
    """
    return record.msg != "Exception while sending command."


def _end_jvm() -> None:
    """One whose application did not start is of no use to the next."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.proc.kill()
        _forget_jvm()


def _forget_jvm() -> None:
    """Else the next session of this process would look for the old one's JVM."""
    from pyspark import SparkContext

    process: Any = getattr(SparkContext._gateway, "proc", None)
    if process is not None:  # in cluster mode the JVM is our parent, and not our own
        process.stdin.close()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None


def told_blas(answers: Iterable[tuple[str, str]], *, executors: int) -> str:
    """`VectorBLAS`; `JNIBLAS (1 of 2 executors), VectorBLAS (1 of 2 executors)`; and whether some were not asked."""
    named = {jvm: answer.rpartition(".")[2].partition("@")[0] for jvm, answer in answers}
    names = Counter(named.values())
    if len(names) == 1 and len(named) >= executors:
        return next(iter(names))
    return ", ".join(f"{name} ({count} of {executors} executors)" for name, count in sorted(names.items()))
