"""One Spark application: started with its executors counted, shared by trials of equal resources."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.protocol import Surroundings
from models.spec import Resources
from store.errors import TrialError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTORS_SECONDS = 120.0
ITERATIONS = "iterations.log"
# One BLAS thread a task slot: a multithreaded BLAS would make the sweep of cores a lie.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# One row a task slot. MLlib takes the same choice of this library; a process tells one executor from another.
ASK_BLAS = """
SELECT concat(reflect('java.lang.ProcessHandle', 'current'), '@', reflect('java.net.InetAddress', 'getLocalHost')) jvm,
       reflect('dev.ludovic.netlib.blas.BLAS', 'getInstance') blas
FROM range(0, {slots}, 1, {slots})
"""


class SparkApplication:
    def __init__(self, resources: Resources, surroundings: Surroundings) -> None:
        began = time.perf_counter()
        if resources.executors is None or resources.cores is None or resources.memory_mib is None:
            raise TrialError("a Spark trial needs executors, cores and memory_mib")
        self.resources = resources
        self.work = surroundings.work
        self._event_logs = surroundings.archives
        self._iterations = surroundings.work / ITERATIONS
        self._blas: str | None = None
        self._lets_jvms_end = surroundings.lets_jvms_end
        self.session = self._start(surroundings)
        self._wait_for_executors(resources.executors)
        self.startup_seconds = time.perf_counter() - began

    @property
    def event_log(self) -> Path:
        """The rolling directory or single file that this application writes."""
        return next(self._event_logs.glob(f"*{self.session.sparkContext.applicationId}*"))

    def executors(self) -> int:
        """How many are there now; the driver is in Spark's list too."""
        context = self.session.sparkContext
        return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1

    def blas(self) -> str:
        """What MLlib multiplies matrices with, as every executor's JVM says: `VectorBLAS`, or each with its share."""
        if self._blas is None:
            self._blas = told_blas(self._asked_blas(), executors=self.executors())
        return self._blas

    def _asked_blas(self) -> list[tuple[str, str]]:
        """Of each slot the JVM that answered, and its answer: reflection in SQL gets there without Python."""
        slots = (self.resources.executors or 1) * (self.resources.cores or 1)
        self.session.sparkContext.setJobGroup("blas", "yarnstick")  # a job of no trial
        return [(str(row.jvm), str(row.blas)) for row in self.session.sql(ASK_BLAS.format(slots=slots)).collect()]

    def iterations(self, *, since: float) -> list[float]:
        """When l-bfgs said that it had done an iteration, in seconds of the driver's wall clock."""
        if not self._iterations.exists():
            return []
        told = (line.partition(" ") for line in self._iterations.read_text(encoding="utf-8").splitlines())
        ends = [int(millis) / 1000 for millis, _, what in told if what.startswith("Val and Grad Norm")]
        return [end for end in ends if end >= since]

    def stop(self) -> None:
        """Nothing of a local cluster outlives its driver, so that one is killed: a shutdown would take seconds."""
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        if self._lets_jvms_end:
            self.session.stop()
            gateway.shutdown()
        else:
            gateway.proc.kill()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        # Else the next session of this process would look for the old one's JVM.
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        type(self.session)._instantiatedSession = None

    def _start(self, surroundings: Surroundings) -> SparkSession:
        import pyspark
        from pyspark.sql import SparkSession

        r = self.resources
        work = surroundings.work
        os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        os.environ["SPARK_WORKER_DIR"] = str(work / "workers")
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["PYSPARK_PYTHON"] = sys.executable
        self._event_logs.mkdir(parents=True, exist_ok=True)
        options = {kind: f"-Dlog4j2.configurationFile={_log4j(work).as_uri()}" for kind in ("driver", "executor")}
        for kind, archive in surroundings.class_archives.items():
            options[kind] += f" {archive}"
        # Options of the driver's JVM must be known before it starts.
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-java-options {shlex.quote(options['driver'])} pyspark-shell"
        builder = SparkSession.builder.master(f"local-cluster[{r.executors},{r.cores},{r.memory_mib}]")
        conf = {
            "spark.app.name": "yarnstick",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.dynamicAllocation.enabled": "false",
            "spark.eventLog.compress": "false",  # read while it grows
            "spark.eventLog.dir": self._event_logs.as_uri(),
            "spark.eventLog.enabled": "true",
            "spark.executor.cores": str(r.cores),
            "spark.executor.extraJavaOptions": options["executor"],
            "spark.executor.memory": f"{r.memory_mib}m",
            # Of a vectored read Spark counts next to nothing as bytes read.
            "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
            # Adaptive execution only adds jobs to the few queries here, which load the rows.
            "spark.sql.adaptive.enabled": "false",
            # Compiling a query that runs once takes longer than it saves; gradient passes are no queries.
            "spark.sql.codegen.wholeStage": "false",
            "spark.local.dir": str(work / "local"),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            **{f"spark.executorEnv.{name}": value for name, value in ONE_THREAD.items()},
            **surroundings.spark_conf,
        }
        for key, value in conf.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    def _wait_for_executors(self, wanted: int) -> None:
        deadline = time.monotonic() + EXECUTORS_SECONDS
        while self.executors() < wanted:
            if time.monotonic() > deadline:
                raise TrialError(
                    f"{self.executors()} of {wanted} executors came within {EXECUTORS_SECONDS:.0f} s; "
                    f"lower executors, cores or memory_mib of the profile"
                )
            time.sleep(0.05)


def told_blas(answers: Iterable[tuple[str, str]], *, executors: int) -> str:
    """`VectorBLAS`; `JNIBLAS (1 of 2 executors), VectorBLAS (1 of 2 executors)`; and whether some were not asked."""
    named = {jvm: answer.rpartition(".")[2].partition("@")[0] for jvm, answer in answers}
    names = Counter(named.values())
    if len(names) == 1 and len(named) >= executors:
        return next(iter(names))
    return ", ".join(f"{name} ({count} of {executors} executors)" for name, count in sorted(names.items()))


def _log4j(work: Path) -> Path:
    """Spark's own log goes to a file of the session, and what l-bfgs tells of its iterations to another."""
    target = work / "log4j2.properties"
    target.write_text(
        f"""
rootLogger.level = warn
rootLogger.appenderRef.spark.ref = spark
logger.breeze.name = breeze.optimize
logger.breeze.level = info
logger.breeze.additivity = false
logger.breeze.appenderRef.iterations.ref = iterations
appender.spark.type = File
appender.spark.name = spark
appender.spark.fileName = {work / "spark.log"}
appender.spark.layout.type = PatternLayout
appender.spark.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%throwable{{short}}
appender.iterations.type = File
appender.iterations.name = iterations
appender.iterations.fileName = {work / ITERATIONS}
appender.iterations.layout.type = PatternLayout
appender.iterations.layout.pattern = %d{{UNIX_MILLIS}} %m%n
""",
        encoding="utf-8",
    )
    return target
