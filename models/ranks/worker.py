"""What an executor does in a barrier stage: trains on its share of the rows, in step with the others."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from models.dataset import Dataset
from models.ranks.meeting import MEETING_SECONDS, Meeting, PeerError, Place, StallError, StandstillError, skipped
from models.ranks.telling import Address, Teller
from models.ranks.trainer import CLAIM
from models.spec import TrialSpec
from store.errors import TrialError, YarnstickError
from store.opening import Reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What all ranks of a trial are told."""

    spec: TrialSpec
    data: Dataset
    reach: Reach | None  # of the store; None: the data's paths are those of this machine
    address: Address
    stall_seconds: float
    resident_mib: float  # for rows that are kept in memory
    meeting_seconds: float = MEETING_SECONDS

    def listeners(self, place: Place) -> int:
        """On how many ports a rank listens: shard k is in rank k modulo ranks; in step, ranks call each other."""
        shards = self.spec.resources.shards
        return 1 if shards is None else len(range(place.rank, shards, place.size))

    def encode(self) -> bytes:
        return msgspec.json.encode(self, enc_hook=str)

    @classmethod
    def decode(cls, text: bytes) -> Errand:
        return msgspec.json.decode(text, type=cls, dec_hook=lambda kind, given: kind(given))


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """One rank's seconds of one epoch."""

    seconds: float
    comm: float  # with the others, waiting for them included
    moving: float  # rows to where they are trained faster, before the epoch
    cpu_seconds: float
    peak_memory_mib: float
    rows: float  # of its share

    @property
    def compute(self) -> float:
        return self.seconds - self.comm - self.moving


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A line to the driver."""

    kind: str  # ready | epoch | failed
    rank: int
    host: str = ""
    # ready
    load_seconds: float = 0.0
    threads: int = 0
    parameters: int = 0
    blas: str = ""
    exchange_seconds: float | None = None
    versions: dict[str, str] = field(default_factory=dict)
    # epoch, by rank 0 for all
    epoch: int = 0
    passes: int = 0
    updates: int = 0
    loss: float | None = None  # None: not a number that JSON has
    train_accuracy: float | None = None
    test_accuracy: float | None = None
    clocks: tuple[Clocks, ...] = ()
    # failed
    why: str = ""
    is_own: bool = True  # False: because of another rank
    is_held: bool = False  # by a task that stands still: its executor is of no further use


# What a rank does, as the task of its executor; of a module, so that Spark sends its name and not its code.
Train = Callable[[Meeting, Errand], Iterator[Told]]


def work(train: Train, errand: bytes, rows: Iterable[Any]) -> Iterator[Any]:
    """The task. What it finds out goes to the driver as it happens, and nothing at its end."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    place = Place.of(context)
    place = replace(place, trains=CLAIM.is_mine(context.stageId(), otherwise=place.trains))
    asked = Errand.decode(errand)
    if not place.trains:
        skipped(context, place, seconds=asked.meeting_seconds)
        return iter(())
    meeting = Meeting(context, place, listeners=asked.listeners(place), seconds=asked.meeting_seconds)
    # Before the driver hears of us: while it is loaded we could show no sign of life.
    import torch  # noqa: F401

    teller = Teller(asked.address)
    try:
        _check_whole(place, asked.spec.resources.executors or 1)
        for told in train(meeting, asked):
            teller.tell(msgspec.json.encode(told))
    except Exception as error:
        if not isinstance(error, YarnstickError):
            traceback.print_exc(file=sys.stderr)
        why = str(error) if isinstance(error, YarnstickError) else f"{type(error).__name__}: {_line(error)}"
        failed = Told(
            kind="failed",
            rank=place.rank,
            host=place.host,
            why=why,
            is_own=not isinstance(error, PeerError),
            is_held=isinstance(error, StandstillError | StallError),
        )
        teller.tell(msgspec.json.encode(failed))
        CLAIM.give_up()
        raise
    finally:
        meeting.close()
        teller.close()
    return iter(())


def train_in_step(meeting: Meeting, errand: Errand) -> Iterator[Told]:
    import torch

    from models.ranks.executor_gpus import device
    from models.ranks.group import Group
    from models.ranks.rank import Rank

    torch.set_num_threads(errand.spec.resources.cores or 1)
    own = device(errand.spec.resources, meeting.place.rank)
    compresses = errand.spec.hyperparameters.compression == "bfloat16"
    group = Group(
        meeting,
        token=errand.address.token,
        device=own,
        stall_seconds=errand.stall_seconds,
        compresses=compresses,
    )
    try:
        yield from Rank(group, errand, own).epochs()
    finally:
        group.close()


def _check_whole(place: Place, executors: int) -> None:
    """Rows are shared among those who have a task, and the driver waits for as many as it asked for."""
    if place.size != executors:
        hosts = " and ".join(sorted({place.host, *place.others}))
        raise TrialError(
            f"Spark gave tasks to {place.size} executors, on {hosts}, and executors={executors} train: others have "
            f"another number of cores, or came late; run again, or give each node's executors the same cores"
        )


def _line(error: BaseException) -> str:
    return (str(error).strip() or "no message").splitlines()[0]
