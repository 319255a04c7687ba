"""How ranks find the shards of a parameter server: shard k is in the process of rank k modulo ranks.

It listens there on the address that Spark knows the node by, on a port that the system chose; all are handed round.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import msgspec

from models.group import Place, first_line, gathered, own_address
from models.learner import Learner
from models.parameter_server import Shard, pieces
from models.shard_connection import ShardAddress, Shards, ShardServer
from models.worker import Errand
from store.errors import TrialError

RANKS_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class Announced:
    """What a rank says of itself to all."""

    rank: int
    node: str
    host: str
    ports: list[int]  # of its shards, in order


def meet(context: Any, place: Place, errand: Errand, learner: Learner, ends: ExitStack) -> tuple[Shards, list[Shard]]:
    """The way to all shards, and those of this rank; what was opened is closed at the end."""
    spec = errand.spec
    parts = pieces(len(learner.weights), spec.resources.shards or 1)
    if any(start == stop for start, stop in parts):
        raise TrialError(f"shards={len(parts)} are more than the {len(learner.weights)} weights of the network")
    own = range(place.rank, len(parts), place.size)
    listeners = [ends.enter_context(_listener(place)) for _ in own]
    every = _announced(context, place, listeners)
    shards = [
        Shard(
            learner.weights[slice(*parts[number])],
            hyperparameters=spec.hyperparameters,
            hosts=[each.node for each in every],
            steps=learner.steps(errand.data.rows(spec.data_fraction)),
            stall_seconds=errand.stall_seconds,
        )
        for number in own
    ]
    for shard, listener in zip(shards, listeners, strict=True):
        server = ShardServer(listener, shard, token=errand.address.token, stall_seconds=errand.stall_seconds)
        ends.callback(server.close)
    holders = [every[number % place.size] for number in range(len(parts))]
    connected = Shards(
        [
            ShardAddress(host=each.host, port=each.ports[number // place.size], node=each.node)
            for number, each in enumerate(holders)
        ],
        learner.weights,
        pieces=parts,
        rank=place.rank,
        node=place.host,
        token=errand.address.token,
        stall_seconds=errand.stall_seconds,
    )
    ends.callback(connected.close)
    return connected, shards


def _listener(place: Place) -> socket.socket:
    try:
        return socket.create_server(
            (own_address(place.host, others=place.others), 0), backlog=max(RANKS_AT_ONCE, place.size)
        )
    except OSError as error:
        raise TrialError(
            f"executor on {place.host} cannot listen on the address that Spark knows it by ({first_line(error)}); does "
            f"its name lead to it there?"
        ) from None


def _announced(context: Any, place: Place, listeners: list[socket.socket]) -> list[Announced]:
    """Of all ranks, in order. Tasks that do not train say nothing."""
    host = own_address(place.host, others=place.others)
    own = Announced(place.rank, place.host, host, [each.getsockname()[1] for each in listeners])
    if place.size == 1:
        return [own]
    words = gathered(context, msgspec.json.encode(own).decode())
    return sorted(
        (msgspec.json.decode(each, type=Announced) for each in words if each), key=lambda announced: announced.rank
    )
