"""What a gradient pass of MLlib takes with next to nothing to compute: a fit of the same network over a row a partition.

Broadcast of the weights, scheduling, tree aggregation and update stay as they are, and nearly nothing else does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from models.event_log import Job
from models.fits import EXCHANGE
from models.ledger import spans
from models.mllib_fit import Fit, finished_jobs
from models.networks import flatten, initial_weights
from models.spark_application import SparkApplication
from models.spec import TrialSpec

UPDATES = 6
COLD = 2  # that come first, and are slower

# Rows that executors make by themselves, without a file and without Python.
ROWS = """
SELECT CAST(id % {classes} AS DOUBLE) label, array_repeat(CAST(0.5 AS DOUBLE), {inputs}) pixels
FROM range(0, {partitions}, 1, {partitions})
"""


class Exchanges:
    """Each is measured once for an application, network and partitions: a trial costs nothing after the first."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], float] = {}

    def seconds(self, application: SparkApplication, spec: TrialSpec) -> float:
        of = application.session.sparkContext.applicationId
        key = (of, spec.network.sizes, spec.resources.partitions)
        if key not in self._known:
            self._known[key] = _measured(application, spec)
        return self._known[key]


def _measured(application: SparkApplication, spec: TrialSpec) -> float:
    from pyspark.ml.classification import MultilayerPerceptronClassifier
    from pyspark.ml.functions import array_to_vector
    from pyspark.ml.linalg import Vectors

    session, network = application.session, spec.network
    session.sparkContext.setJobGroup(EXCHANGE, "yarnstick")
    made = ROWS.format(classes=network.classes, inputs=network.inputs, partitions=spec.resources.partitions or 1)
    rows = session.sql(made).select("label", array_to_vector("pixels").alias("features"))
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


def warm_pass(passes: Sequence[Job]) -> float:
    """The median of the later ones, each until the next begins: broadcast and update lie between two passes."""
    updates = list(spans(passes, [1] * (len(passes) - 1)))
    return statistics.median(span.seconds for span in updates[COLD:])
