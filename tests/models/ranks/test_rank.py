"""One rank's way through the epochs, with another that is always of its opinion, or of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from models.dataset import Dataset
from models.ranks.rank import Rank
from models.ranks.telling import Address
from models.ranks.worker import Errand
from store.errors import TrialError
from tests.models.made import packed, spec


class Agreeing:
    """A group of two, of which the other finds what this one finds."""

    rank, size, host, seconds = 0, 2, "here", 0.0

    def sum(self, gradient: torch.Tensor) -> None:
        gradient *= 2

    def start(self, part: torch.Tensor) -> None:
        part *= 2

    def finish(self) -> None: ...

    def gather(self, numbers: list[float]) -> list[list[float]]:
        return [numbers, numbers]


class Disagreeing(Agreeing):
    """The other's weights are not the same: the last number that ranks tell of an epoch is their checksum."""

    def gather(self, numbers: list[float]) -> list[list[float]]:
        return [numbers, [*numbers[:-1], numbers[-1] + 1]]


def epochs(group: Any, data: Dataset) -> list[Any]:
    errand = Errand(
        spec=spec("torch-spark", epochs=3, gradient="manual"),
        data=data,
        reach=None,
        address=Address(host="127.0.0.1", port=0, token="a" * 64),
        stall_seconds=1,
        resident_mib=100,
    )
    return list(Rank(group, errand, torch.device("cpu")).epochs())


def test_ranks_that_agree_tell_each_epoch(tmp_path: Path) -> None:
    ready, *told = epochs(Agreeing(), packed(tmp_path))
    assert ready.kind == "ready"
    assert [each.epoch for each in told] == [1, 2, 3]


def test_weights_that_differ_between_executors_end_it(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="after epoch 1 the weights differ between executors"):
        epochs(Disagreeing(), packed(tmp_path))
