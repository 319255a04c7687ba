"""What a newcomer waits for: the quick profile on real MNIST, and how much of that is not training."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

TOP = Path(__file__).parent.parent
RUN_SECONDS = 300.0


def rows(folder: Path) -> list[dict[str, Any]]:
    store = folder / "quick"
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", "run", "--fresh", "--store", str(store)]
    began = time.perf_counter()
    # The machine's state is checked around it, and repeats for noise would measure the neighbours.
    subprocess.run([*command, "--run-id", "bench", "--set", "noisy_repeats=0"], cwd=TOP, check=True, stdout=sys.stderr)
    seconds = time.perf_counter() - began
    records = pq.read_table(store / "runs/bench/report/epochs.parquet", columns=["seconds"])
    training = pc.sum(records["seconds"]).as_py()
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
