"""What ranks sum over their own connections: real sockets, each rank a thread."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import combinations
from typing import TypeVar

import pytest
import torch
from torch import Tensor

from models.ranks.mesh import PIECE, Mesh

T = TypeVar("T")


@contextmanager
def meshes(size: int, *, stall_seconds: float = 20.0) -> Iterator[list[Mesh]]:
    ways: list[dict[int, socket.socket]] = [{} for _ in range(size)]
    for one, other in combinations(range(size), 2):
        ways[one][other], ways[other][one] = _pair()
    with ExitStack() as ends:
        every = []
        for rank, peers in enumerate(ways):
            every.append(Mesh([peers[each] for each in sorted(peers)], rank=rank, stall_seconds=stall_seconds))
            ends.callback(every[-1].close)
        yield every


def _pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        caller = socket.create_connection(listener.getsockname())
        return caller, listener.accept()[0]


def on_all(every: list[Mesh], what: Callable[[Mesh], T]) -> list[T]:
    with ThreadPoolExecutor(len(every)) as threads:
        return list(threads.map(what, every))


def of(rank: int, count: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(rank), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("size", "count"), [(2, 1), (2, 2), (2, 1_000_001), (3, 2), (3, 100_000), (5, 77_777)])
def test_all_have_the_same_bits_of_the_sum(size: int, count: int, dtype: torch.dtype) -> None:
    numbers = [of(rank, count, dtype) for rank in range(size)]
    expected = torch.stack(numbers).to(torch.float64).sum(0)
    with meshes(size) as every:
        on_all(every, lambda mesh: mesh.sum(numbers[mesh.rank]))
    assert all(torch.equal(each, numbers[0]) for each in numbers)
    torch.testing.assert_close(numbers[0].to(torch.float64), expected, rtol=1e-5, atol=1e-5)


def test_sums_follow_each_other_on_the_same_connections() -> None:
    """Also where one rank is ahead of the others, and where a sum is shorter than the one before it."""
    totals: dict[int, list[float]] = {0: [], 1: [], 2: []}

    def some(mesh: Mesh) -> None:
        for count in (3 * PIECE, 10, 2 * PIECE, 1):
            time.sleep(0.05 * mesh.rank)
            numbers = torch.full((count,), float(mesh.rank))
            mesh.sum(numbers)
            totals[mesh.rank].append(float(numbers.sum()) / count)

    with meshes(3) as every:
        on_all(every, some)
    assert totals == {rank: [3.0] * 4 for rank in range(3)}


@pytest.mark.parametrize("size", [2, 3])
def test_what_is_rounded_on_the_way_is_the_same_for_all(size: int) -> None:
    numbers = [of(rank, 50_001, torch.float32) for rank in range(size)]
    expected = torch.stack(numbers).sum(0)
    with meshes(size) as every:
        on_all(every, lambda mesh: mesh.sum(numbers[mesh.rank], sent_as=torch.bfloat16))
    assert all(torch.equal(each, numbers[0]) for each in numbers)
    assert torch.equal(numbers[0], numbers[0].to(torch.bfloat16).to(torch.float32))
    # Each addend and the sum lose what eight bits do not hold.
    assert (numbers[0] - expected).abs().max() < (size + 1) * 2**-8 * 4
    assert not torch.equal(numbers[0], expected)


@pytest.mark.parametrize("sent_as", [None, torch.bfloat16])
def test_numbers_are_added_in_order_of_rank_whoever_adds_them(sent_as: torch.dtype | None) -> None:
    """1e8 takes in no 1, and -1e8 takes it away again: each other order of these four has another sum."""
    addends = torch.tensor([1.0, 1e8, -1e8, 3.0])
    numbers = [torch.full((10,), float(each)) for each in addends]
    with meshes(4) as every:
        on_all(every, lambda mesh: mesh.sum(numbers[mesh.rank], sent_as=sent_as))
    assert all(each.eq(3).all() for each in numbers)


@pytest.mark.parametrize("sent_as", [None, torch.bfloat16])
def test_parts_have_the_bits_of_the_whole(sent_as: torch.dtype | None) -> None:
    """Of each part others add a number than of the whole."""
    whole = [of(rank, 30_011, torch.float32) for rank in range(3)]
    parts = [each.clone() for each in whole]

    def in_parts(mesh: Mesh) -> None:
        for finished in [mesh.start(part, sent_as=sent_as) for part in parts[mesh.rank].split(7_001)]:
            finished()

    with meshes(3) as every:
        on_all(every, lambda mesh: mesh.sum(whole[mesh.rank], sent_as=sent_as))
        on_all(every, in_parts)
    assert all(torch.equal(one, other) for one, other in zip(whole, parts, strict=True))


def test_a_matrix_is_summed_in_place() -> None:
    matrices = [torch.full((30, 70), float(rank + 1)) for rank in range(2)]
    with meshes(2) as every:
        on_all(every, lambda mesh: mesh.sum(matrices[mesh.rank][10:20]))
    assert all(each[10:20].eq(3).all() for each in matrices)
    assert [float(each[0, 0]) for each in matrices] == [1.0, 2.0]


def test_everybody_has_everybodys_numbers_by_rank() -> None:
    with meshes(4) as every:
        told = on_all(every, lambda mesh: mesh.gather(torch.tensor([float(mesh.rank), 7.0], dtype=torch.float64)))
    assert all([each.tolist() for each in some] == [[rank, 7.0] for rank in range(4)] for some in told)


def test_a_sum_goes_on_while_its_caller_does() -> None:
    """More bytes than sockets hold on their way: it ends only with the other's part in it."""
    numbers = [torch.ones(4_000_000) for _ in range(2)]
    with meshes(2) as (one, other):
        finished = one.start(numbers[0])
        assert numbers[0].sum() < 8_000_000
        other.sum(numbers[1])
        finished()
    assert numbers[0].eq(2).all()


def test_a_peer_that_is_gone_is_missed_at_once() -> None:
    with meshes(3) as (one, other, _):
        other.close()
        with pytest.raises(ConnectionError):
            one.sum(torch.ones(10))


def test_a_peer_that_stands_still_is_waited_for_so_long() -> None:
    began = time.monotonic()
    with meshes(2, stall_seconds=0.5) as (one, _), pytest.raises(TimeoutError, match=r"nothing came for 0\.5 s"):
        one.sum(torch.ones(4_000_000))
    assert time.monotonic() - began > 0.4


def test_a_sum_on_its_way_ends_when_its_rank_leaves() -> None:
    with meshes(2, stall_seconds=60) as (one, _):
        finished = one.start(torch.ones(4_000_000))
        one.close()
        with pytest.raises(OSError, match=r"ended|pipe"):
            finished()
