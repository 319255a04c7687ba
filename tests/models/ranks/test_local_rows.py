"""A rank's rows, as they are read, moved, and streamed where memory does not hold them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import torch

from models.dataset import Dataset
from models.ranks.local_rows import LABEL_BYTES, LocalRows
from models.ranks.telling import Address
from models.ranks.worker import Errand
from models.rows import Packed, Rows, Streamed
from tests.models.made import packed, spec

CPU = torch.device("cpu")
TESTED = (0, 20)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return packed(tmp_path_factory.mktemp("packed"))


def local(data: Dataset, *, rows: int = 10_000) -> LocalRows:
    """With memory for so many rows."""
    errand = Errand(
        spec=spec("torch-spark"),
        data=data,
        reach=None,
        address=Address(host="127.0.0.1", port=0, token="a" * 64),
        stall_seconds=1,
        resident_mib=rows * (data.row_bytes + LABEL_BYTES) / 2**20,
    )
    return LocalRows(errand, device=CPU)


def labels(rows: Rows) -> Iterator[int]:
    for _, known in rows.chunks():
        yield from known.tolist()


MOVES = [(100, 200), (150, 260), (90, 180), (0, 400), (120, 130), (300, 400), (0, 50)]


@pytest.mark.parametrize("memory", [10_000, 300], ids=["held", "streamed at the largest"])
def test_rows_that_moved_are_those_of_the_new_span(data: Dataset, memory: int) -> None:
    every, known = data.read_train(1.0)
    values = data.values(every, "float32")
    own = local(data, rows=memory)
    own.hold(MOVES[0], TESTED, moves=True)
    rows: Rows = own.train(MOVES[0])
    for before, now in pairwise(MOVES):
        rows = own.moved(rows, before=before, now=now)
        assert len(rows) == now[1] - now[0]
        assert list(labels(rows)) == known[slice(*now)].tolist()
        found = np.concatenate([some.numpy().copy() for some, _ in rows.chunks()])
        assert np.array_equal(found, values[slice(*now)])


def test_what_no_longer_fits_streams(data: Dataset) -> None:
    own = local(data, rows=260)  # twice a hundred, and those of test
    own.hold((0, 100), TESTED, moves=True)
    rows = own.train((0, 100))
    assert isinstance(rows, Packed)
    assert isinstance(own.moved(rows, before=(0, 100), now=(0, 300)), Streamed)


def test_rows_that_may_move_need_room_twice(data: Dataset) -> None:
    own = local(data, rows=150)
    own.hold((0, 100), TESTED)
    assert isinstance(own.train((0, 100)), Packed)
    own.hold((0, 100), TESTED, moves=True)
    assert isinstance(own.train((0, 100)), Streamed)


def test_rows_of_test_are_there_too(data: Dataset) -> None:
    own = local(data)
    own.hold((0, 10), TESTED)
    assert list(labels(own.test(TESTED))) == data.read_test()[1][slice(*TESTED)].tolist()
