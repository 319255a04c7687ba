"""A trial that lost what it ran on, through the real command: kept, not ranked, and run once more."""

from __future__ import annotations

import csv
from contextlib import suppress

import psutil
import pytest

from tests.pipeline.place import Place, eventually, finish

EXECUTORS = {"platforms": "torch-spark", "executors": "2", "cores": "1", "memory_mib": "1024", "trials": "1"}
# Epochs of some milliseconds: the executor is killed among them.
SETTINGS = EXECUTORS | {"datasets": "synthetic:20000x6x3", "networks": "mlp:*-64-*", "epochs": "1000"}


@pytest.mark.spark
def test_a_trial_whose_executor_was_killed_is_run_once_more_and_both_are_kept(place: Place) -> None:
    """FAULTS 24, 25: a preempted executor is killed as well."""
    given = [part for name, value in SETTINGS.items() for part in ("--set", f"profile.tiny.{name}={value}")]
    process = place.start("run", "--profile", "tiny", "--run-id", "R", *given)
    eventually(lambda: any(b'"epoch"' in path.read_bytes() for path in place.folder.rglob("events.jsonl")))
    executors(psutil.Process(process.pid))[0].kill()
    done = finish(process)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr

    slugs = sorted(place.trials("R"))
    assert [slug.rpartition("-")[2] for slug in slugs] == ["a1", "a2"]
    tainted, again = (place.outcome("R", slug) for slug in slugs)
    assert (tainted["outcome"], again["outcome"]) == ("tainted", "ok")
    assert str(tainted["reason"]).startswith("executor ")
    assert str(tainted["reason"]).endswith(" was lost")
    [row] = csv.DictReader(place.report("R")["comparison.csv"].decode().splitlines())
    assert (row["status"], row["trials"]) == ("ok", "1"), "the second attempt, and only that"


def executors(top: psutil.Process) -> list[psutil.Process]:
    found = []
    for each in top.children(recursive=True):
        with suppress(psutil.Error):
            if any("CoarseGrainedExecutorBackend" in word for word in each.cmdline()):
                found.append(each)
    return found
