"""How ranks find the shards of a parameter server: shard k is in the process of rank k modulo ranks.

It listens there, on a port that the system chose.
"""

from __future__ import annotations

from contextlib import ExitStack

from models.ranks.learner import Learner
from models.ranks.meeting import Meeting
from models.ranks.parameter_server import Shard, pieces
from models.ranks.shard_connection import ShardAddress, Shards, ShardServer
from models.ranks.worker import Errand
from store.errors import TrialError


def meet(meeting: Meeting, errand: Errand, learner: Learner, ends: ExitStack) -> tuple[Shards, list[Shard]]:
    """The way to all shards, and those of this rank; what was opened is closed at the end."""
    spec, place = errand.spec, meeting.place
    parts = pieces(len(learner.weights), spec.resources.shards or 1)
    if any(start == stop for start, stop in parts):
        raise TrialError(
            f"shards={len(parts)} are more than the {len(learner.weights)} weights of the network; lower shards"
        )
    every = meeting.met()
    shards = [
        Shard(
            learner.weights[slice(*parts[number])],
            hyperparameters=spec.hyperparameters,
            hosts=[each.node for each in every],
            steps=learner.steps(errand.data.rows(spec.data_fraction)),
            stall_seconds=errand.stall_seconds,
        )
        for number in range(place.rank, len(parts), place.size)
    ]
    for shard, listener in zip(shards, meeting.listeners(), strict=False):
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
