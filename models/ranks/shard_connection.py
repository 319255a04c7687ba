"""The way between ranks and shards of a parameter server: a TCP connection each, numbers as they lie in memory.

Who connects shows that it knows the token before anything else is read; nothing is pickled.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass

import torch
from torch import Tensor

from models.ranks.accepting import Accepting
from models.ranks.greeting import SIZE, greeted, greeting
from models.ranks.meeting import PeerError, first_line
from models.ranks.parameter_server import Refused, Shard, Taken
from models.ranks.telling import CONNECT_SECONDS, TOKEN_SECONDS

REQUEST = struct.Struct("<cqqq")  # what, step or epoch, rows, rows of the batch
ANSWER = struct.Struct("<cqqdddq")  # what, then Taken's, then bytes that follow
STEP, LOOK, LEAVE = b"s", b"l", b"e"
REFUSED, STILL = (
    b"r",
    b"w",
)  # a sentence follows; an answer is to come: a shard that waits for others says that it lives


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardAddress:
    host: str
    port: int
    node: str  # as Spark calls it


class ShardServer:
    """Where a shard listens, in threads of the process that has it."""

    def __init__(self, listener: socket.socket, shard: Shard, *, token: str, stall_seconds: float) -> None:
        self._accepting = Accepting(listener)
        self._shard = shard
        self._token = token
        self._stall_seconds = stall_seconds
        self._peers: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True, name="shard").start()

    def close(self) -> None:
        """Threads that wait in recv() are woken by a shutdown only."""
        self._shard.stop()
        self._accepting.close()
        for each in self._peers:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        for peer, _ in self._accepting:
            self._peers.append(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True, name="shard-of-one").start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, suppress(OSError):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.settimeout(TOKEN_SECONDS)
            shown = bytearray(SIZE)
            _receive(peer, memoryview(shown))
            rank = greeted(shown, self._token)
            if rank is None or not self._shard.greet(rank):
                return  # a stranger
            try:
                self._answer(peer, rank)
            finally:
                self._shard.lose(rank)

    def _answer(self, peer: socket.socket, rank: int) -> None:
        gradient, copy = torch.empty_like(self._shard.weights), self._shard.weights.clone()
        request = bytearray(REQUEST.size)

        def still() -> None:
            peer.sendall(_answer(STILL, 0, Taken()))

        while True:
            peer.settimeout(None)  # a rank computes as long as it takes
            _receive(peer, memoryview(request))
            peer.settimeout(self._stall_seconds)
            what, which, rows, of = REQUEST.unpack(request)
            try:
                if what == STEP:
                    _receive(peer, as_bytes(gradient))
                    taken = self._shard.take(rank, which, gradient, rows=rows, of=of, copy=copy, still=still)
                    _send(peer, what, copy, taken)
                elif what == LOOK:
                    _send(peer, what, self._shard.look(which, still=still), Taken())
                else:
                    self._shard.leave(rank)
                    return
            except Refused as refused:
                why = str(refused).encode()
                peer.sendall(_answer(REFUSED, len(why), Taken()) + why)
                return


class Shards:
    """One rank's view of all shards: its own copy of the weights, and what it sends and is sent."""

    def __init__(
        self,
        addresses: Sequence[ShardAddress],
        weights: Tensor,
        *,
        pieces: Sequence[tuple[int, int]],  # of the weights, one a shard
        rank: int,
        node: str,
        token: str,
        stall_seconds: float,
    ) -> None:
        self.copy = weights
        self._addresses = addresses
        self._pieces = pieces
        self._node = node
        self._stall_seconds = stall_seconds
        self._sockets: list[socket.socket] = []
        for at in addresses:
            try:
                peer = socket.create_connection((at.host, at.port), timeout=CONNECT_SECONDS)
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                peer.settimeout(stall_seconds)
                peer.sendall(greeting(token, rank))
            except OSError as error:
                self.close()
                raise PeerError(
                    f"executor on {node} did not reach a shard of the weights on {at.node} ({at.host}:{at.port}): "
                    f"{first_line(error)}; nodes must reach each other on all ports"
                ) from None
            self._sockets.append(peer)

    def step(self, step: int, gradient: Tensor, *, rows: int, of: int) -> list[Taken]:
        """Send a gradient, summed over `rows` of the `of` rows of its batch; `copy` is then what to go on with."""
        self._ask(STEP, step, rows=rows, of=of, gradient=gradient)
        return self._answers(STEP, self.copy)

    def look(self, epoch: int, weights: Tensor) -> None:
        """The weights as they were when the last rank had ended an epoch."""
        self._ask(LOOK, epoch)
        self._answers(LOOK, weights)

    def leave(self) -> None:
        self._ask(LEAVE, 0)

    def close(self) -> None:
        for each in self._sockets:
            each.close()

    def _ask(self, what: bytes, which: int, *, rows: int = 0, of: int = 0, gradient: Tensor | None = None) -> None:
        for shard, (start, stop) in enumerate(self._pieces):
            try:
                self._sockets[shard].sendall(REQUEST.pack(what, which, rows, of))
                if gradient is not None:
                    self._sockets[shard].sendall(as_bytes(gradient[start:stop]))
            except OSError as error:
                # What it said before it went is more than that it went.
                self._answer(shard, what, self.copy[start:stop].clone())
                raise self._lost(shard, error) from None

    def _answers(self, what: bytes, weights: Tensor) -> list[Taken]:
        return [self._answer(shard, what, weights[start:stop]) for shard, (start, stop) in enumerate(self._pieces)]

    def _answer(self, shard: int, what: bytes, piece: Tensor) -> Taken:
        header = bytearray(ANSWER.size)
        found = STILL
        try:
            while found == STILL:
                _receive(self._sockets[shard], memoryview(header))
                found, *numbers, size = ANSWER.unpack(header)
            if found == REFUSED:
                why = bytearray(size)
                _receive(self._sockets[shard], memoryview(why))
                raise PeerError(why.decode())
            if found != what or size != piece.nbytes:
                raise PeerError(f"a shard on {self._addresses[shard].node} answered {size} bytes of {found!r}")
            _receive(self._sockets[shard], as_bytes(piece))
        except OSError as error:
            raise self._lost(shard, error) from None
        return Taken(*numbers)

    def _lost(self, shard: int, error: OSError) -> PeerError:
        return PeerError(
            f"executor on {self._node} lost a shard of the weights on {self._addresses[shard].node}, or waited for it "
            f"longer than {self._stall_seconds:g} s (yarnstick.spark.stall_seconds): {first_line(error)}"
        )


def as_bytes(tensor: Tensor) -> memoryview:
    return tensor.numpy().data.cast("B")


def _answer(what: bytes, size: int, taken: Taken) -> bytes:
    return ANSWER.pack(what, *astuple(taken), size)


def _send(peer: socket.socket, what: bytes, weights: Tensor, taken: Taken) -> None:
    peer.sendall(_answer(what, weights.nbytes, taken))
    peer.sendall(as_bytes(weights))


def _receive(peer: socket.socket, room: memoryview) -> None:
    """All of it, or an error."""
    while room:
        count = peer.recv_into(room)
        if not count:
            raise ConnectionResetError("the connection has ended")
        room = room[count:]
