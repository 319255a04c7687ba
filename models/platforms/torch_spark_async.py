"""The network in PyTorch on Spark's executors, with a parameter server: ranks may be some steps ahead of others."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, ClassVar

from models.dataset import Dataset
from models.platforms.torch_spark import TorchSpark
from models.protocol import Epoch
from models.ranks.async_worker import Pass, train_ahead
from models.spec import TrialSpec


class TorchSparkAsync(TorchSpark):
    name: ClassVar[str] = "torch-spark-async"
    axes: ClassVar[frozenset[str]] = frozenset(
        {
            *("executors", "cores", "memory_mib", "deploy_modes", "shards"),
            *("solvers", "learning_rates", "initial_weights", "batch_sizes"),
            *("precisions", "gradients", "staleness", "fractions"),
        }
    )

    def unavailable(self, spec: TrialSpec) -> str | None:
        if spec.hyperparameters.solver == "l-bfgs":
            return (
                "l-bfgs needs gradients of all rows at the same weights, and a parameter server takes each as it "
                "comes; take gd, sgd, momentum or adam, or platform torch-spark"
            )
        return super().unavailable(spec)

    def train(self, spec: TrialSpec, data: Dataset) -> Iterator[Epoch]:
        with closing(self._told(spec, data, train=train_ahead, told_as=Pass)) as every:
            yield from whole_epochs(every, spec, data)


def whole_epochs(every: Iterable[tuple[Pass, dict[str, Any]]], spec: TrialSpec, data: Dataset) -> Iterator[Epoch]:
    """Each when all ranks have told their part of it; none after weights that are no numbers."""
    parts: dict[int, list[Pass]] = defaultdict(list)
    before: float | None = None
    for told, common in every:
        parts[told.epoch].append(told)
        if len(parts[told.epoch]) < (spec.resources.executors or 1):
            continue
        passes = sorted(parts.pop(told.epoch), key=lambda each: each.rank)
        epoch = _epoch(passes, common, spec, data, before=passes[0].begun if before is None else before)
        before = max(each.ended for each in passes)
        yield epoch
        if epoch.loss is None or not math.isfinite(epoch.loss):
            return


def _epoch(passes: Sequence[Pass], common: dict[str, Any], spec: TrialSpec, data: Dataset, *, before: float) -> Epoch:
    """From when the last rank had ended the epoch before until the last one has ended this."""
    rows = data.rows(spec.data_fraction)
    last = max(passes, key=lambda each: each.ended)
    seconds = last.ended - before
    known = [each.right_train for each in passes if each.right_train is not None]
    losses = [math.nan if each.loss is None else each.loss for each in passes]
    return Epoch(
        epoch=last.epoch,
        seconds=seconds,
        cpu_seconds=sum(each.cpu_seconds for each in passes),
        passes=1,
        updates=last.steps if not spec.hyperparameters.staleness else sum(each.updates for each in passes),
        samples=rows,
        loss=sum(losses) / rows,
        train_accuracy=sum(known) / rows if known else None,
        test_accuracy=sum(each.right_test for each in passes) / data.test_rows,
        ledger=_ledger(last, seconds),
        peak_memory_mib=max(each.peak_memory_mib for each in passes),
        mean_staleness=sum(each.stale for each in passes) / max(1, sum(each.updates for each in passes)),
        largest_staleness=max(each.largest_staleness for each in passes),
        divergence=max(each.divergence for each in passes),
        **common,
    )


def _ledger(last: Pass, seconds: float) -> dict[str, float]:
    """Of the rank that was last, whose pass may have begun before the epoch did: as that splits."""
    compute = seconds * last.compute / max(last.compute + last.comm, 1e-9)
    none = dict.fromkeys(("scheduling", "gc", "serialization", "driver", "other"), 0.0)
    return {**none, "compute": compute, "comm": seconds - compute}
