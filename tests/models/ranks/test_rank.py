"""One rank's way through the epochs, with another that is always of its opinion, or of another one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from models.dataset import Dataset
from models.gradients import BLOCKS
from models.ranks.rank import Rank
from models.ranks.telling import Address
from models.ranks.worker import Errand
from models.training import Training
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


class Slow(Agreeing):
    """The way to the other takes longer than finding the gradient; counts what goes out while the rest is found."""

    def __init__(self) -> None:
        self.started = 0

    def sum(self, gradient: torch.Tensor) -> None:
        time.sleep(0.02)
        super().sum(gradient)

    def start(self, part: torch.Tensor) -> None:
        self.started += 1
        super().start(part)


def epochs(group: Any, data: Dataset, **changes: object) -> list[Any]:
    return list(rank(group, data, **changes).epochs())


def rank(group: Any, data: Dataset, **changes: object) -> Rank:
    errand = Errand(
        spec=spec("torch-spark", **{"epochs": 3, "gradient": "manual", **changes}),
        data=data,
        reach=None,
        address=Address(host="127.0.0.1", port=0, token="a" * 64),
        stall_seconds=1,
        resident_mib=100,
    )
    return Rank(group, errand, torch.device("cpu"))


def test_ranks_that_agree_tell_each_epoch(tmp_path: Path) -> None:
    ready, *told = epochs(Agreeing(), packed(tmp_path))
    assert ready.kind == "ready"
    assert [each.epoch for each in told] == [1, 2, 3]


def test_weights_that_differ_between_executors_end_it(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="after epoch 1 the weights differ between executors"):
        epochs(Disagreeing(), packed(tmp_path))


def test_on_a_slow_network_sums_go_out_while_the_rest_is_found(tmp_path: Path) -> None:
    group = Slow()
    losses = [each.loss for each in epochs(group, packed(tmp_path))[1:]]
    assert group.started == 3 * (BLOCKS + 1), "the first matrix in blocks, then all that is left"
    assert losses == [each.loss for each in epochs(Agreeing(), packed(tmp_path))[1:]]


def test_a_rank_without_rows_in_a_batch_sums_as_often_as_the_others(tmp_path: Path) -> None:
    """Of 400 rows in batches of two, many a batch has none of ours."""
    group = Slow()
    epochs(group, packed(tmp_path), solver="sgd", batch_size=2, epochs=1)
    assert group.started == 200 * (BLOCKS + 1)


def test_what_is_not_worth_hiding_goes_out_at_once(tmp_path: Path) -> None:
    group = Slow()
    epochs(group, packed(tmp_path), gradient="autograd")
    assert group.started == 0


def test_a_gradient_is_compiled_before_the_ranks_are_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Training] = []
    monkeypatch.setattr(Training, "prepare", lambda training: prepared.append(training))
    told = next(rank(Agreeing(), packed(tmp_path), gradient="compile").epochs())
    assert (told.kind, len(prepared)) == ("ready", 1)
    next(rank(Agreeing(), packed(tmp_path), gradient="manual").epochs())
    assert len(prepared) == 1
