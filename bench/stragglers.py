"""Executors that stand still now and then: in step, and with a parameter server that lets the others go on."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.executors import EXECUTORS, ON_SPARK, descent, random_bytes
from bench.load import Watch, check_quiet
from bench.slowed import python_of_executors, slowed
from models.dataset import Dataset
from models.platforms.torch_spark import TorchSpark
from models.platforms.torch_spark_async import TorchSparkAsync
from models.protocol import Epoch, Surroundings
from models.spec import TrialSpec

ROUNDS, EPOCHS = 3, 5
FRACTION, BATCH, RATE = 0.5, 256, 0.1
STALENESS = (0, 4, 64)
SLOW = {"stopped": 0.001, "running": 0.001}  # seconds of each turn, of which a batch has several: half the speed
PAUSES = {"stopped": 0.1, "running": 0.1}  # one after another: each stands still a quarter of the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Of training together."""

    name: str
    balance: str = "even"
    staleness: int | None = None  # None: in step, without a server
    shards: int = EXECUTORS  # of the server: each executor has one, and they are alike

    def spec(self, number: int) -> TrialSpec:
        platform = "torch-spark" if self.staleness is None else "torch-spark-async"
        whole = descent(platform, ON_SPARK, "float32")
        if self.staleness is None:
            resources = replace(ON_SPARK, balance=self.balance)
        else:
            resources = replace(ON_SPARK, shards=self.shards)
        changed = replace(
            whole.hyperparameters,
            solver="sgd",
            learning_rate=RATE,
            batch_size=BATCH,
            epochs=EPOCHS,
            staleness=self.staleness,
        )
        return replace(
            whole, resources=resources, hyperparameters=changed, data_fraction=FRACTION, trial=number, seed=number
        )


WAYS = (
    Way(name="in step"),
    Way(name="in step, rows by speed", balance="speed"),
    *(Way(name=f"server, staleness {most}", staleness=most) for most in STALENESS),
    Way(name=f"server on one of them, staleness {STALENESS[-1]}", staleness=STALENESS[-1], shards=1),
)


@dataclass(slots=True)
class Found:
    """Of one way among one kind of executors, over the rounds."""

    epochs: list[Epoch] = field(default_factory=list)  # without the first of each trial
    last: list[Epoch] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return statistics.median(each.seconds for each in self.epochs)


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    data = random_bytes(folder, learnable=True)
    surroundings = Surroundings(work=folder, spark_conf={}, archives=folder / "eventlogs")
    in_step, ahead = TorchSpark(surroundings), TorchSparkAsync(surroundings)
    found = {(kind, way.name): Found() for kind in KINDS for way in _ways(kind)}
    watch = Watch(os.getpid())
    try:
        list(in_step.train(WAYS[0].spec(1), data))  # brings up the executors
        for number in range(1, ROUNDS + 1):
            for kind, slow in KINDS.items():
                for way in _ways(kind)[:: 1 if number % 2 else -1]:
                    platform = in_step if way.staleness is None else ahead
                    with slow(), watch.stretch():
                        _train(platform, way.spec(number), data, found[kind, way.name])
        check_quiet(watch.cores(), "while executors trained")
    finally:
        in_step.close()
        ahead.close()
    for line in _table(found):
        print(line)
    for kind in KINDS:
        together = found[kind, WAYS[0].name].seconds
        for way in _ways(kind)[1:]:
            mine = found[kind, way.name].seconds
            yield {
                "name": f"{kind}: epoch, {way.name} / in step",
                "ratio": mine / together,
                "bound": None,
                "unit_seconds": mine,
                "against_seconds": together,
            }


def _train(platform: TorchSpark, spec: TrialSpec, data: Dataset, found: Found) -> None:
    epochs = list(platform.train(spec, data))
    found.epochs += epochs[1:]
    found.last.append(epochs[-1])


def _one_slow() -> AbstractContextManager[None]:
    return slowed(python_of_executors()[0], **SLOW)


def _pauses() -> AbstractContextManager[None]:
    return slowed(*python_of_executors(), **PAUSES)


ONE_SLOW = "one at half speed"
KINDS = {"executors alike": nullcontext, ONE_SLOW: _one_slow, "pauses in turns": _pauses}


def _ways(kind: str) -> tuple[Way, ...]:
    """Which executor a server has is left to Spark, so nobody could say whether it were the slow one."""
    return tuple(way for way in WAYS if kind != ONE_SLOW or way.shards == EXECUTORS)


def _table(found: dict[tuple[str, str], Found]) -> Iterator[str]:
    """For docs/findings.md."""
    yield "| executors | way | an epoch | mean staleness | largest | divergence | loss | test accuracy |"
    yield f"|---{'|---' * 7}|"
    for (kind, way), each in found.items():
        told = [
            _mean(each.epochs, "mean_staleness", "{:.2f}"),
            str(max((epoch.largest_staleness or 0 for epoch in each.epochs), default=0)),
            _mean(each.last, "divergence", "{:.2%}"),
            _mean(each.last, "loss", "{:.4f}"),
            _mean(each.last, "test_accuracy", "{:.3f}"),
        ]
        yield f"| {kind} | {way} | {each.seconds:.3f} s | {' | '.join(told)} |"


def _mean(epochs: list[Epoch], name: str, shown: str) -> str:
    values = [value for value in (getattr(each, name) for each in epochs) if value is not None]
    return shown.format(statistics.fmean(values)) if values else ""
