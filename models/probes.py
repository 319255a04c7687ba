"""What the machine is and does besides us: processors, memory, other load, the speed of its matrix product.

`python -m models.probes SECONDS PRECISION:THREADS...` measures such speeds and prints them as JSON.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil

from models.spec import TrialSpec

if TYPE_CHECKING:
    import torch

PRODUCT_SIZE = 2048
# In the environment of every process of a session, wherever on this machine it was started from.
SESSION = "YARNSTICK_SESSION"
WARM_SIZE = 256


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PeakKey:
    """What a peak is of."""

    precision: str
    threads: int

    def __str__(self) -> str:
        return f"{self.precision}:{self.threads}"

    @classmethod
    def parse(cls, text: str) -> PeakKey:
        precision, _, threads = text.partition(":")
        return cls(precision=precision, threads=int(threads))


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The best speed that a matrix product reached here."""

    precision: str
    threads: int
    flops: float  # FLOP/s

    @property
    def key(self) -> PeakKey:
        return PeakKey(precision=self.precision, threads=self.threads)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineProbes:
    """What was measured of one machine before the trials of a run."""

    machine: str
    cpu: str
    measured_at: datetime
    other_load: float  # cores that others used meanwhile
    peaks: tuple[Peak, ...]

    def peak(self, precision: str | None, threads: int | None) -> float | None:
        return next((p.flops for p in self.peaks if (p.precision, p.threads) == (precision, threads)), None)


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_mib() -> int:
    return int(psutil.virtual_memory().total // 2**20)


def cpu_name() -> str:
    """As /proc/cpuinfo calls the first core, with what tells generations apart where the name does not."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    first = info.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}
    name = fields.get("model name", platform.machine())
    return f"{name} (family {fields['cpu family']} model {fields['model']})" if "cpu family" in fields else name


def multiplies_bfloat16() -> bool:
    """Whether this processor multiplies matrices in bfloat16 itself; others are slower at it than in float32."""
    info = Path("/proc/cpuinfo")
    flags = set(info.read_text(encoding="utf-8", errors="replace").split()) if info.exists() else set[str]()
    return not flags.isdisjoint(("avx512_bf16", "amx_bf16", "bf16"))


@dataclass(frozen=True, slots=True)
class _Busy:
    at: float
    machine: float
    ours: float
    traceless: dict[psutil.Process, float]  # of these, the seconds of who will be counted by nobody when it ends


class OtherLoad:
    """Cores that others kept busy since it was made: the machine's busy time less our processes' own.

    Time that the hypervisor gave to others (steal) counts as theirs.
    """

    def __init__(self, root: int) -> None:
        self._root = root  # the process whose tree is ours
        self._began = self._look()

    def cores(self) -> float:
        ended = self._look()
        gone = self._began.traceless.keys() - ended.traceless.keys()
        before = self._began.ours - sum(self._began.traceless[each] for each in gone)
        others = (ended.machine - self._began.machine) - (ended.ours - before)
        return max(0.0, others / (ended.at - self._began.at))

    def _look(self) -> _Busy:
        tree = {process: _cpu_seconds(process) for process in self._tree()}
        total = psutil.cpu_times()
        # Guest time is in user time already.
        busy = sum(getattr(total, kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq", "steal"))
        return _Busy(
            at=time.monotonic(),
            machine=busy,
            ours=sum(tree.values()),
            traceless={process: seconds for process, seconds in tree.items() if _leaves_no_trace(process)},
        )

    def _tree(self) -> list[psutil.Process]:
        try:
            root = psutil.Process(self._root)
            return list({root, *root.children(recursive=True), *_of_session()})
        except psutil.NoSuchProcess:
            return []


def _of_session() -> Iterator[psutil.Process]:
    """Processes of our session that others started for us, as YARN does; as far as we may look into them."""
    ours = f"{SESSION}={os.environ.get(SESSION)}".encode()
    for process in psutil.process_iter() if SESSION in os.environ else ():
        with suppress(OSError):
            if ours in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                yield process


def _leaves_no_trace(process: psutil.Process) -> bool:
    """Whether its parent ignores the end of its children, as PySpark's daemon does: their time is then nobody's."""
    with suppress(psutil.Error, OSError):
        status = Path(f"/proc/{process.ppid()}/status").read_text(encoding="utf-8", errors="replace")
        ignored = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:"))
        return bool(int(ignored, 16) >> (signal.SIGCHLD - 1) & 1)
    return False


def _cpu_seconds(process: psutil.Process) -> float:
    """Its own and that of its children that have ended."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def peak_key(spec: TrialSpec, *, cores: int) -> PeakKey | None:
    """Of the peak that a trial is held against, on a machine of so many cores; None where there is no such peak.

    What has more cores than the machine is on others, or has its cores taken in turn: neither is what was measured.
    """
    total = spec.resources.total_cores
    if total is None or total > cores or spec.resources.device != "cpu" or spec.network.flop_per_row() is None:
        return None
    return PeakKey(precision=spec.hyperparameters.precision, threads=total)


def peak_keys(specs: Iterable[TrialSpec], *, precision: str, cores: int) -> list[PeakKey]:
    """All that these trials need: each at its own precision, and at the baseline's to tell what precision costs."""
    own = {key for spec in specs if (key := peak_key(spec, cores=cores)) is not None}
    return sorted(own | {PeakKey(precision=precision, threads=key.threads) for key in own})


def measure_peaks(keys: Iterable[PeakKey], *, seconds: float) -> list[Peak]:
    """So many seconds for each. A precision that this torch does not know has no peak."""
    import torch

    found = []
    for key in keys:
        dtype = getattr(torch, key.precision, None)
        if isinstance(dtype, torch.dtype):
            flops = product_flops(dtype, threads=key.threads, seconds=seconds)
            found.append(Peak(precision=key.precision, threads=key.threads, flops=flops))
    return found


def product_flops(
    dtype: torch.dtype,
    *,
    threads: int,
    repeats: int = 8,
    seconds: float | None = None,
    own: bool = False,
) -> float:
    """The best speed of a 2048 x 2048 matrix product, in FLOP/s; `seconds` are to be spent instead of `repeats`.

    By whatever library is here and is fastest, or by torch's `own`, which autograd calls.
    """
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads, user_api="blas"):
            for warm_up in _products(dtype, WARM_SIZE, own=own):
                warm_up()  # starts the threads
            start = time.perf_counter()
            every = _products(dtype, PRODUCT_SIZE, own=own)
            took = [min(found) for found in zip(*([_timed(each) for each in every] for _ in range(2)), strict=True)]
            best, done = min(took), 2
            fastest = every[took.index(best)]
            while done < repeats if seconds is None else time.perf_counter() - start < seconds:
                best = min(best, _timed(fastest))
                done += 1
    finally:
        torch.set_num_threads(before)
    return 2 * PRODUCT_SIZE**3 / best


def _products(dtype: torch.dtype, size: int, *, own: bool) -> list[Callable[[], object]]:
    """One and the same product by each library, torch's own first."""
    import numpy as np
    import torch

    from models.products import candidates

    left, right, out = (torch.rand(size, size).to(dtype) for _ in range(3))
    found: list[Callable[[], object]] = [partial(each.times, left, right, out=out) for each in candidates(dtype)]
    if own:
        return found[:1]
    if dtype in (torch.float32, torch.float64):  # numpy's library need not be torch's
        found.append(partial(np.matmul, left.numpy(), right.numpy(), out=out.numpy()))
    return found


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    measured = measure_peaks(map(PeakKey.parse, sys.argv[2:]), seconds=float(sys.argv[1]))
    sys.stdout.buffer.write(msgspec.json.encode(measured) + b"\n")
