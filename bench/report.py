"""`yarnstick report` of a stored run of 100,000 epoch records, against the 20 seconds and the gigabyte it may take."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from models.outcome import EVENT_LOGS, OUTCOME, Outcome
from models.run import base_record
from pipeline.config import read_settings
from pipeline.opening import open_store
from pipeline.peaks import PROBES
from pipeline.run_file import RunFile, write_run
from store.protocol import Store

TOP = Path(__file__).parent.parent
RECORDED = TOP / "tests" / "data" / "recorded" / "trials"
RECORDS, TRIALS, SECONDS, GIGABYTES = 100_000, 10, 20.0, 1.0
OTHER_FRACTIONS = (1, 2, 3, 5, 6, 7, 8, 9)  # in sixteenths: that of the large comparison is 4
RUN_ID = "bench"
JUDGED = ("target.accuracies=mnist=0.5", "price.core_hour=0.05", "price.memory_gb_hour=0.01", "price.gpu_hour=2")
# The command as it is; what its memory was is told by itself, as getrusage of a child begins with that of its parent.
COMMAND = """
import re, sys
from pathlib import Path
from pipeline.cli import main
try:
    main()
finally:
    peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
    print(int(peak) / 1e6, file=sys.stderr)
"""


def rows(folder: Path) -> list[dict[str, Any]]:
    store, there = stored(folder / "store")
    assert there >= RECORDS
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "report", "--run-id", RUN_ID, "--store", store.url],
        cwd=TOP,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds = time.perf_counter() - began
    return [
        {
            "name": f"yarnstick report of a run of {RECORDS:,} epoch records, of {SECONDS:g} s",
            "ratio": seconds / SECONDS,
            "bound": 1.0,
            "unit_seconds": seconds,
            "against_seconds": SECONDS,
        },
        {
            "name": f"peak memory of the same, of {GIGABYTES:g} GB",
            "ratio": float(done.stderr.splitlines()[-1]) / GIGABYTES,
            "bound": 1.0,
            "unit_seconds": None,
            "against_seconds": None,
        },
    ]


def stored(folder: Path, *, records: int = RECORDS, trials: int = TRIALS) -> tuple[Store, int]:
    """A run as it lies in a store, with a target, prices, and event logs; and how many records it has.

    Half the configurations are one comparison, half many small ones.
    """
    from tests.report.made import PROBES as SPEEDS
    from tests.report.made import RUN, mllib, outcomes, torch

    made = [torch(n, 1 / n) for n in range(1, 65)]
    made += [mllib(n, c, 9 / n / c, memory_mib=2048) for n in range(1, 33) for c in (1, 2, 3)]
    made += [replace(each, data_fraction=n / 16, rows=n * 3750) for n in OTHER_FRACTIONS for each in made[:20]]
    found = outcomes(made, trials=trials, epochs=-(-records // len(made) // trials))
    settings = read_settings("quick", store=str(folder), overrides=JUDGED)
    store = open_store(settings)
    log = _recorded_log()
    for outcome in found:
        store.write(f"runs/{RUN_ID}/trials/{outcome.spec.slug}/{OUTCOME}", _whole(outcome).encode())
        if outcome.spec.platform == "mllib" and outcome.spec.trial == 1:
            place = f"runs/{RUN_ID}/trials/{outcome.spec.slug}/{EVENT_LOGS}/app.zstd"
            store.write(place, _log_of(log, outcome.spec.slug))
    store.write(f"runs/{RUN_ID}/{PROBES}", msgspec.json.encode([SPEEDS]))
    run = RunFile(
        run_id=RUN_ID,
        profile="quick",
        settings=settings.fingerprint(),
        datasets={},
        rows=dict(RUN.rows_of),
        trials=len(found),
        machine=RUN.machine,
        cpu=str(RUN.cpu),
        cores=64,
        memory_gb=24.0,
        commit=RUN.commit,
        begun_at=datetime.now(UTC),
    )
    write_run(store, run)
    return store, sum(len(outcome.records) for outcome in found)


def _whole(outcome: Outcome) -> Outcome:
    """With what every record of a real run says too, which takes most of its bytes."""
    said = base_record(outcome.spec, run_id=RUN_ID, machine=outcome.records[0].machine)
    versions = json.dumps(dict.fromkeys(("python", "yarnstick", "pyspark", "torch", "numpy", "pyarrow"), "1.2.3"))
    more: dict[str, Any] = {"run_id": RUN_ID, "host": "made", "cpu": "made", "versions": versions, "session": "own"}
    more |= {"workers": said.workers, "nodes": said.nodes}
    return replace(outcome, records=tuple(replace(record, **more) for record in outcome.records))


def _recorded_log() -> tuple[str, bytes]:
    """The name of a recorded trial, and its event log."""
    trial = next(RECORDED.glob("*-gd-*"))
    (log,) = trial.glob("eventlog/*/events_*")
    with pa.CompressedInputStream(pa.OSFile(str(log)), "zstd") as stream:
        return trial.name, bytes(stream.read())


def _log_of(recorded: tuple[str, bytes], slug: str) -> bytes:
    """The same jobs as those of another trial."""
    name, log = recorded
    return pa.compress(log.replace(name.encode(), slug.encode()), codec="zstd", asbytes=True)
