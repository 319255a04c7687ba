"""One of those who train with a parameter server: loads its share of the rows, and does epochs at its own pace."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from models.ranks.async_worker import Pass
from models.ranks.balance import spans
from models.ranks.learner import Batch, Learner
from models.ranks.local_rows import LocalRows
from models.ranks.meeting import Place
from models.ranks.parameter_server import FIRST_STEP, Taken
from models.ranks.peak_memory import forget_peak, peak_mib
from models.ranks.shard_connection import Shards
from models.ranks.worker import Errand, Told
from models.training import Share


class RankAhead:
    def __init__(self, errand: Errand, place: Place, learner: Learner, shards: Shards) -> None:
        forget_peak()
        self._spec = spec = errand.spec
        self._place = place
        self._learner = learner
        self._shards = shards
        self._dtype: torch.dtype = getattr(torch, spec.hyperparameters.precision)
        began = time.perf_counter()
        local = LocalRows(errand, device=learner.weights.device)
        rows = local.count
        own, tested = (spans(count, [1.0] * place.size)[place.rank] for count in (rows, local.data.test_rows))
        local.hold(own, tested)
        self._share = Share(*own, rows)
        self._train = local.train(own)
        self._load_seconds = time.perf_counter() - began
        self._test = local.test(tested)
        self._steps = learner.steps(rows)
        self._seen = torch.empty_like(learner.weights)  # of the shards, at the end of an epoch
        self._evaluation_seconds = self._evaluation_cpu = 0.0

    def told(self) -> Iterator[Told]:
        """Each epoch when all have ended it, which may be some steps after this rank has."""
        yield self._ready()
        begun = self._shards.step(0, self._learner.gradient, rows=0, of=1)[0].seconds  # all begin at once
        ended: list[Pass] = []  # by this rank, and not by all
        passing = _Passing()
        cpu = self._cpu()
        for step, batch in enumerate(self._batches(), 1):
            before = time.perf_counter()
            loss = self._learner.learn(batch, dtype=self._dtype)
            between = time.perf_counter()
            taken = self._shards.step(step, self._learner.gradient, rows=batch.rows, of=batch.of)
            passing.add(taken, rows=batch.rows, loss=loss, compute=between - before, comm=time.perf_counter() - between)
            if step % self._steps == 0:
                cpu, before_cpu = self._cpu(), cpu
                ended.append(
                    Pass(
                        kind="epoch",
                        rank=self._place.rank,
                        epoch=step // self._steps,
                        passes=1,
                        begun=begun,
                        ended=taken[0].seconds - self._evaluation_seconds,
                        cpu_seconds=cpu - before_cpu,
                        peak_memory_mib=peak_mib(),
                        steps=self._steps,
                        divergence=_divergence(taken),
                        **passing.found(),
                    )
                )
                passing = _Passing()
            while ended and ended[0].epoch <= taken[0].closed:
                yield self._judged(ended.pop(0))
        for each in ended:
            yield self._judged(each)

    def _ready(self) -> Told:
        """When an exchange of the weights with nothing computed has been measured; the first waits for all to load."""
        took = []
        for step in range(FIRST_STEP, 0):
            began = time.perf_counter()
            self._shards.step(step, self._learner.gradient, rows=0, of=1)
            took.append(time.perf_counter() - began)
        return Told(
            kind="ready",
            rank=self._place.rank,
            host=self._place.host,
            load_seconds=self._load_seconds,
            threads=torch.get_num_threads(),
            parameters=len(self._learner.weights),
            exchange_seconds=statistics.median(took) if self._place.size > 1 else None,
            blas=f"{self._learner.library} {torch.backends.cpu.get_cpu_capability()}",
            versions={"python": sys.version.partition(" ")[0], "torch": str(torch.__version__)},
        )

    def _batches(self) -> Iterator[Batch]:
        for _ in range(self._spec.hyperparameters.epochs):
            yield from self._learner.batches(self._train, self._share)

    def _judged(self, ended: Pass) -> Pass:
        """With how good the weights were when the last rank had ended this epoch; its own clock stands still."""
        began, cpu = time.perf_counter(), time.process_time()
        self._shards.look(ended.epoch, self._seen)
        is_last = ended.epoch == self._spec.hyperparameters.epochs
        judged = replace(
            ended,
            right_train=self._learner.right(self._train, self._seen) if is_last else None,
            right_test=self._learner.right(self._test, self._seen),
        )
        self._evaluation_seconds += time.perf_counter() - began
        self._evaluation_cpu += time.process_time() - cpu
        return judged

    def _cpu(self) -> float:
        return time.process_time() - self._evaluation_cpu


class _Passing:
    """What a rank finds out in an epoch, gradient by gradient."""

    def __init__(self) -> None:
        self._loss = self._compute = self._comm = self._stale = 0.0
        self._updates = self._largest = 0

    def add(self, taken: Sequence[Taken], *, rows: int, loss: float, compute: float, comm: float) -> None:
        self._loss += loss
        self._compute += compute
        self._comm += comm
        if rows:
            stale = [each.staleness for each in taken]
            self._stale += sum(stale) / len(stale)
            self._largest = max(self._largest, *stale)
            self._updates += 1

    def found(self) -> dict[str, Any]:
        return {
            "loss": self._loss if math.isfinite(self._loss) else None,
            "compute": self._compute,
            "comm": self._comm,
            "stale": self._stale,
            "largest_staleness": self._largest,
            "updates": self._updates,
        }


def _divergence(taken: Sequence[Taken]) -> float:
    """The distance of this rank's weights from those that its last gradient met, over the length of these."""
    length = sum(each.length for each in taken)
    return math.sqrt(sum(each.distance for each in taken) / length) if length else 0.0
