"""The network in PyTorch on the executors that MLlib trains on: a barrier stage, whose ranks sum their gradients."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

from models.barrier_stage import BarrierStage
from models.dataset import Dataset
from models.protocol import Epoch, Surroundings
from models.spark_application import SparkApplication
from models.spec import TrialSpec
from models.worker import Clocks, Errand, Told

PYTHON_MIB = 1100  # of Python with torch and pyarrow, without any rows
COPIES = 1.25  # of the rows: while they are read there is a row group more


class TorchSpark:
    name: ClassVar[str] = "torch-spark"
    axes: ClassVar[frozenset[str]] = frozenset(
        {
            *("executors", "cores", "memory_mib", "deploy_modes", "devices", "balances"),
            *("solvers", "learning_rates", "batch_sizes", "precisions", "gradients", "compressions", "fractions"),
        }
    )
    fixed: ClassVar[dict[str, str]] = {}
    in_python: ClassVar[bool] = True  # its executors need memory beside their heap

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def unavailable(self, spec: TrialSpec) -> str | None:
        from models.gradients import unavailable

        if spec.resources.deploy_mode == "cluster" and self._surroundings.yarn is None:
            return "deploy mode cluster needs YARN, and yarnstick.spark.master is local-cluster"
        return unavailable(spec.hyperparameters.gradient, spec.network)

    def train(self, spec: TrialSpec, data: Dataset) -> Iterator[Epoch]:
        application = SparkApplication.shared(spec.resources, self._surroundings)
        submitted = time.perf_counter()
        ready: list[Told] = []
        epochs: list[Told] = []  # not handed on yet
        prepared = 0.0
        with application.listener() as listener:
            errand = Errand(
                spec=spec,
                data=data,
                reach=self._surroundings.yarn.reach if self._surroundings.yarn else None,
                address=listener.address,
                stall_seconds=self._surroundings.stall_seconds,
                resident_mib=max(0.0, self._surroundings.overhead_mib - PYTHON_MIB) / COPIES,
            )
            for told in BarrierStage(application, group=spec.slug).run(errand, listener):
                if told.kind == "ready":
                    ready.append(told)
                    prepared = time.perf_counter() - submitted - max(each.load_seconds for each in ready)
                else:
                    epochs.append(told)
                # A rank's word may come later than another's first epoch.
                while epochs and len(ready) == spec.resources.executors:
                    startup_seconds = application.startup_seconds + prepared
                    yield _epoch(epochs.pop(0), ready, application, spec, data, startup_seconds=startup_seconds)

    def close(self) -> None:
        SparkApplication.end_shared()


def _epoch(
    told: Told,
    ready: Sequence[Told],
    application: SparkApplication,
    spec: TrialSpec,
    data: Dataset,
    *,
    startup_seconds: float,
) -> Epoch:
    executors, cores, shortage = application.granted()
    exchanges = [each.exchange_seconds for each in ready if each.exchange_seconds is not None]
    slowest = max(told.clocks, key=lambda clocks: clocks.compute)
    return Epoch(
        epoch=told.epoch,
        seconds=slowest.seconds,
        cpu_seconds=sum(clocks.cpu_seconds for clocks in told.clocks),
        passes=told.passes,
        updates=told.updates,
        samples=told.passes * data.rows(spec.data_fraction),
        loss=math.nan if told.loss is None else told.loss,
        train_accuracy=told.train_accuracy,
        test_accuracy=told.test_accuracy,
        ledger=_ledger(slowest),
        peak_memory_mib=max(clocks.peak_memory_mib for clocks in told.clocks),
        startup_seconds=startup_seconds,
        load_seconds=max(each.load_seconds for each in ready),
        bytes_read=data.train_bytes,
        granted_executors=executors,
        granted_cores=cores,
        exchange_seconds=max(exchanges, default=None),
        blas=" and ".join(sorted({each.blas for each in ready})),
        versions=ready[0].versions,
        parameters=ready[0].parameters,
        note=shortage,
    )


def _ledger(slowest: Clocks) -> dict[str, float]:
    """Of the rank that computed longest: the others waited for it, so its time with them is communication alone."""
    none = dict.fromkeys(("scheduling", "gc", "serialization", "driver", "other"), 0.0)
    return {"compute": slowest.compute, "comm": slowest.comm, **none}
