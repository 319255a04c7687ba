"""Ranks with a parameter server as threads of this process, without Spark: what they need of it is little."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from models.dataset import Dataset
from models.platforms.torch_spark_async import whole_epochs
from models.protocol import Epoch
from models.ranks.async_worker import Pass, train_ahead
from models.ranks.meeting import Meeting, Place
from models.ranks.telling import Address
from models.ranks.worker import Errand, Told
from models.spec import TrialSpec

TOKEN = "a" * 64
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Info:
    address: str


class Stage:
    """What all tasks have in common."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.words = [""] * size
        self.met = threading.Barrier(size, timeout=30)


class Task:
    """As BarrierTaskContext, with one task for each executor."""

    def __init__(self, stage: Stage, rank: int) -> None:
        self._stage = stage
        self._rank = rank

    def getTaskInfos(self) -> list[Info]:  # noqa: N802 Spark's name
        return [Info(f"{HOST}:{1000 + rank}") for rank in range(self._stage.size)]

    def partitionId(self) -> int:  # noqa: N802 Spark's name
        return self._rank

    def allGather(self, word: str) -> list[str]:  # noqa: N802 Spark's name
        self._stage.words[self._rank] = word
        self._stage.met.wait()
        return list(self._stage.words)


def trained(spec: TrialSpec, data: Dataset, *, stall_seconds: float = 30) -> list[Epoch]:
    """What the driver would make of what all ranks tell."""
    stage = Stage(spec.resources.executors or 1)
    errand = Errand(
        spec=spec,
        data=data,
        reach=None,
        address=Address(host=HOST, port=0, token=TOKEN),
        stall_seconds=stall_seconds,
        resident_mib=100,
    )

    def one(rank: int) -> list[Told]:
        task: Any = Task(stage, rank)
        place = Place.of(task)
        meeting = Meeting(task, place, listeners=errand.listeners(place))
        try:
            return list(train_ahead(meeting, errand))
        finally:
            meeting.close()

    with ThreadPoolExecutor(stage.size) as threads:
        every = list(threads.map(one, range(stage.size)))

    def passes() -> Iterator[Pass]:
        for told in (told for rank in every for told in rank):
            if isinstance(told, Pass):
                yield told

    return list(whole_epochs(((told, {}) for told in passes()), spec, data))
