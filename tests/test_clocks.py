"""Durations are of a monotonic clock: the one of the wall may be set back while a trial runs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
FILES = sorted(
    path
    for package in ("store", "yarn", "mapreduce", "models", "report", "pipeline")
    for path in (TOP / package).rglob("*.py")
)
WALL = {"time.time", "time.time_ns", "time.clock_gettime", "datetime.now", "datetime.utcnow", "datetime.today"}
# Who may look at the wall clock, and what for. None of these is a duration of its own.
MAY = {
    "models/ranks/barrier_stage.py": "looks in Spark's event log for what happened since it began",
    "models/mllib_exchange.py": "places the fit among the times of Spark's event log",
    "models/platforms/mllib.py": "places the fit among the times of Spark's event log",
    "models/run.py": "notes when a trial began",
    "pipeline/experiment.py": "notes when a run was begun",
    "pipeline/cleaning.py": "compares with when a run was begun",
    "pipeline/history_index.py": "notes when an entry of a run was made, to know the later of two",
    "pipeline/importing.py": "notes when a run was begun",
    "pipeline/merging.py": "notes when a run was begun",
    "pipeline/peaks.py": "notes when the machine was probed",
    "pipeline/presence.py": "notes since when a process is at a run, and forgets one of another host after days",
    "pipeline/replay.py": "notes when a run was begun",
    "store/downloads.py": "notes when a kept file was last used",
    "store/hdfs_state.py": "compares the NameNode's clock with ours",
    "store/publish.py": "puts the time into temporary names, and compares with when a file was written",
}
# An age of days tells what a dead process on another host left: one reading, and a time that lies in the store.
AGES = {
    "pipeline/cleaning.py": "timedelta(days=days)",
    "pipeline/presence.py": "self.since",
    "store/publish.py": "modified",
}


def readings(source: str) -> set[str]:
    """Which wall clocks are called, by the name under which each module has them."""
    tree = ast.parse(source)
    renamed = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            found |= {known for known in WALL if name == known or name.endswith(f".{known}")}
            found |= {renamed[name]} & WALL if name in renamed else set()
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TOP)))
def test_only_who_needs_the_time_of_day_reads_it(path: Path) -> None:
    assert not readings(path.read_text(encoding="utf-8")) or path.relative_to(TOP).as_posix() in MAY


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TOP)))
def test_nobody_subtracts_two_readings_of_the_wall_clock(path: Path) -> None:
    """Spark's event log has times of day only, so mllib has to; an age of a file is one reading and a time it has."""
    source = path.read_text(encoding="utf-8")
    differences = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and readings(ast.unparse(node))
    ]
    age = AGES.get(path.relative_to(TOP).as_posix())
    differences = [each for each in differences if age is None or not each.endswith(f" - {age}")]
    assert differences == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time\ntime.time()", {"time.time"}),
        ("from time import time as now\nnow()", {"time.time"}),
        ("import datetime\ndatetime.datetime.now()", {"datetime.now"}),
        ("import time\ntime.monotonic(); time.perf_counter(); time.sleep(1)", set()),
    ],
)
def test_the_check_sees(source: str, found: set[str]) -> None:
    assert readings(source) == found
