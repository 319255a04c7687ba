"""What an executor does in a barrier stage with a parameter server: trains on its rows, at its own pace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from models.ranks.meeting import Meeting
from models.ranks.worker import Errand, Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass(Told):
    """An epoch, as each rank tells it of its own share when all have ended it."""

    begun: float = 0.0  # when all began, by the clock of the first shard, as `ended`
    ended: float = 0.0  # when its last gradient was taken, less what it had spent on evaluation by then
    compute: float = 0.0
    comm: float = 0.0  # with the shards, waiting for others included
    cpu_seconds: float = 0.0
    peak_memory_mib: float = 0.0
    steps: int = 0  # its gradients; `updates` are those of them that had rows
    stale: float = 0.0  # how stale these were, summed
    largest_staleness: int = 0
    divergence: float = 0.0
    right_train: int | None = None
    right_test: int = 0


def train_ahead(meeting: Meeting, errand: Errand) -> Iterator[Told]:
    import torch

    from models.ranks.learner import Learner
    from models.ranks.rank_ahead import RankAhead
    from models.ranks.shard_rendezvous import meet

    torch.set_num_threads(errand.spec.resources.cores or 1)
    learner = Learner(errand.spec)
    with ExitStack() as ends:
        shards, own = meet(meeting, errand, learner, ends)
        yield from RankAhead(errand, meeting.place, learner, shards).told()
        shards.leave()
        for each in own:
            each.wait_until_left()
