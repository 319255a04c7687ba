"""What the machine is and does besides us: processors, memory, other load, the speed of its matrix product."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    import torch

PRODUCT_SIZE = 2048


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


@dataclass(frozen=True, slots=True)
class _Busy:
    at: float
    machine: float
    ours: float


class OtherLoad:
    """Cores that others kept busy since it was made: the machine's busy time less our processes' own.

    Time that the hypervisor gave to others (steal) counts as theirs.
    """

    def __init__(self, root: int) -> None:
        self._root = root  # the process whose tree is ours
        self._began = self._look()

    def cores(self) -> float:
        ended = self._look()
        others = (ended.machine - self._began.machine) - (ended.ours - self._began.ours)
        return max(0.0, others / (ended.at - self._began.at))

    def _look(self) -> _Busy:
        ours = sum(map(_cpu_seconds, self._tree()))
        total = psutil.cpu_times()
        # Guest time is in user time already.
        busy = sum(getattr(total, kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq", "steal"))
        return _Busy(at=time.monotonic(), machine=busy, ours=ours)

    def _tree(self) -> list[psutil.Process]:
        try:
            root = psutil.Process(self._root)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def _cpu_seconds(process: psutil.Process) -> float:
    """Its own and that of its children that have ended."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def product_flops(dtype: torch.dtype, *, threads: int, repeats: int = 8) -> float:
    """The best speed of a 2048 x 2048 matrix product, in FLOP/s."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        left = torch.rand(PRODUCT_SIZE, PRODUCT_SIZE).to(dtype)
        right = torch.rand(PRODUCT_SIZE, PRODUCT_SIZE).to(dtype)
        out = torch.empty(PRODUCT_SIZE, PRODUCT_SIZE, dtype=dtype)
        best = float("inf")
        for _ in range(repeats):
            began = time.perf_counter()
            torch.mm(left, right, out=out)
            best = min(best, time.perf_counter() - began)
    finally:
        torch.set_num_threads(before)
    return 2 * PRODUCT_SIZE**3 / best
