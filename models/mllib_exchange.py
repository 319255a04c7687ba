"""What a gradient pass of MLlib takes with nearly nothing to compute: a fit of the same network on a row a partition.

Broadcast of the weights, scheduling, tree aggregation and update stay as they are, and nearly nothing else does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from models.dataset import Dataset
from models.event_log import Job
from models.fits import EXCHANGE
from models.ledger import spans
from models.mllib_fit import Fit, finished_jobs
from models.networks import flatten, initial_weights
from models.spark_application import SparkApplication
from models.spec import TrialSpec
from store.errors import TrialError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UPDATES = 4
COLD = 1  # the first is slower


class Exchanges:
    """Each is measured once for an application, network and partitions: a trial costs nothing after the first."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], float | None] = {}

    def seconds(self, application: SparkApplication, spec: TrialSpec, *, rows: Callable[[], DataFrame]) -> float | None:
        """None where Spark's log does not show it whole, as when a busy driver drops events: the trial is as good."""
        of = application.session.sparkContext.applicationId
        key = (of, spec.network.sizes, spec.resources.partitions)
        if key not in self._known:
            self._known[key] = None
            with suppress(TrialError):
                self._known[key] = _measured(application, spec, rows())
        return self._known[key]


def _measured(application: SparkApplication, spec: TrialSpec, rows: DataFrame) -> float:
    from pyspark.ml.classification import MultilayerPerceptronClassifier
    from pyspark.ml.linalg import Vectors

    network = spec.network
    application.session.sparkContext.setJobGroup(EXCHANGE, "yarnstick")
    estimator = MultilayerPerceptronClassifier(
        layers=list(network.sizes),
        solver="gd",  # a pass an update, whatever solver the trial has
        maxIter=UPDATES,
        tol=0.0,
        blockSize=1,
        initialWeights=Vectors.dense(flatten(initial_weights(network, spec.seed))),
    )
    began, clock = time.time(), time.perf_counter()
    estimator.fit(rows)
    seconds, ended = time.perf_counter() - clock, time.time()
    # One loss more than updates: that of the final weights, which takes a pass of its own.
    fit = Fit(seconds=seconds, began=began, ended=ended, losses=[0.0] * (UPDATES + 1), layers=[])
    jobs, _ = finished_jobs(application.log(), group=EXCHANGE, fit=fit)
    return warm_pass([job for job in jobs if job.is_pass])


def few(spec: TrialSpec, data: Dataset) -> TrialSpec:
    """The trial with a row a partition: read as its own are, by code that its fit has just used."""
    partitions = spec.resources.partitions or 1
    return replace(spec, data_fraction=min(1.0, (partitions + 0.5) / data.train_rows))


def warm_pass(passes: Sequence[Job]) -> float:
    """The median of the later ones, each until the next begins: broadcast and update lie between two passes."""
    updates = list(spans(passes, [1] * (len(passes) - 1)))
    return statistics.median(span.seconds for span in updates[COLD:])
