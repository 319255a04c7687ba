"""Spark MLlib's MultilayerPerceptronClassifier: full batch, float64, one gradient pass a job."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from models.dataset import Dataset
from models.ledger import Application, EventLog, Job
from models.networks import accuracy, flatten, initial_weights, unflatten
from models.protocol import Epoch, Surroundings
from models.spark_application import SparkApplication
from models.spec import FULL_BATCH_SOLVERS, TrialSpec
from models.vectors import write_vectors
from store.errors import TrialError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK_ROWS = 128  # MLlib stacks about so many rows to one matrix
WHOLE_FILE_BYTES = 1 << 50
EVENTS_SECONDS = 20.0
CLOCKS_SHARE, CLOCKS_SECONDS = 0.02, 0.1
CLOCK_STEP = 0.001  # of the event log's clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A fit as both clocks saw it."""

    seconds: float  # monotonic
    began: float  # wall clock, as the event log's
    ended: float
    losses: list[float]
    weights: np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An epoch as the event log shows it."""

    seconds: float
    cpu_seconds: float
    passes: int
    clock: str


class MLlib:
    name: ClassVar[str] = "mllib"
    axes: ClassVar[frozenset[str]] = frozenset(
        {"executors", "cores", "memory_mib", "partitions", "deploy_modes", "solvers", "learning_rates", "fractions"}
    )
    fixed: ClassVar[dict[str, str]] = {"precision": "float64"}

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._application: SparkApplication | None = None

    def unavailable(self, spec: TrialSpec) -> str | None:
        if spec.hyperparameters.solver not in FULL_BATCH_SOLVERS:
            return f"MLlib has no solver {spec.hyperparameters.solver}"
        return None

    def train(self, spec: TrialSpec, data: Dataset) -> Iterator[Epoch]:
        application = self._start(spec)
        context = application.session.sparkContext
        context.setJobGroup(spec.slug, "yarnstick")
        began = time.perf_counter()
        rows = _rows(application, spec, data)
        prepared_seconds = time.perf_counter() - began
        fit = _fit(spec, data, rows)
        jobs, seen = _jobs(EventLog(application.event_log), spec, fit)
        passes = [job for job in jobs if job.is_pass]
        # Before its first pass a fit reads the rows, stacks them to blocks and caches those.
        load_seconds = prepared_seconds + sum(_ended(job) - job.began for job in jobs if not job.is_pass)
        layers = unflatten(spec.network, fit.weights)
        spans = list(_epochs(spec, passes, fit, told=application.iterations(since=fit.began)))
        for number, span in enumerate(spans, 1):
            last = number == len(spans)
            yield Epoch(
                epoch=number,
                seconds=span.seconds,
                clock=span.clock,
                cpu_seconds=span.cpu_seconds,
                passes=span.passes,
                updates=1,
                samples=span.passes * data.rows(spec.data_fraction),
                loss=fit.losses[number - 1],
                train_accuracy=_accuracy(layers, data, *data.read_train(spec.data_fraction)) if last else None,
                test_accuracy=_accuracy(layers, data, *data.read_test()) if last else None,
                startup_seconds=application.startup_seconds,
                load_seconds=load_seconds,
                bytes_read=data.train_bytes,
                granted_executors=len(seen.executor_cores),
                granted_cores=sum(seen.executor_cores.values()),
                blas=application.blas(),
                note=_disagreement(jobs, fit),
                tainted=f"executor {lost[0]} was lost" if (lost := seen.lost_executors) else None,
            )
        if seen.lost_executors:
            self.close()  # the next trial gets an application with all of its executors

    def close(self) -> None:
        if self._application is not None:
            self._application.stop()
            self._application = None

    def _start(self, spec: TrialSpec) -> SparkApplication:
        if self._application is not None and self._application.resources != spec.resources:
            self.close()
        if self._application is None:
            self._application = SparkApplication(spec.resources, self._surroundings)
        return self._application


def _rows(application: SparkApplication, spec: TrialSpec, data: Dataset) -> DataFrame:
    """The chosen rows as MLlib's vectors, each file one partition. MLlib caches what it makes of them by itself."""
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql.types import DoubleType, StructField, StructType

    partitions = spec.resources.partitions or 1
    folder = application.work / f"vectors-{spec.data}-{spec.data_fraction}-{partitions}"
    if not folder.exists():
        write_vectors(data, fraction=spec.data_fraction, partitions=partitions, folder=folder)
    conf = application.session.conf
    # A file costs as much to open as a partition may hold: none is split, and no two are put together.
    conf.set("spark.sql.files.maxPartitionBytes", str(WHOLE_FILE_BYTES))
    conf.set("spark.sql.files.openCostInBytes", str(WHOLE_FILE_BYTES))
    schema = StructType([StructField("label", DoubleType()), StructField("features", VectorUDT())])
    return application.session.read.schema(schema).parquet(folder.as_uri())


def _fit(spec: TrialSpec, data: Dataset, rows: DataFrame) -> Fit:
    from pyspark.ml.classification import MultilayerPerceptronClassifier
    from pyspark.ml.linalg import Vectors

    h = spec.hyperparameters
    classifier = MultilayerPerceptronClassifier(
        layers=list(spec.network.sizes),
        solver=h.solver,
        maxIter=h.epochs,
        tol=0.0,  # else it stops when it thinks it is done
        blockSize=block_rows(data.rows(spec.data_fraction), spec.resources.partitions or 1),
        initialWeights=Vectors.dense(flatten(initial_weights(spec.network, spec.seed))),
        seed=spec.seed,
        stepSize=h.learning_rate or 1.0,  # l-bfgs has none
    )
    began, clock = time.time(), time.perf_counter()
    model = classifier.fit(rows)
    seconds, ended = time.perf_counter() - clock, time.time()
    losses = [float(loss) for loss in model.summary().objectiveHistory]
    return Fit(seconds=seconds, began=began, ended=ended, losses=losses, weights=model.weights.toArray())


def block_rows(rows: int, partitions: int) -> int:
    """MLlib averages over the blocks, whatever their size: its loss is the rows' mean only if they are equal.

    The largest divisor of a partition's rows up to MLlib's default is taken, where a useful one is there.
    """
    share = rows // partitions
    if rows % partitions == 0:
        for size in range(min(BLOCK_ROWS, share), BLOCK_ROWS // 4, -1):
            if share % size == 0:
                return size
    return BLOCK_ROWS


def _jobs(log: EventLog, spec: TrialSpec, fit: Fit) -> tuple[list[Job], Application]:
    """The fit's jobs, once the log holds the end of all of them: it is written a moment later."""
    deadline = time.monotonic() + EVENTS_SECONDS
    while True:
        seen = log.read()
        jobs = [job for job in seen.group(spec.slug) if job.began >= fit.began - CLOCK_STEP]
        passes = [job for job in jobs if job.is_pass]
        if len(passes) >= len(fit.losses) and all(job.ended is not None for job in jobs):
            return jobs, seen
        if time.monotonic() > deadline:
            raise TrialError(
                f"the event log shows {len(passes)} finished gradient passes where the objective history has "
                f"{len(fit.losses)} values; such a trial has no epochs that can be trusted"
            )
        time.sleep(0.05)


def _epochs(spec: TrialSpec, passes: list[Job], fit: Fit, *, told: list[float]) -> Iterator[Span]:
    """Each epoch from its first pass to the next epoch's; `told` is when l-bfgs said that an iteration had ended."""
    epochs = len(fit.losses) - 1  # the history ends with the loss of the final weights
    ends = [job.began for job in passes[1:]] + [_ended(passes[-1])]
    if spec.hyperparameters.solver == "gd":
        # One pass an update; the last pass only finds the final loss, and belongs to no epoch.
        if len(passes) != epochs + 1:
            raise TrialError(f"{len(passes)} gradient passes for {epochs} updates: the event log is not of this fit")
        shares = [[job] for job in passes[:-1]]
    elif len(told) == epochs:
        # An iteration has the passes that ended before it did; the first has the one at the initial weights too.
        shares = [
            [job for job in passes if since < _ended(job) <= until]
            for since, until in zip([0.0, *told], told, strict=False)
        ]
    else:
        shares = []
    if shares and all(shares):
        for share in shares:
            end = ends[passes.index(share[-1])]
            cpu_seconds = sum(job.cpu_seconds for job in share)
            yield Span(seconds=end - share[0].began, cpu_seconds=cpu_seconds, passes=len(share), clock="eventlog")
        return
    # Some line search took more than one pass, and nothing tells which.
    whole, cpu_seconds = ends[-1] - passes[0].began, sum(job.cpu_seconds for job in passes)
    for number in range(epochs):
        count = len(passes) // epochs + (number < len(passes) % epochs)
        yield Span(seconds=whole / epochs, cpu_seconds=cpu_seconds / epochs, passes=count, clock="amortized")


def _disagreement(jobs: list[Job], fit: Fit) -> str | None:
    """A sentence where the event log's clock and the monotonic one do not tell the same time of the fit."""
    first, last = jobs[0].began, max(_ended(job) for job in jobs)
    inside = fit.began - CLOCK_STEP <= first and last <= fit.ended + CLOCK_STEP
    by_log = fit.ended - fit.began
    if inside and abs(by_log - fit.seconds) <= max(CLOCKS_SHARE * fit.seconds, CLOCKS_SECONDS):
        return None
    return (
        f"the event log's clock and the monotonic clock disagree: {by_log:.3f} s against {fit.seconds:.3f} s for the "
        f"fit, jobs from {first - fit.began:.3f} s to {last - fit.began:.3f} s"
    )


def _ended(job: Job) -> float:
    if job.ended is None:
        raise TrialError(f"Spark job {job.number} ({job.name}) has no end in the event log")
    return job.ended


def _accuracy(layers: Any, data: Dataset, features: Any, labels: Any) -> float | None:
    if not all(math.isfinite(weights.sum()) for weights, _ in layers):
        return None
    return accuracy(layers, data.values(features, "float32"), labels)
