"""Ranks that are all connected with each other over TCP: what they sum, and numbers of each for all.

A sum takes two steps: everybody sends each rank one piece of its numbers, which that rank adds; then it sends the sum
of its piece to all. The thread that waits for a sum moves its bytes itself. A library that has threads for that hands
each message from one to the next, and every one of them waits for a processor that computes (docs/findings.md).
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import torch
from torch import Tensor

PIECE = 1 << 18  # bytes that are moved or added at once: both sides can send before they receive


class StalledError(TimeoutError):
    """Some ranks have neither sent nor taken anything for too long."""

    def __init__(self, ranks: Sequence[int], *, seconds: float) -> None:
        super().__init__(f"nothing came for {seconds:g} s")
        self.ranks = ranks


class Mesh:
    """One rank's view of all. Errors are those of sockets: a peer that is gone, or has sent nothing for too long."""

    def __init__(self, peers: Sequence[socket.socket], *, rank: int, stall_seconds: float) -> None:
        """`peers` are the connections to all others, in order of rank."""
        self.rank, self.size = rank, len(peers) + 1
        self._peers = list(peers)
        self._stall_seconds = stall_seconds
        self._room = torch.empty(0, dtype=torch.uint8)
        self._aside = ThreadPoolExecutor(1, "sums")
        for each in self._peers:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.setblocking(False)

    def sum(self, numbers: Tensor, *, sent_as: torch.dtype | None = None) -> None:
        """In place, the same bits on all ranks; with `sent_as` addends and sum are rounded, and no partial sum.

        Added in order of rank, so that a run can be repeated, and no bit depends on who has which piece.
        """
        numbers = numbers.view(-1)
        sent = numbers if sent_as is None else numbers.to(sent_as)
        pieces = sent.tensor_split(self.size)
        own = numbers.tensor_split(self.size)[self.rank]
        others = [piece for rank, piece in enumerate(pieces) if rank != self.rank]
        came = self._received(len(own), sent.dtype)
        addends = [*came[: self.rank], pieces[self.rank], *came[self.rank :]]

        def add(start: int, stop: int) -> None:
            some = slice(start // sent.itemsize, stop // sent.itemsize)
            if sent is not numbers:
                total = own[some].copy_(addends[0][some])
                for each in addends[1:]:
                    total += each[some]
                return
            # Our own piece is its own addend: what comes before it is added up in what came.
            total = addends[0][some]
            for rank, each in enumerate(addends[1:], 1):
                total = torch.add(total, each[some], out=own[some] if rank >= self.rank else total)

        self._exchange([_bytes(each) for each in others], [_bytes(each) for each in came], landed=add)
        if sent is not numbers:
            pieces[self.rank].copy_(own)
        self._exchange([_bytes(pieces[self.rank])] * len(others), [_bytes(each) for each in others])
        if sent is not numbers:
            numbers.copy_(sent)

    def start(self, numbers: Tensor, *, sent_as: torch.dtype | None = None) -> Callable[[], None]:
        """A sum while the caller goes on; what it answers waits for it."""
        return self._aside.submit(self.sum, numbers, sent_as=sent_as).result

    def gather(self, own: Tensor) -> list[Tensor]:
        """Everybody's, by rank; nobody goes on before all have come."""
        every = [torch.empty_like(own) for _ in range(self.size)]
        others = [each for rank, each in enumerate(every) if rank != self.rank]
        self._exchange([_bytes(own)] * len(others), [_bytes(each) for each in others])
        every[self.rank] = own
        return every

    def close(self) -> None:
        """A sum that is still on its way, and waits, is woken by a shutdown only."""
        for each in self._peers:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._aside.shutdown()
        for each in self._peers:
            each.close()

    def _received(self, count: int, dtype: torch.dtype) -> list[Tensor]:
        """Room for so many numbers of each other rank. It is kept: new memory has to be found page by page."""
        size = (self.size - 1) * count * dtype.itemsize
        if len(self._room) < size:
            self._room = torch.empty(size, dtype=torch.uint8)
        return list(self._room[:size].view(dtype).reshape(self.size - 1, count))

    def _exchange(
        self,
        out: Sequence[memoryview],
        into: Sequence[memoryview],
        *,
        landed: Callable[[int, int], None] = lambda start, stop: None,
    ) -> None:
        """With all others at once, a view for each; `landed` is told from where to where all have sent."""
        sent, got, done = [0] * len(out), [0] * len(into), 0
        whole = min(map(len, into))
        while True:
            moved, left = False, [0] * len(self._peers)
            for at, peer in enumerate(self._peers):
                if sent[at] < len(out[at]):
                    count = _send(peer, out[at][sent[at] : sent[at] + PIECE])
                    sent[at] += count
                    moved |= bool(count)
                    left[at] |= select.POLLOUT if sent[at] < len(out[at]) else 0
                if got[at] < len(into[at]):
                    count = _receive(peer, into[at][got[at] : got[at] + PIECE])
                    got[at] += count
                    moved |= bool(count)
                    left[at] |= select.POLLIN if got[at] < len(into[at]) else 0
            there = min(got)
            if there < whole:
                there -= there % PIECE
            if there > done:
                landed(done, there)
                done = there
            if not any(left):
                return
            if not moved:
                self._wait(left)

    def _wait(self, left: Sequence[int]) -> None:
        """Until something can be moved of what is left to do with each peer."""
        ready = select.poll()
        for peer, events in zip(self._peers, left, strict=True):
            if events:
                ready.register(peer, events)
        if not ready.poll(1000 * self._stall_seconds):
            others = [rank for rank in range(self.size) if rank != self.rank]
            late = [rank for rank, events in zip(others, left, strict=True) if events]
            raise StalledError(late, seconds=self._stall_seconds)


def _send(peer: socket.socket, view: memoryview) -> int:
    try:
        return peer.send(view)
    except BlockingIOError:
        return 0


def _receive(peer: socket.socket, room: memoryview) -> int:
    try:
        count = peer.recv_into(room)
    except BlockingIOError:
        return 0
    if not count:
        raise ConnectionResetError("the connection has ended")
    return count


def _bytes(numbers: Tensor) -> memoryview:
    return numbers.view(torch.uint8).numpy().data
