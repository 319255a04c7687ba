"""Commands that have to answer at once, as whole processes: `yarnstick predict`, and `history` of many runs."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pipeline.config import read_settings
from pipeline.history_index import put
from pipeline.opening import open_store
from store.protocol import Store

TOP = Path(__file__).parent.parent
YARNSTICK = (sys.executable, "-c", "from pipeline.cli import main; main()")
SWEEP = TOP / "tests" / "data" / "sweep" / "epochs.parquet"
IMPORTED = TOP / "docs" / "examples" / "study-c.csv"
RUNS, CONFIGURATIONS, ROUNDS = 500, 30, 3
PREDICT_SECONDS, HISTORY_SECONDS = 2.0, 5.0


def rows(folder: Path) -> list[dict[str, Any]]:
    folder.mkdir(parents=True)
    return [prediction(folder / "swept"), history((folder / "many").as_uri(), "a local store")]


def prediction(store: Path) -> dict[str, Any]:
    """From the recorded sweep, in the place of a run's own records."""
    _answered("import", str(IMPORTED), "--run-id", "sweep", "--store", str(store))
    shutil.copyfile(SWEEP, store / "runs" / "sweep" / "report" / "epochs.parquet")
    asked = ("predict", "--run-id", "sweep", "--platform", "mllib", "--dataset", "synthetic:24000x200x10")
    return _row(
        f"yarnstick predict, of {PREDICT_SECONDS:g} s",
        _seconds(*asked, "--rows", "48000", "--executors", "2", "--cores", "1", "--store", str(store)),
        PREDICT_SECONDS,
    )


def history(url: str, where: str) -> dict[str, Any]:
    """Of runs that are directories and lines of the index, which is all that it reads of them."""
    noted(open_store(read_settings("quick", store=url)), runs=RUNS)
    return _row(
        f"yarnstick history of {RUNS} runs of {CONFIGURATIONS} configurations on {where}, of {HISTORY_SECONDS:g} s",
        _seconds("history", "--profile", "quick", "--store", url),
        HISTORY_SECONDS,
    )


def noted(store: Store, *, runs: int) -> None:
    """As many configurations as a real profile has, in each run."""
    from tests.report.test_history import entry, measured, noisy

    found = [
        entry(run, *(measured(noisy(CONFIGURATIONS * run + n, 1 / n), threads=n) for n in range(1, CONFIGURATIONS + 1)))
        for run in range(runs)
    ]
    for each in found:
        store.write(f"runs/{each.run_id}/run.json", b"{}")
    put(store, found)


def _seconds(*words: str) -> float:
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        _answered(*words)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def _answered(*words: str) -> None:
    subprocess.run([*YARNSTICK, *words], cwd=TOP, check=True, stdout=subprocess.DEVNULL)


def _row(name: str, seconds: float, bound: float) -> dict[str, Any]:
    return {
        "name": name,
        "ratio": seconds / bound,
        "bound": 1.0,
        "unit_seconds": seconds,
        "against_seconds": bound,
    }
