"""Executors of unequal speed: one that is stopped half of the time, rows shared evenly, by speed, and around it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.executors import ON_SPARK, descent, random_bytes
from bench.load import quiet
from bench.slowed import python_of_executors, slowed
from models.dataset import Dataset
from models.platforms.torch_spark import TorchSpark
from models.protocol import Surroundings
from models.spec import TrialSpec

STOPPED, RUNNING = 0.01, 0.01  # seconds of each turn of the slow one
BOUND = 0.85  # two thirds, and what moving and noise cost
BEFORE, LATER = 3, 4  # epochs in which rows may still move, and those that count
# To the fast one and to the slow one, around two to one, which is the proportion of their speeds.
SHARES = ("1:1", "3:2", "7:4", "2:1", "9:4", "5:2", "3:1")


def rows(folder: Path) -> list[dict[str, Any]]:
    data = random_bytes(folder)
    spark = TorchSpark(Surroundings(work=folder, spark_conf={}, archives=folder / "eventlogs"))
    try:
        _seconds(spark, data, "even")  # brings up the executors, of which one is slowed
        with quiet("unequal"):
            turned = _turning_slow(spark, data)
            with _slow():
                return list(_rows(spark, data, turned))
    finally:
        spark.close()


def _rows(spark: TorchSpark, data: Dataset, turned_slow: float) -> Iterator[dict[str, Any]]:
    even = _seconds(spark, data, "even")
    by_speed = _seconds(spark, data, "speed")
    yield _row("one of 2 executors at half speed: rows by speed / even", by_speed, even, BOUND)
    yield _row("one that turns slow while it trains: rows by speed / even", turned_slow, even, BOUND)
    turned = _seconds(spark, data, "1:2") < _seconds(spark, data, "2:1")  # the slow one is the first rank
    for shares in SHARES:
        asked = ":".join(reversed(shares.split(":"))) if turned else shares
        yield _row(f"the same: rows {shares} / by speed", _seconds(spark, data, asked), by_speed, None)


def _seconds(spark: TorchSpark, data: Dataset, balance: str) -> float:
    trained = spark.train(_spec(balance, epochs=BEFORE + LATER), data)
    return statistics.median(epoch.seconds for epoch in list(trained)[BEFORE:])


def _turning_slow(spark: TorchSpark, data: Dataset) -> float:
    """Epochs of executors that began as equals, once rows have had time to move."""
    seconds = []
    with ExitStack() as stack:
        for epoch in spark.train(_spec("speed", epochs=2 * BEFORE + LATER), data):
            seconds.append(epoch.seconds)
            if len(seconds) == BEFORE:
                stack.enter_context(_slow())
    return statistics.median(seconds[-LATER:])


def _spec(balance: str, *, epochs: int) -> TrialSpec:
    spec = descent("torch-spark", replace(ON_SPARK, balance=balance), "float32")
    return replace(spec, hyperparameters=replace(spec.hyperparameters, epochs=epochs))


def _row(name: str, seconds: float, against: float, bound: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "ratio": seconds / against,
        "bound": bound,
        "unit_seconds": seconds,
        "against_seconds": against,
    }


def _slow() -> AbstractContextManager[None]:
    """One of our executors is stopped half of the time."""
    return slowed(python_of_executors()[0], stopped=STOPPED, running=RUNNING)
