"""What a newcomer waits for: the quick profile on real MNIST, and how much of that is not training."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.load import check_quiet
from models.event_log import EventLog

TOP = Path(__file__).parent.parent
RUN_SECONDS = 300.0


def _last_pass(trial: Path) -> float:
    """MLlib's gd ends with a pass for the final loss: it belongs to no epoch, but it is training."""
    passes = [
        job
        for log in (trial / "eventlog").glob("eventlog_*")
        for job in EventLog(log).read().group(trial.name)
        if job.is_pass and job.ended is not None
    ]
    return (passes[-1].ended or 0.0) - passes[-1].began if passes else 0.0


def rows(folder: Path) -> list[dict[str, Any]]:
    store = folder / "quick"
    # The machine's state is checked around it, and repeats for noise would measure the neighbours.
    given = f"--fresh --store {shlex.quote(str(store))} --run-id bench --set noisy_repeats=0"
    # This may itself be what make was told to do, with arguments of its own.
    surroundings = {name: value for name, value in os.environ.items() if "MAKE" not in name and name != "MFLAGS"}
    began = time.perf_counter()
    subprocess.run(["make", "run", f"ARGS={given}"], cwd=TOP, check=True, stdout=sys.stderr, env=surroundings)
    seconds = time.perf_counter() - began
    records = pq.read_table(store / "runs/bench/report/epochs.parquet", columns=["seconds", "other_load"])
    # Of the trials' own watch: a session's executors are killed with it, and their time is then nobody's.
    check_quiet(pc.mean(records["other_load"]).as_py(), "while the quick profile ran")
    training = pc.sum(records["seconds"]).as_py() + sum(map(_last_pass, (store / "runs/bench/trials").iterdir()))
    return [
        {
            "name": "make run, not training / its wall time",
            "ratio": (seconds - training) / seconds,
            "bound": 0.5,
            "unit_seconds": seconds - training,
            "against_seconds": seconds,
        },
        {
            "name": "make run / 5 minutes",
            "ratio": seconds / RUN_SECONDS,
            "bound": 1.0,
            "unit_seconds": seconds,
            "against_seconds": RUN_SECONDS,
        },
    ]
