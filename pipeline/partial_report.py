"""What an interrupted run has measured, reported by a process that a second Ctrl-C ends from outside.

Where the run itself made the report, an interrupt sometimes never came back; why was not found. That process is
`python -m pipeline.partial_report PROFILE RUN_ID SETTINGS`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from store.errors import YarnstickError

TOP = Path(__file__).parent.parent


def report_partly(profile: str, run_id: str, settings: str) -> None:
    """Waits for it; an interrupt meanwhile ends it."""
    sys.stdout.flush()
    path = os.pathsep.join(filter(None, [str(TOP), os.environ.get("PYTHONPATH", "")]))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which it inherits: a terminal's Ctrl-C goes to both
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pipeline.partial_report", profile, run_id, settings],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        process.wait()
    except KeyboardInterrupt:
        process.kill()
        process.wait()
        raise


def main(profile: str, run_id: str, settings: str) -> int:
    from pipeline.experiment import experiment
    from pipeline.reporting import merge, report, summary

    run = experiment(profile, run_id, settings)
    try:
        if run.trials.outcomes():
            merge(run)
            report(run)
            for line in summary(run.store, run.begin()):
                print(line)
    except YarnstickError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
