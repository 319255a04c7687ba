"""What an executor does in a barrier stage: trains on its share of the rows, in step with the others."""

from __future__ import annotations

import math
import resource
import sys
import time
import traceback
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from models.dataset import Dataset
from models.spec import TrialSpec
from models.telling import Address, Teller
from store.errors import TrialError, YarnstickError
from store.opening import Reach, opened

if TYPE_CHECKING:
    import torch

    from models.group import Group
    from models.rows import Packed, Rows
    from models.training import Training

CACHE = Path("packed")  # in a container's own directory
LABEL_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What all ranks of a trial are told."""

    spec: TrialSpec
    data: Dataset
    reach: Reach | None  # of the store; None: the data's paths are those of this machine
    address: Address
    stall_seconds: float
    resident_mib: float  # for rows that are kept in memory

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
    cpu_seconds: float
    peak_memory_mib: float

    @property
    def compute(self) -> float:
        return self.seconds - self.comm


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


def work(errand: bytes, rows: Iterable[Any]) -> Iterator[Any]:
    """The task. What it finds out goes to the driver as it happens, and nothing at its end."""
    from pyspark import BarrierTaskContext

    from models.group import PeerError, Place

    context = BarrierTaskContext.get()
    place = Place.of(context)
    if not place.trains:
        if place.size > 1:
            context.allGather("")  # of which all tasks have to be part
        return iter(())
    asked = Errand.decode(errand)
    teller = Teller(asked.address)
    try:
        for told in _trained(context, asked):
            teller.tell(msgspec.json.encode(told))
    except Exception as error:
        if not isinstance(error, YarnstickError):
            traceback.print_exc(file=sys.stderr)
        why = str(error) if isinstance(error, YarnstickError) else f"{type(error).__name__}: {_line(error)}"
        failed = Told(kind="failed", rank=place.rank, host=place.host, why=why, is_own=not isinstance(error, PeerError))
        teller.tell(msgspec.json.encode(failed))
        raise
    finally:
        teller.close()
    return iter(())


def _trained(context: Any, errand: Errand) -> Iterator[Told]:
    import torch

    from models.group import Group

    spec = errand.spec
    torch.set_num_threads(spec.resources.cores or 1)
    device = torch.device(spec.resources.device)
    group = Group(context, device=device, stall_seconds=errand.stall_seconds)
    try:
        yield from _epochs(group, errand, device)
    finally:
        group.close()


def _epochs(group: Group, errand: Errand, device: torch.device) -> Iterator[Told]:
    import torch

    spec = errand.spec
    began = time.perf_counter()
    data = _here(errand)
    share = shares(data.rows(spec.data_fraction), group.size)[group.rank]
    tested = shares(data.test_rows, group.size)[group.rank]
    if _fits(data, share[1] - share[0] + tested[1] - tested[0], errand.resident_mib):
        rows: Rows = _rows(data, data.read_span(spec.data_fraction, *share), spec, device)
        load_seconds = time.perf_counter() - began
        test: Rows = _rows(data, data.read_test_span(*tested), spec, device)
    else:
        rows, test = _streamed(data, spec.data_fraction, share, spec), _streamed(data, None, tested, spec)
        load_seconds = time.perf_counter() - began
    training = _training(spec, rows, share, data, group, device)
    yield Told(
        kind="ready",
        rank=group.rank,
        host=group.host,
        load_seconds=load_seconds,
        threads=torch.get_num_threads(),
        parameters=sum(each.numel() for each in training.parameters),
        exchange_seconds=training.exchange_seconds() if group.size > 1 else None,
        blas=f"{'mkl' if torch.backends.mkl.is_available() else 'openblas'} {torch.backends.cpu.get_cpu_capability()}",
        versions={"python": sys.version.partition(" ")[0], "torch": str(torch.__version__)},
    )
    for epoch in range(1, spec.hyperparameters.epochs + 1):
        group.gather([0.0])  # all begin at once
        group.seconds = 0.0
        wall, cpu = time.perf_counter(), time.process_time()
        done = training.epoch()
        seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
        comm = group.seconds
        last = epoch == spec.hyperparameters.epochs or not math.isfinite(done.loss)
        known = [
            float(training.right(rows)) if last else math.nan,
            float(training.right(test)),
            float(_checksum(training.parameters)),
        ]
        every = group.gather([seconds, comm, cpu_seconds, _peak_memory_mib(), *known])
        if len({each[-1] for each in every}) > 1:
            raise TrialError(
                f"after epoch {epoch} the weights differ between executors; do their processors differ? Train with "
                f"equal nodes, or another precision"
            )
        if group.rank == 0:
            yield Told(
                kind="epoch",
                rank=0,
                epoch=epoch,
                passes=done.passes,
                updates=done.updates,
                loss=done.loss if math.isfinite(done.loss) else None,
                train_accuracy=sum(each[4] for each in every) / data.rows(spec.data_fraction) if last else None,
                test_accuracy=sum(each[5] for each in every) / data.test_rows,
                clocks=tuple(
                    Clocks(seconds=each[0], comm=each[1], cpu_seconds=each[2], peak_memory_mib=each[3])
                    for each in every
                ),
            )
        if not math.isfinite(done.loss):
            return


def shares(rows: int, size: int) -> list[tuple[int, int]]:
    """From where to where each rank has the rows."""
    bounds = [rows * rank // size for rank in range(size + 1)]
    return list(pairwise(bounds))


def _here(errand: Errand) -> Dataset:
    if errand.reach is None:
        return errand.data
    return errand.data.local_to(opened(replace(errand.reach, cache=CACHE)), errand.spec.data)


def _rows(data: Dataset, packed: tuple[Any, Any], spec: TrialSpec, device: torch.device) -> Packed:
    import torch

    from models.rows import Packed

    features, labels = (torch.from_numpy(each).to(device) for each in packed)
    return Packed(features, labels, data, dtype=getattr(torch, spec.hyperparameters.precision))


def _fits(data: Dataset, rows: int, resident_mib: float) -> bool:
    return rows * (data.row_bytes + LABEL_BYTES) <= resident_mib * 2**20


def _streamed(data: Dataset, fraction: float | None, span: tuple[int, int], spec: TrialSpec) -> Rows:
    import torch

    from models.rows import Streamed

    return Streamed(data, fraction, span, dtype=getattr(torch, spec.hyperparameters.precision))


def _training(
    spec: TrialSpec, rows: Rows, share: tuple[int, int], data: Dataset, group: Group, device: torch.device
) -> Training:
    from models.networks import trained_network
    from models.training import Share, Training

    parameters, forward = trained_network(spec, device)
    return Training(
        network=spec.network,
        parameters=parameters,
        forward=forward,
        hyperparameters=spec.hyperparameters,
        rows=rows,
        seed=spec.seed,
        share=Share(*share, data.rows(spec.data_fraction)),
        together=group,
    )


def _checksum(parameters: list[torch.Tensor]) -> int:
    sum_ = 0
    for each in parameters:
        sum_ = zlib.crc32(each.detach().cpu().contiguous().view(-1).numpy().data, sum_)
    return sum_


def _peak_memory_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _line(error: BaseException) -> str:
    return (str(error).strip() or "no message").splitlines()[0]
