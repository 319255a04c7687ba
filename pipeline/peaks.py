"""The speed of a machine's matrix product, measured once for a run and kept with it: the floor of every epoch."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from models.probes import MachineProbes, OtherLoad, Peak, PeakKey
from store.errors import StoreError
from store.protocol import Store

log = logging.getLogger("luigi-interface.yarnstick")
PROBES = "probes.json"  # in the directory of a run
DEADLINE_SECONDS = 120.0
TOP = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """How to measure, as the settings say; and on what."""

    machine: str
    cpu: str
    seconds: float  # for each precision and number of threads; 0 is not at all
    noisy_cores: float
    repeats: int  # while others keep more cores busy than that


def read_probes(store: Store, run: str) -> tuple[MachineProbes, ...]:
    """Of every machine that measured for this run."""
    path = f"{run}/{PROBES}"
    if not store.exists(path):
        return ()
    try:
        return msgspec.json.decode(store.read(path), type=tuple[MachineProbes, ...])
    except msgspec.MsgspecError as error:
        raise StoreError(f"{store.url}/{path} is damaged ({error}); remove it and run again") from None


def machine_peaks(store: Store, run: str, keys: Sequence[PeakKey], *, how: Probing) -> tuple[Peak, ...]:
    """The peaks of this machine, those that are missing measured now: nothing else may be measured meanwhile."""
    every = read_probes(store, run)
    mine = next((each for each in every if (each.machine, each.cpu) == (how.machine, how.cpu)), None)
    known = mine.peaks if mine else ()
    missing = [key for key in keys if key not in {peak.key for peak in known}]
    if not missing or not how.seconds:
        return known
    found, other_load = _measured(missing, how)
    if not found:
        return known
    mine = MachineProbes(
        machine=how.machine,
        cpu=how.cpu,
        measured_at=datetime.now(UTC),
        other_load=max(other_load, mine.other_load if mine else 0.0),
        peaks=(*known, *found),
    )
    others = [each for each in every if (each.machine, each.cpu) != (mine.machine, mine.cpu)]
    store.write(f"{run}/{PROBES}", msgspec.json.format(msgspec.json.encode((*others, mine)), indent=1) + b"\n")
    return mine.peaks


def _measured(keys: Sequence[PeakKey], how: Probing) -> tuple[list[Peak], float]:
    """The best of some looks: another is taken while others kept the machine busy. With their load in the last one."""
    log.info("measures the speed of this machine's matrix product")
    best: dict[PeakKey, Peak] = {}
    other_load = 0.0
    for _ in range(1 + how.repeats):
        load = OtherLoad(os.getpid())
        for peak in _look(keys, how.seconds):
            earlier = best.get(peak.key, peak)
            best[peak.key] = replace(peak, flops=max(peak.flops, earlier.flops))
        other_load = load.cores()
        if other_load <= how.noisy_cores:
            break
    return list(best.values()), other_load


def _look(keys: Sequence[PeakKey], seconds: float) -> list[Peak]:
    """In a process of its own: this one stays light, and what torch keeps is gone with the child."""
    path = os.pathsep.join(filter(None, [str(TOP), os.environ.get("PYTHONPATH", "")]))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "models.probes", str(seconds), *map(str, keys)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_SECONDS,
            check=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        return msgspec.json.decode(done.stdout, type=list[Peak])
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
        # A run without floors is worth having, and the next call of it measures them.
        log.warning("the speed of the matrix product could not be measured: %s", error)
        return []
