"""One rank's way through the epochs, with another that is always of its opinion, or of another one."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

from models.dataset import Dataset
from models.gradients import BLOCKS
from models.ranks.group import Group
from models.ranks.meeting import Meeting, Place
from models.ranks.rank import Rank
from models.ranks.telling import Address
from models.ranks.worker import Errand
from models.spec import Network
from models.training import Training
from store.errors import TrialError
from tests.models.made import packed, spec
from tests.models.ranks.made import TOKEN, Stage, Task


class Agreeing:
    """A group of two, of which the other finds what this one finds."""

    rank, size, host, seconds = 0, 2, "here", 0.0

    def sum(self, gradient: torch.Tensor) -> None:
        gradient *= 2

    def start(self, part: torch.Tensor, *, has_loss: bool = False) -> None:
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

    started = 0

    def sum(self, gradient: torch.Tensor) -> None:
        time.sleep(0.02)
        super().sum(gradient)

    def start(self, part: torch.Tensor, *, has_loss: bool = False) -> None:
        self.started += 1
        super().start(part)


class Busy(Slow):
    """The way takes as long, and nothing of it is waiting: each part costs what the whole does."""

    def start(self, part: torch.Tensor, *, has_loss: bool = False) -> None:
        time.sleep(0.02)
        super().start(part)


def epochs(group: Any, data: Dataset, **changes: object) -> list[Any]:
    told = rank(group, data, **changes).epochs()
    ready = next(told)
    group.started = 0  # what was tried before is not counted
    return [ready, *told]


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


@pytest.mark.parametrize("compression", [None, "bfloat16"])
def test_on_a_slow_network_sums_go_out_while_the_rest_is_found(tmp_path: Path, compression: str | None) -> None:
    group = Slow()
    losses = [each.loss for each in epochs(group, packed(tmp_path), compression=compression)[1:]]
    assert group.started == 3 * (BLOCKS + 1), "the first matrix in blocks, then all that is left"
    assert losses == [each.loss for each in epochs(Agreeing(), packed(tmp_path))[1:]]


def test_a_rank_without_rows_in_a_batch_sums_as_often_as_the_others(tmp_path: Path) -> None:
    """Of 400 rows in batches of two, many a batch has none of ours."""
    group = Slow()
    epochs(group, packed(tmp_path), solver="sgd", batch_size=2, epochs=1)
    assert group.started == 200 * (BLOCKS + 1)


@pytest.mark.parametrize(("group", "gradient"), [(Slow(), "autograd"), (Busy(), "manual")])
def test_what_is_not_worth_hiding_goes_out_at_once(tmp_path: Path, group: Slow, gradient: str) -> None:
    """Though it takes longer than the gradient does."""
    epochs(group, packed(tmp_path), gradient=gradient)
    assert group.started == 0


@pytest.mark.parametrize("compression", [None, "bfloat16"])
@pytest.mark.parametrize("batch_size", [None, 64])
def test_what_is_faster_here_changes_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str | None, batch_size: int | None
) -> None:
    """Three ranks on connections of their own: parts are sent while the rest is found, or all at its end.

    A product of seven rows has other last bits than seven of one.
    """
    data = packed(tmp_path, columns=40)
    changes = {"compression": compression, "batch_size": batch_size, "solver": "sgd" if batch_size else "gd"}
    trained = {}
    for hides in (True, False):
        monkeypatch.setattr(Rank, "_hides", lambda rank, hides=hides: hides)
        trained[hides] = of_three(data, network=Network(sizes=(40, 7, 3)), **changes)
    assert trained[True] == trained[False]
    assert len({weights for _, weights in trained[True]}) == 1


def of_three(data: Dataset, **changes: object) -> list[tuple[list[float | None], bytes]]:
    """What each rank tells of losses, and its last weights."""
    stage = Stage(3)

    def one(number: int) -> tuple[list[float | None], bytes]:
        task: Any = Task(stage, number)
        with closing(Meeting(task, Place.of(task), listeners=1)) as meeting:
            compresses = changes["compression"] is not None
            cpu = torch.device("cpu")
            with closing(Group(meeting, token=TOKEN, device=cpu, stall_seconds=30, compresses=compresses)) as group:
                made = rank(group, data, **changes)
                losses = [told.loss for told in made.epochs() if told.kind == "epoch"]
                weights = torch.cat([each.detach().flatten() for each in made._training.parameters])
                return losses, weights.numpy().tobytes()

    with ThreadPoolExecutor(3) as threads:
        return list(threads.map(one, range(3)))


def test_a_gradient_is_compiled_before_the_ranks_are_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Training] = []
    monkeypatch.setattr(Training, "prepare", lambda training: prepared.append(training))
    told = next(rank(Agreeing(), packed(tmp_path), gradient="compile").epochs())
    assert (told.kind, len(prepared)) == ("ready", 1)
    next(rank(Agreeing(), packed(tmp_path), gradient="manual").epochs())
    assert len(prepared) == 1
