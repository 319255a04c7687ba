"""Spark MLlib's MultilayerPerceptronClassifier: full batch, float64, one gradient pass a job."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from models.dataset import Dataset
from models.event_log import Application
from models.executor_losses import Losses
from models.fits import REFIT
from models.java_doubles import doubles
from models.mllib_exchange import Exchanges, few
from models.mllib_fit import Fit, disagreement, ended, epoch_spans, finished_jobs
from models.mllib_refits import accuracies
from models.mllib_rehearsal import Rehearsals
from models.networks import Layer, accuracy, flatten, initial_weights, unflatten
from models.protocol import Epoch, Surroundings, TaintedError
from models.ranks.executor_memory import ExecutorMemory
from models.spark_application import SparkApplication
from models.spec import FULL_BATCH_SOLVERS, TrialSpec
from models.target import target_accuracy
from store.errors import TrialError, YarnstickError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK_ROWS = 128  # MLlib stacks about so many rows to one matrix
WHOLE_FILE_BYTES = 1 << 50
LAST_FAILURE = re.compile(r"most recent failure: Lost task .* executor (?P<executor>\w+)\): (?P<why>.*)")


class MLlib:
    name: ClassVar[str] = "mllib"
    axes: ClassVar[frozenset[str]] = frozenset(
        {
            *("executors", "cores", "memory_mib", "partitions", "deploy_modes"),
            *("solvers", "learning_rates", "initial_weights", "fractions"),
        }
    )
    fixed: ClassVar[dict[str, str]] = {"precision": "float64"}

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._exchanges = Exchanges()
        self._rehearsals = Rehearsals()

    def unavailable(self, spec: TrialSpec) -> str | None:
        network = spec.network
        if network.source is not None:
            return f"MLlib trains its own network, and {network.name} is a module of torch"
        if network.layer_activations != ("sigmoid",) * len(network.hidden) + (None,):
            return f"MLlib has only sigmoid hidden layers, and {network.name} has other activations"
        if spec.resources.deploy_mode == "cluster" and self._surroundings.yarn is None:
            return "deploy mode cluster needs YARN, and yarnstick.spark.master is not yarn"
        if spec.hyperparameters.solver not in FULL_BATCH_SOLVERS:
            return f"MLlib has no solver {spec.hyperparameters.solver}"
        return None

    def train(self, spec: TrialSpec, data: Dataset) -> Iterator[Epoch]:
        application = SparkApplication.shared(spec.resources, self._surroundings)
        whole_since = time.time()  # from here on all executors are needed: a fit would go on with those that are left
        context = application.session.sparkContext
        context.setJobGroup(spec.slug, "yarnstick")
        losses = Losses(application)
        try:
            with losses:
                began = time.perf_counter()
                rows = _rows(application, application.master.rows(spec, data))
                prepared_seconds = time.perf_counter() - began
                if self._surroundings.shares_applications:
                    rehearse = partial(self._fit, data=data, rows=rows)
                    self._rehearsals.before(spec, context, rows=data.rows(spec.data_fraction), fit=rehearse)
                fit = self._fit(spec, data, rows)
                jobs, seen = finished_jobs(application.log(), group=spec.slug, fit=fit)
                # Of one whose node is gone YARN says nothing for a while, and till then no log has its end.
                is_whole = application.is_whole()
                # After the fit, whose epochs it is not to warm up, and after what l-bfgs told of it was read.
                told = application.iterations(since=fit.began)
                exchange_seconds = None
                if spec.trial == 1:  # one for each configuration of a run is enough
                    exchange_seconds = self._exchanges.seconds(
                        application,
                        spec,
                        rows=lambda: _rows(application, application.master.rows(few(spec, data), data)),
                    )
                context.setJobGroup(REFIT, "yarnstick")
                learnt = accuracies(
                    spec,
                    target=target_accuracy(self._surroundings.targets, dataset=spec.dataset, network=spec.network.name),
                    judge=lambda shorter: self._test_accuracy(shorter, data, self._fit(shorter, data, rows)),
                )
        except Exception as error:
            if why := application.lost():
                self.close()
                raise TaintedError(why) from None
            if short := self._short_of_memory(str(error), application, spec, since=whole_since) or losses.too_many:
                self.close()
                raise TrialError(short) from None
            raise
        passes = [job for job in jobs if job.is_pass]
        # Before its first pass a fit reads the rows, stacks them to blocks and caches those.
        load_seconds = prepared_seconds + sum(ended(job) - job.began for job in jobs if not job.is_pass)
        executors, cores, shortage = application.master.granted(seen)
        note = " | ".join(filter(None, (disagreement(jobs, fit), shortage))) or None
        lost = self._lost(seen, spec, since=whole_since) or (None if is_whole else "an executor was lost")
        spans = list(epoch_spans(spec, passes, fit, told=told))
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
                ledger=span.ledger,
                train_accuracy=_accuracy(spec, fit, data, *data.read_train(spec.data_fraction)) if last else None,
                test_accuracy=self._test_accuracy(spec, data, fit) if last else learnt.get(number),
                startup_seconds=application.startup_seconds,
                load_seconds=load_seconds,
                bytes_read=data.train_bytes,
                granted_executors=executors,
                granted_cores=cores,
                exchange_seconds=exchange_seconds,
                blas=application.blas(),
                versions=application.versions(),
                note=note,
                tainted=lost,
            )
        if lost:
            self.close()  # the next trial gets an application with all of its executors

    def close(self) -> None:
        SparkApplication.end_shared()

    def _lost(self, seen: Application, spec: TrialSpec, *, since: float) -> str | None:
        """Of an executor that others did the work of meanwhile."""
        memory = ExecutorMemory.of(spec.resources, self._surroundings, in_python=False)
        for executor in seen.losses(since=since):
            return memory.short(executor.name, executor.why) or f"executor {executor.name} was lost"
        return None

    def _short_of_memory(
        self, said: str, application: SparkApplication, spec: TrialSpec, *, since: float
    ) -> str | None:
        """By the task that failed last, of which Spark's page of Java speaks, or by those before it."""
        memory = ExecutorMemory.of(spec.resources, self._surroundings, in_python=False)
        if (last := LAST_FAILURE.search(said)) and (why := memory.short(last["executor"], last["why"])):
            return why
        with suppress(YarnstickError, OSError, StopIteration):  # of a log that is gone with its application
            jobs = (job for job in application.log().read().jobs.values() if job.began >= since)
            failures = (each for job in jobs for each in job.failures)
            return next(filter(None, (memory.short(each.executor, each.why) for each in failures)), None)
        return None

    def _fit(self, spec: TrialSpec, data: Dataset, rows: DataFrame) -> Fit:
        estimator = self._estimator(spec, data)
        began, clock = time.time(), time.perf_counter()
        model = estimator.fit(rows)
        seconds, ended = time.perf_counter() - clock, time.time()
        losses, layers = self._found(spec, model)
        return Fit(seconds=seconds, began=began, ended=ended, losses=[float(each) for each in losses], layers=layers)

    def _test_accuracy(self, spec: TrialSpec, data: Dataset, fit: Fit) -> float | None:
        return _accuracy(spec, fit, data, *data.read_test())

    def _estimator(self, spec: TrialSpec, data: Dataset) -> Any:
        from pyspark.ml.classification import MultilayerPerceptronClassifier
        from pyspark.ml.linalg import Vectors

        h = spec.hyperparameters
        return MultilayerPerceptronClassifier(
            layers=list(spec.network.sizes),
            solver=h.solver,
            maxIter=h.epochs,
            tol=0.0,  # else it stops when it thinks it is done
            blockSize=block_rows(data.rows(spec.data_fraction), spec.resources.partitions or 1),
            initialWeights=Vectors.dense(flatten(initial_weights(spec.network, spec.seed, drawn=h.initial_weights))),
            seed=spec.seed,
            stepSize=h.learning_rate or 1.0,  # l-bfgs has none
        )

    def _found(self, spec: TrialSpec, model: Any) -> tuple[list[float], list[Layer]]:
        """The objective history, and the weights."""
        from pyspark import SparkContext

        context: Any = SparkContext
        weights = doubles(model._java_obj.weights().toArray(), jvm=context._jvm, folder=self._surroundings.work)
        return model.summary().objectiveHistory, unflatten(spec.network, weights)


def _rows(application: SparkApplication, path: str) -> DataFrame:
    """Rows in MLlib's form, each file one partition. MLlib caches what it makes of them by itself."""
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql.types import DoubleType, StructField, StructType

    conf = application.session.conf
    # A file costs as much to open as a partition may hold: none is split, and no two are put together.
    conf.set("spark.sql.files.maxPartitionBytes", str(WHOLE_FILE_BYTES))
    conf.set("spark.sql.files.openCostInBytes", str(WHOLE_FILE_BYTES))
    schema = StructType([StructField("label", DoubleType()), StructField("features", VectorUDT())])
    return application.session.read.schema(schema).parquet(path)


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


def _accuracy(spec: TrialSpec, fit: Fit, data: Dataset, features: Any, labels: Any) -> float | None:
    if not all(math.isfinite(weights.sum()) for weights, _ in fit.layers):
        return None
    values = data.values(features, "float32")
    return accuracy(fit.layers, values, labels, activations=spec.network.layer_activations)
