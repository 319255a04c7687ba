"""What the machine is and does now: room for the profile, other load, clocks, the speed of its matrix product."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from models.probes import OtherLoad, memory_mib, usable_cores
from pipeline.checks.check import Check, bad, fine
from pipeline.experiment import Experiment
from pipeline.settings import Settings
from report.words import counted, listed, significant

LOAD_SECONDS = 1.0
LOOKS = 3  # a moment's load is no reason to refuse
NAMED = 3  # processes
LEAST_SHARE = 0.02  # of a core: less is not worth a name
PRODUCT_SECONDS = 0.3
CLOCKSOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
DRIVER_MIB = 1024  # of Spark's driver and the process that trains


def room(experiment: Experiment) -> Check:
    """Cores and memory for every configuration of the profile."""
    cores, memory = usable_cores(), memory_mib()
    has = f"{counted(cores, 'core')}, {memory:,} MiB"
    planned = experiment.planned  # a demand that cannot be met is an error with its sentence
    reasons = {each.spec.configuration: each.impossible for each in planned if each.impossible}
    configurations = {each.spec.configuration for each in planned}
    largest = max(
        (
            each.spec.resources.executors * (each.spec.resources.memory_mib or 0)
            for each in planned
            if not each.impossible and each.spec.resources.executors
        ),
        default=0,
    )
    free = int(psutil.virtual_memory().available // 2**20)
    is_here = experiment.settings.spark.master == "local-cluster"  # else executors are on other machines
    if is_here and largest and free < largest + DRIVER_MIB:
        return bad(
            f"{has}, of which {free:,} MiB are free, and {largest:,} MiB of executors with {DRIVER_MIB:,} MiB "
            f"beside them need more",
            advice="end what holds memory, or lower executors or memory_mib of the profile",
        )
    if reasons:
        first = next(iter(reasons.values()))
        return fine(
            f"{has}; {len(reasons)} of {counted(len(configurations), 'configuration')} cannot run here: {first}",
            advice="they become rows with that reason; lower the profile's lists to leave them out",
        )
    return fine(f"{has}; all {counted(len(configurations), 'configuration')} fit")


def load(settings: Settings) -> Check:
    """Of others, now; what is above the noisy share would label every trial."""
    allowed = settings.main.quiet_cores(usable_cores())
    quiet = f"up to {allowed:.2f} are quiet" if settings.main.noisy_share < 1 else "none is noisy"
    busy, names = 0.0, list[str]()
    for _ in range(LOOKS):
        busy, names = _look()
        if busy <= allowed:
            return fine(f"others use {busy:.2f} cores, and {quiet} (noisy_share)")
    by = f" with {listed(names)}" if names else ""
    return bad(
        f"the machine is busy{by}: others use {busy:.2f} cores, above the {allowed:.2f} of noisy_share",
        advice="close it, or trials will be repeated and labelled noisy",
    )


def clock() -> Check:
    """Whose readings are the seconds of an epoch."""
    info = time.get_clock_info("perf_counter")
    source = CLOCKSOURCE.read_text(encoding="ascii").strip() if CLOCKSOURCE.is_file() else None
    said = f"{info.implementation}, steps of {info.resolution:g} s" + (f", by {source}" if source else "")
    if not info.monotonic or info.resolution > 1e-6:
        return bad(said, advice="use a system whose monotonic clock has steps of a microsecond or less")
    if source in SLOW_CLOCKS:
        return fine(said, advice=f"{source} takes long to read; tsc or kvm-clock is better where the machine has it")
    return fine(said)


def products(settings: Settings) -> Check:
    """The speed of a matrix product in each precision and number of threads of the profile."""
    from models.probes import PeakKey, measure_peaks

    cores = usable_cores()
    precisions = dict.fromkeys((settings.baseline.precision, *settings.profile.precisions))
    threads = sorted({min(each, cores) for each in (1, *settings.profile.threads)})
    keys = [PeakKey(precision=precision, threads=each) for precision in precisions for each in threads]
    told = [
        f"{significant(peak.flops / 1e9)} GFLOP/s in {peak.precision} with {counted(peak.threads, 'thread')}"
        for peak in measure_peaks(keys, seconds=PRODUCT_SECONDS)
    ]
    return fine(", ".join(told))


def blas() -> Check:
    """What numpy and torch multiply matrices with."""
    import numpy as np  # noqa: F401 (its BLAS is only listed once it is loaded)
    import torch
    from threadpoolctl import threadpool_info

    libraries = {
        f"{each['internal_api']} {each['version']}" + (f" ({each['architecture']})" if each.get("architecture") else "")
        for each in threadpool_info()
        if each["user_api"] == "blas"
    }
    has = [name for name in ("mkl", "mkldnn", "openmp") if getattr(torch.backends, name).is_available()]
    capability = torch.backends.cpu.get_cpu_capability()
    return fine(f"numpy: {listed(sorted(libraries)) or 'none found'}; torch: {listed(has)}, {capability}")


def cuda(settings: Settings) -> Check:
    import torch

    if torch.cuda.is_available():
        return fine(listed([torch.cuda.get_device_name(each) for each in range(torch.cuda.device_count())]))
    why = (
        "this torch is built without CUDA"
        if torch.version.cuda is None
        else f"torch is built for CUDA {torch.version.cuda}, and there is no NVIDIA driver or device"
    )
    wanted = [name for name in settings.profile.platforms if name.endswith("-cuda")]
    if wanted:
        return fine(f"no CUDA device: {why}", advice=f"rows of {listed(wanted)} will say so; nothing else needs one")
    return fine(f"no CUDA device ({why}), and no platform of this profile wants one")


def _look() -> tuple[float, list[str]]:
    """Cores that others keep busy, and the processes that use most of them."""
    ours = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    processes = [each for each in psutil.process_iter(["pid", "name"]) if each.pid not in ours]
    before = _times(processes)
    other = OtherLoad(os.getpid())
    time.sleep(LOAD_SECONDS)
    cores = other.cores()
    after = _times(processes)
    used = {each: (after[each] - before[each]) / LOAD_SECONDS for each in after if each in before}
    most = sorted(used, key=lambda each: used[each], reverse=True)[:NAMED]
    names = [f"{each.info['name']} ({each.pid}: {used[each]:.2f})" for each in most if used[each] >= LEAST_SHARE]
    return cores, names


def _times(processes: Sequence[psutil.Process]) -> dict[psutil.Process, float]:
    found = {}
    for each in processes:
        try:
            times = each.cpu_times()
        except psutil.Error:
            continue
        found[each] = times.user + times.system
    return found
