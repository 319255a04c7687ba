"""The process that runs a job on a cluster ends with all that it started; the jobs themselves are in tests/cluster."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from mapreduce import on_hadoop

# Deaf to the signal, as one that waits for a ResourceManager which does not answer; with a child like `hadoop jar`.
DEAF = """
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "600"])
print(child.pid, flush=True)
child.wait()
"""


def test_who_does_not_end_in_time_is_killed_with_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_hadoop, "INTERRUPT_SECONDS", 0.2)
    with subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        on_hadoop._interrupt(process)
        assert process.returncode is not None
    try:
        psutil.wait_procs([child], timeout=10)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    finally:
        if child.is_running():
            child.kill()
