"""A parameter server: with a lead of 0 it is training in step; else nobody is too far ahead, and that is measured."""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.dataset import Dataset
from models.platforms.torch_cpu import TorchCpu
from models.ranks.greeting import greeting
from models.ranks.meeting import PeerError
from models.ranks.parameter_server import FIRST_STEP, Refused, Shard, Taken, pieces
from models.ranks.shard_connection import REQUEST, STEP, ShardAddress, Shards, ShardServer, as_bytes
from models.spec import Hyperparameters, Resources, TrialSpec
from store.errors import TrialError
from tests.models import made, reference
from tests.models.ranks.made import HOST, TOKEN, trained

WEIGHTS = torch.arange(10, dtype=torch.float64)
SGD = Hyperparameters(
    solver="sgd", learning_rate=0.5, precision="float64", gradient=None, batch_size=4, epochs=1, staleness=0
)
STEPS = 3  # of an epoch, where a test does not say


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return made.packed(tmp_path_factory.mktemp("packed"))


def spec(*, ranks: int = 2, shards: int = 1, **changes: Any) -> TrialSpec:
    resources = Resources(executors=ranks, cores=1, memory_mib=1024, shards=shards)
    return made.spec("torch-spark-async", resources=resources, **changes)


def shard(*, ranks: int = 2, staleness: int = 0, stall_seconds: float = 30, **changes: Any) -> Shard:
    return Shard(
        WEIGHTS,
        hyperparameters=replace(SGD, staleness=staleness, **changes),
        hosts=[f"node{rank}" for rank in range(ranks)],
        steps=STEPS,
        stall_seconds=stall_seconds,
    )


class Rank:
    """What a shard sees of a rank, each of whose calls is a thread's that may have to wait."""

    def __init__(self, shard: Shard, number: int, threads: ThreadPoolExecutor) -> None:
        self.copy = WEIGHTS.clone()
        self._shard, self._number, self._threads = shard, number, threads
        self._step = FIRST_STEP - 1
        self.waits = threading.Event()

    def take(self, gradient: float = 0.0, *, rows: int = 0, of: int = 4) -> Future[Taken]:
        self._step += 1
        self.waits.clear()
        given = torch.full_like(WEIGHTS, gradient)
        return self._threads.submit(
            self._shard.take, self._number, self._step, given, rows=rows, of=of, copy=self.copy, still=self.waits.set
        )


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def begun(shard: Shard, threads: ThreadPoolExecutor, *, ranks: int = 2) -> list[Rank]:
    """Ranks that have come to step 1."""
    made = [Rank(shard, number, threads) for number in range(ranks)]
    for _ in range(FIRST_STEP, 1):
        for each in [rank.take() for rank in made]:
            each.result()
    return made


@pytest.mark.parametrize(("ranks", "shards"), [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (3, 5)])
def test_in_step_it_is_the_reference(data: Dataset, ranks: int, shards: int) -> None:
    trial = spec(ranks=ranks, shards=shards, precision="float64")
    epochs = trained(trial, data)
    assert [epoch.loss for epoch in epochs] == pytest.approx(reference.losses(trial, data), rel=1e-12)
    for epoch in epochs:
        assert (epoch.updates, epoch.mean_staleness, epoch.largest_staleness, epoch.divergence) == (1, 0, 0, 0)


@pytest.mark.parametrize(("solver", "batch_size"), [("sgd", 64), ("momentum", 64), ("adam", 64), ("sgd", 1)])
def test_in_step_it_takes_the_batches_of_one_process(
    data: Dataset, tmp_path: Path, solver: str, batch_size: int
) -> None:
    changes = {"solver": solver, "batch_size": batch_size, "learning_rate": 0.01, "epochs": 3, "precision": "float64"}
    alone = list(TorchCpu(made.surroundings(tmp_path)).train(made.spec("torch-cpu", **changes), data))
    together = trained(spec(shards=2, **changes), data)
    for one, other in zip(alone, together, strict=True):
        assert other.loss == pytest.approx(one.loss, rel=1e-9)
        assert other.test_accuracy == one.test_accuracy
        assert (other.updates, other.samples) == (one.updates, one.samples)
    assert together[-1].train_accuracy == alone[-1].train_accuracy


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("bfloat16", 0.02)])
def test_in_step_at_every_precision(data: Dataset, precision: str, tolerance: float) -> None:
    trial = spec(shards=3, precision=precision)
    losses = [epoch.loss for epoch in trained(trial, data)]
    assert losses == pytest.approx(reference.losses(trial, data), rel=tolerance)
    assert losses == [epoch.loss for epoch in trained(trial, data)], "the sum is the same every time"


# What momentum and adam remember is so many gradients: with three ranks that is a third of the batches.
@pytest.mark.parametrize(("solver", "tolerance"), [("sgd", 0.05), ("momentum", 0.5), ("adam", 0.5)])
def test_ranks_that_run_ahead_learn_too(data: Dataset, solver: str, tolerance: float) -> None:
    rate = 0.01 if solver == "adam" else 0.1
    trial = spec(ranks=3, shards=2, solver=solver, batch_size=64, learning_rate=rate, epochs=12, staleness=2)
    epochs = trained(trial, data)
    in_step = trained(replace(trial, hyperparameters=replace(trial.hyperparameters, staleness=0)), data)
    assert [epoch.epoch for epoch in epochs] == list(range(1, 13))
    assert epochs[-1].loss == pytest.approx(in_step[-1].loss, rel=tolerance)
    assert epochs[-1].loss is not None
    assert epochs[0].loss is not None
    assert epochs[-1].loss < 0.95 * epochs[0].loss
    for epoch in epochs:
        # 7 batches, of which each rank has rows.
        assert (epoch.passes, epoch.updates, epoch.samples) == (1, 3 * 7, data.train_rows)
        assert epoch.seconds > 0
        assert sum(epoch.ledger.values()) == pytest.approx(epoch.seconds)
        assert epoch.mean_staleness is not None
        assert epoch.largest_staleness is not None
        assert 0 <= epoch.mean_staleness <= epoch.largest_staleness <= (3 - 1) * (2 * 2 + 1)
    assert epochs[-1].train_accuracy is not None


def test_a_rank_without_rows_in_a_batch_updates_nothing(data: Dataset) -> None:
    epochs = trained(spec(solver="sgd", batch_size=1, learning_rate=0.01, epochs=2, staleness=3), data)
    assert [epoch.updates for epoch in epochs] == [data.train_rows] * 2


def test_weights_that_diverge_end_it(data: Dataset) -> None:
    epochs = trained(spec(learning_rate=3e38, epochs=6), data)
    assert [epoch.epoch for epoch in epochs if not math.isfinite(epoch.loss or 0)] == [len(epochs)]
    assert len(epochs) < 6


def test_more_shards_than_weights_are_refused(data: Dataset) -> None:
    with pytest.raises(TrialError, match="shards=500 are more than the 131 weights of the network"):
        trained(spec(shards=500), data)


def test_pieces_are_all_of_the_weights() -> None:
    for shards in range(1, 12):
        parts = pieces(11, shards)
        assert parts[0][0] == 0
        assert parts[-1][1] == 11
        assert all(stop == start for (_, stop), (start, _) in pairwise(parts))


def test_nobody_begins_a_step_before_the_slowest_is_near_enough(threads: ThreadPoolExecutor) -> None:
    server = shard(staleness=2, stall_seconds=5)
    fast, slow = begun(server, threads)
    for _ in range(2):
        fast.take(1.0, rows=2).result(10)  # two ahead
    third = fast.take(1.0, rows=2)
    assert fast.waits.wait(10), "three ahead: it has to wait"
    assert not third.done()
    slow.take(1.0, rows=2).result(10)
    assert third.result(10).closed == 0


def test_a_gradient_counts_by_its_rows(threads: ThreadPoolExecutor) -> None:
    server = shard(staleness=1)
    one, other = begun(server, threads)
    one.take(3.0, rows=3).result(10)
    assert torch.equal(one.copy, WEIGHTS - 0.5 * 3 / 4)
    other.take(8.0, rows=1).result(10)
    assert torch.equal(other.copy, WEIGHTS - 0.5 * (3 + 8) / 4)


def test_in_step_nothing_happens_before_all_have_come(threads: ThreadPoolExecutor) -> None:
    server = shard(stall_seconds=5)
    one, other = begun(server, threads)
    first = one.take(3.0, rows=3)
    assert one.waits.wait(10)
    assert torch.equal(server.weights, WEIGHTS)
    other.take(8.0, rows=1).result(10)
    first.result(10)
    assert torch.equal(one.copy, other.copy)
    assert torch.equal(one.copy, WEIGHTS - 0.5 * (3 + 8) / 4)


def test_how_stale_a_gradient_is_and_how_far_from_the_weights(threads: ThreadPoolExecutor) -> None:
    server = shard(staleness=9)
    fast, slow = begun(server, threads)
    assert [fast.take(1.0, rows=2).result(10).staleness for _ in range(STEPS)] == [0, 0, 0], "its own are not counted"
    moved = STEPS * 0.5 * 1.0 / 4
    first, _, last = [slow.take(0.0, rows=2).result(10) for _ in range(STEPS)]
    assert (first.staleness, last.staleness) == (STEPS, 0)
    assert first.distance == 0, "is told at the end of an epoch only"
    assert last.length == pytest.approx(float((WEIGHTS - moved).square().sum()))
    taken = [fast.take(0.0, rows=0).result(10) for _ in range(STEPS)]
    assert taken[0].staleness == STEPS
    assert last.distance == 0


def test_the_distance_is_from_what_the_rank_was_sent(threads: ThreadPoolExecutor) -> None:
    server = shard(staleness=9)
    fast, slow = begun(server, threads)
    for _ in range(STEPS - 1):
        slow.take(0.0, rows=2).result(10)
    fast.take(8.0, rows=4).result(10)
    last = slow.take(0.0, rows=2).result(10)
    assert last.distance == pytest.approx(len(WEIGHTS) * (0.5 * 8 / 4) ** 2)


def test_an_epoch_is_closed_when_the_last_rank_has_ended_it(threads: ThreadPoolExecutor) -> None:
    server = shard(staleness=9)
    fast, slow = begun(server, threads)
    for _ in range(STEPS):
        assert fast.take(4.0, rows=1).result(10).closed == 0
    for _ in range(STEPS - 1):
        assert slow.take(0.0, rows=1).result(10).closed == 0
    assert slow.take(0.0, rows=1).result(10).closed == 1
    at_the_end = server.weights.clone()
    assert fast.take(4.0, rows=1).result(10).closed == 1
    for _ in range(2):
        assert torch.equal(server.look(1, still=lambda: None), at_the_end)
    assert not torch.equal(server.weights, at_the_end)


def test_who_is_waited_for_too_long_is_named(threads: ThreadPoolExecutor) -> None:
    server = shard(stall_seconds=2)
    one, _ = begun(server, threads)
    with pytest.raises(Refused, match=r"on node1 \(rank 1\) was waited for longer than 2 s .*: look at that node"):
        one.take(1.0, rows=1).result(10)
    with pytest.raises(Refused, match="node1"):
        server.look(1, still=lambda: None)


def test_a_step_out_of_order_is_refused(threads: ThreadPoolExecutor) -> None:
    server = shard(ranks=1)
    (one,) = begun(server, threads, ranks=1)
    one._step += 1
    with pytest.raises(Refused, match="executor on node0 sent step 2 after step 0"):
        one.take(rows=1).result(10)


class Served:
    """Shards that listen on loopback, and ranks that are connected to them."""

    def __init__(self, ends: ExitStack, *, shards: int = 2, staleness: int = 0, stall_seconds: float = 5) -> None:
        self.parts = pieces(len(WEIGHTS), shards)
        self.addresses: list[ShardAddress] = []
        self._ends = ends
        self._stall_seconds = stall_seconds
        for start, stop in self.parts:
            piece = Shard(
                WEIGHTS[start:stop],
                hyperparameters=replace(SGD, staleness=staleness),
                hosts=["node0", "node1"],
                steps=STEPS,
                stall_seconds=stall_seconds,
            )
            listener = socket.create_server((HOST, 0))
            self.addresses.append(ShardAddress(host=HOST, port=listener.getsockname()[1], node="node0"))
            ends.callback(ShardServer(listener, piece, token=TOKEN, stall_seconds=stall_seconds).close)

    def rank(self, number: int) -> Shards:
        connected = Shards(
            self.addresses,
            WEIGHTS.clone(),
            pieces=self.parts,
            rank=number,
            node=f"node{number}",
            token=TOKEN,
            stall_seconds=self._stall_seconds,
        )
        self._ends.callback(connected.close)
        return connected


def stepped(rank: Shards, step: int, gradient: float) -> list[Taken]:
    return rank.step(step, torch.full_like(WEIGHTS, gradient), rows=2, of=4)


def test_ranks_and_shards_over_sockets(threads: ThreadPoolExecutor) -> None:
    with ExitStack() as ends:
        served = Served(ends, shards=3)
        ranks = [served.rank(0), served.rank(1)]
        for step in range(FIRST_STEP, 2 + STEPS):
            for each in [threads.submit(stepped, rank, step, 1.0) for rank in ranks]:
                assert len(each.result(10)) == 3
        steps = 2 + STEPS - FIRST_STEP
        assert torch.allclose(ranks[0].copy, WEIGHTS - steps * 0.5 * 2 / 4)
        assert torch.equal(ranks[0].copy, ranks[1].copy)
        seen = torch.empty_like(WEIGHTS)
        ranks[0].look(1, seen)
        assert torch.allclose(seen, WEIGHTS - (STEPS + 1 - FIRST_STEP) * 0.5 * 2 / 4)


def test_a_slow_rank_that_goes_on_is_waited_for(threads: ThreadPoolExecutor) -> None:
    """However long it takes: a shard that waits says that it lives, and only who does nothing at all is given up."""
    with ExitStack() as ends:
        served = Served(ends, shards=1, staleness=STEPS, stall_seconds=3)
        fast, slow = served.rank(0), served.rank(1)
        for step in range(FIRST_STEP, 1):
            first = threads.submit(stepped, fast, step, 0.0)
            stepped(slow, step, 0.0)
            first.result(10)
        for step in range(1, 1 + STEPS):
            stepped(fast, step, 1.0)
        seen = torch.empty_like(WEIGHTS)
        looked = threads.submit(fast.look, 1, seen)
        for step in range(1, 1 + STEPS):
            time.sleep(1.2)  # all three are longer than 3 s
            stepped(slow, step, 1.0)
        looked.result(10)
        assert torch.allclose(seen, slow.copy)


def test_a_rank_that_goes_without_a_word_is_missed(threads: ThreadPoolExecutor) -> None:
    with ExitStack() as ends:
        served = Served(ends)
        one, other = served.rank(0), served.rank(1)
        stays = threads.submit(stepped, one, FIRST_STEP, 1.0)
        other.close()
        with pytest.raises(PeerError, match=r"executor on node1 \(rank 1\) is gone"):
            stays.result(10)


def test_a_rank_that_took_leave_is_not_missed(threads: ThreadPoolExecutor) -> None:
    with ExitStack() as ends:
        served = Served(ends, staleness=30)
        one, other = served.rank(0), served.rank(1)
        for step in range(FIRST_STEP, STEPS + 1):
            first = threads.submit(stepped, one, step, 1.0)
            stepped(other, step, 1.0)
            first.result(10)
        other.leave()
        other.close()
        assert stepped(one, STEPS + 1, 1.0)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        greeting("b" * 64, 1),  # another token
        greeting(TOKEN, 1)[:32],  # half a greeting
        greeting(TOKEN, 0),  # a rank that is there
        greeting(TOKEN, 2),
        greeting(TOKEN, -1),
    ],
)
def test_a_stranger_gets_no_answer_and_changes_nothing(threads: ThreadPoolExecutor, said: bytes) -> None:
    with ExitStack() as ends:
        served = Served(ends, shards=1)
        ranks = [served.rank(0), served.rank(1)]
        for step in (FIRST_STEP, FIRST_STEP + 1):
            for each in [threads.submit(stepped, rank, step, 1.0) for rank in ranks]:
                each.result(10)
            assert heard(served, said) == b""
        assert torch.allclose(ranks[0].copy, WEIGHTS - 2 * 0.5 * 2 / 4)


def test_who_does_not_know_the_token_is_no_rank(threads: ThreadPoolExecutor) -> None:
    """Not even before that rank is there."""
    with ExitStack() as ends:
        served = Served(ends, shards=1)
        gradient = REQUEST.pack(STEP, FIRST_STEP, 2, 4) + as_bytes(torch.ones_like(WEIGHTS)).tobytes()
        for rank in (0, 1):
            assert heard(served, greeting("b" * 64, rank) + gradient) == b""
        ranks = [served.rank(0), served.rank(1)]
        for each in [threads.submit(stepped, rank, FIRST_STEP, 1.0) for rank in ranks]:
            each.result(10)
        assert torch.allclose(ranks[0].copy, WEIGHTS - 0.5 * 2 / 4)


def heard(served: Served, said: bytes) -> bytes:
    """What a shard answers, or nothing where it hangs up."""
    with suppress(OSError), socket.create_connection((HOST, served.addresses[0].port)) as stranger:
        stranger.sendall(said)
        stranger.shutdown(socket.SHUT_WR)
        return stranger.recv(1)
    return b""


@pytest.fixture(scope="module")
def strange() -> Iterator[Served]:
    with ExitStack() as ends:
        yield Served(ends, shards=1)


@given(said=st.binary(max_size=200))
def test_no_bytes_of_a_stranger_reach_a_shard(strange: Served, said: bytes) -> None:
    assert heard(strange, said) == b""


SHARD_ALONE = """
import socket, torch
from models.ranks.parameter_server import Shard
from models.ranks.shard_connection import ShardServer
from models.spec import Hyperparameters
listener = socket.create_server(("127.0.0.1", 0))
sgd = Hyperparameters(solver="sgd", learning_rate=0.5, precision="float64", gradient=None, batch_size=4, epochs=1)
shard = Shard(torch.arange(10).double(), hyperparameters=sgd, hosts=["node0"], steps=3, stall_seconds=60)
server = ShardServer(listener, shard, token="a" * 64, stall_seconds=60)
print(listener.getsockname()[1], flush=True)
input()
"""


@pytest.mark.parametrize(
    ("signal_", "why"),
    [
        (signal.SIGSTOP, r"longer than 1 s \(yarnstick.spark.stall_seconds\): timed out"),
        (signal.SIGKILL, "lost a shard"),
    ],
)
def test_a_shard_that_stands_still_or_dies_is_given_up(signal_: signal.Signals, why: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SHARD_ALONE],
        cwd=Path(__file__).parent.parent.parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            at = ShardAddress(host=HOST, port=int(process.stdout.readline()), node="node0")
            rank = Shards([at], WEIGHTS.clone(), pieces=[(0, 10)], rank=0, node="node0", token=TOKEN, stall_seconds=1)
            with closing(rank):
                assert stepped(rank, FIRST_STEP, 1.0)
                process.send_signal(signal_)
                # Its threads go on for a moment; it is not reaped here.
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                with pytest.raises(PeerError, match=why):
                    stepped(rank, FIRST_STEP + 1, 1.0)
        finally:
            process.kill()
