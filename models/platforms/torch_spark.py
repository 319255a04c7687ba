"""The network in PyTorch on the executors that MLlib trains on: a barrier stage, whose ranks sum their gradients."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, ClassVar

from models.dataset import Dataset
from models.gradient_check import unavailable
from models.protocol import Epoch, Surroundings
from models.ranks.balance import SPEED, unfit
from models.ranks.barrier_stage import BarrierStage, ToldByRank
from models.ranks.executor_gpus import lacking
from models.ranks.executor_memory import ExecutorMemory
from models.ranks.worker import Clocks, Errand, Told, Train, train_in_step
from models.spark_application import SparkApplication
from models.spec import TrialSpec
from store.opening import resolved

PYTHON_MIB = 1100  # of Python with torch and pyarrow, without any rows
MEETING_SHARE = 0.8  # of Spark's patience: who waits says more than Spark does
COPIES = 1.25  # of the rows: while they are read there is a row group more


class TorchSpark:
    name: ClassVar[str] = "torch-spark"
    axes: ClassVar[frozenset[str]] = frozenset(
        {
            *("executors", "cores", "memory_mib", "deploy_modes", "devices", "balances"),
            *("solvers", "learning_rates", "initial_weights", "batch_sizes"),
            *("precisions", "gradients", "compressions", "fractions"),
        }
    )
    fixed: ClassVar[dict[str, str]] = {}
    in_python: ClassVar[bool] = True  # its executors need memory beside their heap

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def unavailable(self, spec: TrialSpec) -> str | None:
        if spec.resources.deploy_mode == "cluster" and self._surroundings.yarn is None:
            return "deploy mode cluster needs YARN, and yarnstick.spark.master is not yarn"
        if why := unfit(spec.resources.balance, spec.resources.executors or 1):
            return why
        if spec.hyperparameters.gradient == "compile" and spec.hyperparameters.batch_size is not None:
            return (
                "torch.compile makes a program for each number of rows, and of every mini-batch an executor has "
                "another number; gradients = autograd or manual, or batch_sizes = full"
            )
        if spec.hyperparameters.gradient == "compile" and spec.resources.balance == SPEED:
            return (
                "torch.compile makes a program for each number of rows, and with balances = speed these change from "
                "epoch to epoch; gradients = autograd or manual, or balances = even"
            )
        return lacking(spec.resources, self._surroundings) or unavailable(spec.hyperparameters.gradient, spec.network)

    def train(self, spec: TrialSpec, data: Dataset) -> Iterator[Epoch]:
        for told, common in self._told(spec, data, train=train_in_step, told_as=Told):
            yield _epoch(told, common, spec, data)

    def close(self) -> None:
        SparkApplication.end_shared()

    def _told(
        self, spec: TrialSpec, data: Dataset, *, train: Train, told_as: type[ToldByRank]
    ) -> Generator[tuple[ToldByRank, dict[str, Any]]]:
        """What ranks tell of epochs, with what is the same for all epochs of the trial."""
        application = SparkApplication.shared(spec.resources, self._surroundings)
        submitted = time.perf_counter()
        ready: list[Told] = []
        epochs: list[ToldByRank] = []  # not handed on yet
        prepared = 0.0
        common: dict[str, Any] = {}
        with application.listener() as listener:
            errand = Errand(
                spec=spec,
                data=data,
                reach=resolved(self._surroundings.yarn.reach) if self._surroundings.yarn else None,
                address=listener.address,
                stall_seconds=self._surroundings.stall_seconds,
                resident_mib=max(0.0, self._surroundings.overhead_mib - PYTHON_MIB) / COPIES,
                meeting_seconds=MEETING_SHARE * application.barrier_seconds,
            )
            memory = ExecutorMemory.of(spec.resources, self._surroundings, in_python=True)
            stage = BarrierStage(application, group=spec.slug, memory=memory)
            for told in stage.run(errand, listener, train=train, told_as=told_as):
                if told.kind == "ready":
                    ready.append(told)
                    prepared = time.perf_counter() - submitted - max(each.load_seconds for each in ready)
                else:
                    epochs.append(told)
                # A rank's word may come later than another's first epoch.
                while epochs and len(ready) == spec.resources.executors:
                    if not common:  # Spark is asked once: its event log is long
                        startup_seconds = application.startup_seconds + prepared
                        common = _common(ready, application, data, startup_seconds=startup_seconds)
                    yield epochs.pop(0), common


def _common(
    ready: Sequence[Told], application: SparkApplication, data: Dataset, *, startup_seconds: float
) -> dict[str, Any]:
    executors, cores, shortage = application.granted()
    exchanges = [each.exchange_seconds for each in ready if each.exchange_seconds is not None]
    return {
        "startup_seconds": startup_seconds,
        "load_seconds": max(each.load_seconds for each in ready),
        "bytes_read": data.train_bytes,
        "granted_executors": executors,
        "granted_cores": cores,
        "exchange_seconds": max(exchanges, default=None),
        "blas": " and ".join(sorted({each.blas for each in ready})),
        "versions": ready[0].versions,
        "parameters": ready[0].parameters,
        "note": shortage,
    }


def _epoch(told: Told, common: dict[str, Any], spec: TrialSpec, data: Dataset) -> Epoch:
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
        **common,
    )


def _ledger(slowest: Clocks) -> dict[str, float]:
    """Of the rank that computed longest: the others waited for it, so its time with them is communication alone."""
    none = dict.fromkeys(("gc", "serialization", "driver", "other"), 0.0)
    return {**none, "compute": slowest.compute, "comm": slowest.comm, "scheduling": slowest.moving}
