"""What every Spark application of ours is told, whoever gives it executors."""

from __future__ import annotations

from collections.abc import Mapping

from models.probes import SESSION
from models.protocol import Yarn
from models.ranks import executor_gpus
from models.spec import Resources
from yarn.submission import session_tag

# One BLAS thread a task slot: a multithreaded BLAS would make the sweep of cores a lie.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
LEAST_OVERHEAD_MIB, OVERHEAD_SHARE = 384, 0.1  # Spark's own
BARRIER_SECONDS = 300
DRIVER_OPTIONS, EXECUTOR_OPTIONS = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
CONTAINERS = ("spark.yarn.appMasterEnv", "spark.executorEnv")


def common(resources: Resources) -> dict[str, str]:
    return {
        "spark.app.name": "yarnstick",
        "spark.dynamicAllocation.enabled": "false",
        "spark.eventLog.compress": "false",  # read while it grows
        "spark.eventLog.enabled": "true",
        "spark.executor.cores": str(resources.cores),
        "spark.executor.memory": f"{resources.memory_mib}m",
        # Of a vectored read Spark counts next to nothing as bytes read.
        "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
        # Adaptive execution only adds jobs to the few queries here, which load the rows.
        "spark.sql.adaptive.enabled": "false",
        # Compiling a query that runs once takes longer than it saves; gradient passes are no queries.
        "spark.sql.codegen.wholeStage": "false",
        # A barrier stage without enough slots would be tried again for ten minutes.
        "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
        "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "3",
        # For ever, as shipped: a task that stands still before all have met would hold the others.
        "spark.barrier.sync.timeout": f"{BARRIER_SECONDS}s",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **{f"spark.executorEnv.{name}": value for name, value in ONE_THREAD.items()},
    }


def together(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """A user's own setting wins; options of a JVM come after ours, which stay."""
    of_jvms = {DRIVER_OPTIONS, EXECUTOR_OPTIONS} & ours.keys() & given.keys()
    return {**ours, **given, **{key: f"{ours[key]} {given[key]}" for key in of_jvms}}


def overhead_mib(memory_mib: int, python_mib: int) -> int:
    """Of an executor's container, beside its heap: Spark's own rule, or what its Python takes."""
    return max(LEAST_OVERHEAD_MIB, int(OVERHEAD_SHARE * memory_mib), python_mib)


def on_yarn(resources: Resources, yarn: Yarn, *, tag: str, session: str) -> dict[str, str]:
    """`session` is that of models.probes.SESSION, in every container and in a tag."""
    return {
        "spark.executor.instances": str(resources.executors),
        "spark.executor.memoryOverhead": f"{overhead_mib(resources.memory_mib or 0, yarn.python_mib)}m",
        **executor_gpus.conf(resources),
        "spark.yarn.archive": yarn.jars,
        "spark.yarn.maxAppAttempts": "1",
        "spark.yarn.queue": yarn.queue,
        "spark.yarn.tags": f"{tag},{session_tag(session)}" if session else tag,
        **{f"{of}.{SESSION}": session for of in CONTAINERS},
        **({"spark.yarn.dist.archives": ",".join(archives)} if (archives := yarn.shipped.archives) else {}),
        **{f"{of}.{name}": value for of in CONTAINERS for name, value in yarn.shipped.environment.items()},
    }
