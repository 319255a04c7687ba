"""Who gives a Spark application its executors: processes on this machine, Spark's own manager, or YARN."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from models.protocol import Surroundings
from models.sent_code import TOP
from models.spark_conf import DRIVER_OPTIONS, EXECUTOR_OPTIONS
from models.spark_home import own_home, python_path
from models.spec import Resources, TrialSpec
from models.vectors import write_vectors
from store.errors import TrialError

if TYPE_CHECKING:
    from pyspark import SparkContext

    from models.dataset import Dataset
    from models.event_log import Application

EXECUTORS_SECONDS = 120.0
# Ten times Java's own. A driver beside its executors would compile for them to wait, most of it what runs once; a loop
# over all weights gets to the second compiler within a few passes all the same.
UNHURRIED = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)


class Master(Protocol):
    name: str
    executors_seconds: float  # until all of them have come
    python: str  # of the executors
    gives_up: bool  # an application that loses executors again and again

    def conf(self, resources: Resources) -> dict[str, str]:
        """What it needs to be told; sets what must be in the environment of the driver's JVM."""
        ...

    def started(self, application: str) -> None:
        """The application runs, under this id."""
        ...

    def send_code(self, context: SparkContext) -> None:
        """What Python tasks of ours import."""
        ...

    def refused(self, message: str) -> TrialError:
        """Why an application did not start, where Spark says `message`."""
        ...

    def event_log(self) -> Path:
        """The local directory or file with all that the application has written of its log so far."""
        ...

    def rows(self, spec: TrialSpec, data: Dataset) -> str:
        """Where executors read the rows of a trial in MLlib's form, a file a partition."""
        ...

    def granted(self, seen: Application) -> tuple[int, int, str | None]:
        """Executors and cores that the application really has, and a sentence where they are not what it says."""
        ...

    def lost(self, *, within_seconds: float = 0.0) -> str | None:
        """Why the application is gone that a trial was on, if it is; or will be known to be within this time."""
        ...

    def stop(self, session: Any, gateway: Any) -> None:
        """End the application and the driver's JVM."""
        ...


def master(surroundings: Surroundings) -> Master:
    if surroundings.spark_url is not None:
        from models.spark_standalone import Standalone

        return Standalone(surroundings, surroundings.spark_url)
    if surroundings.yarn is None:
        return LocalCluster(surroundings)
    from models.spark_on_yarn import ClientMode, ClusterMode

    return (ClusterMode if surroundings.yarn.is_driver else ClientMode)(surroundings, surroundings.yarn)


class LocalCluster:
    """Real executor JVMs on this machine, which nothing but the driver knows of."""

    name = "local-cluster"
    executors_seconds = EXECUTORS_SECONDS
    python = sys.executable
    gives_up = False  # as long as one runs

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._application = ""

    def conf(self, resources: Resources) -> dict[str, str]:
        r, work = resources, self._surroundings.work
        os.environ["SPARK_HOME"] = str(self._surroundings.spark_home or own_home())
        os.environ["SPARK_WORKER_DIR"] = str(work / "workers")
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        options = dict.fromkeys(("driver", "executor"), jvm_options(work))
        options["driver"] += f" {UNHURRIED}"
        for kind, archive in self._surroundings.class_archives.items():
            options[kind] += f" {archive}"
        self._surroundings.archives.mkdir(parents=True, exist_ok=True)
        return {
            "spark.master": f"local-cluster[{r.executors},{r.cores},{r.memory_mib}]",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            DRIVER_OPTIONS: options["driver"],
            "spark.eventLog.dir": self._surroundings.archives.as_uri(),
            EXECUTOR_OPTIONS: options["executor"],
            # Where no python/lib/pyspark.zip is: of what lies in a zip every new Python compiles all that it imports.
            "spark.executorEnv.SPARK_HOME": str(work),
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(self._python_path()),
            "spark.local.dir": str(work / "local"),
        }

    def started(self, application: str) -> None:
        self._application = application

    def send_code(self, context: SparkContext) -> None:
        """They import it from where it lies."""

    def refused(self, message: str) -> TrialError:
        return TrialError(f"Spark did not start: {message}")

    def event_log(self) -> Path:
        return next(self._surroundings.archives.glob(f"*{self._application}*"))

    def rows(self, spec: TrialSpec, data: Dataset) -> str:
        partitions = spec.resources.partitions or 1
        folder = self._surroundings.work / f"vectors-{spec.data}-{spec.data_fraction}-{partitions}"
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=self._surroundings.work) as begun:  # none is half there
                rows = Path(begun) / "rows"
                rows.mkdir()
                write_vectors(
                    data,
                    fraction=spec.data_fraction,
                    partitions=partitions,
                    create=lambda name: (rows / name).open("wb"),
                )
                rows.rename(folder)
        return folder.as_uri()

    def granted(self, seen: Application) -> tuple[int, int, str | None]:
        return len(seen.executor_cores), sum(seen.executor_cores.values()), None

    def lost(self, *, within_seconds: float = 0.0) -> str | None:
        return None

    def stop(self, session: Any, gateway: Any) -> None:
        """Nothing of it outlives its driver, so that one is killed: a shutdown would take seconds."""
        if self._surroundings.lets_jvms_end:
            session.stop()
            gateway.shutdown()
        else:
            # Else it would say that its peer went away.
            session.sparkContext._accumulatorServer.handle_error = lambda *_: None
            gateway.proc.kill()

    def _python_path(self) -> list[str]:
        """Our code, a vendor's PySpark, and what this process was given, as a network of the user's own."""
        home = self._surroundings.spark_home
        given = os.environ.get("PYTHONPATH", "")
        return [str(TOP), *(python_path(home) if home else []), *filter(None, given.split(os.pathsep))]


ITERATIONS = "iterations.log"


def jvm_options(work: Path) -> str:
    """Spark's log and all temporary files go to the session's directory: /tmp would keep those of a killed JVM."""
    scratch = work / "tmp"
    scratch.mkdir(exist_ok=True)
    return f"-Dlog4j2.configurationFile={log4j(work).as_uri()} {shlex.quote(f'-Djava.io.tmpdir={scratch}')}"


def log4j(work: Path, *, there: Path | None = None) -> Path:
    """Spark's own log goes to a file of the session, and what l-bfgs tells of its iterations to another.

    `there` is what the JVM calls the directory, where it is not `work`.
    """
    target, there = work / "log4j2.properties", work if there is None else there
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
appender.spark.fileName = {there / "spark.log"}
appender.spark.layout.type = PatternLayout
appender.spark.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%throwable{{short}}
appender.iterations.type = File
appender.iterations.name = iterations
appender.iterations.fileName = {there / ITERATIONS}
appender.iterations.layout.type = PatternLayout
appender.iterations.layout.pattern = %d{{UNIX_MILLIS}} %m%n
""",
        encoding="utf-8",
    )
    return target
