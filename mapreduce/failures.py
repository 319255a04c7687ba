"""Why a job on a cluster failed, from what its tasks wrote themselves, and how to see more."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from store.errors import DataError, TrialError, YarnstickError
from yarn.diagnostics import advised, last_words

if TYPE_CHECKING:
    from mapreduce.hadoop_runner import Told
    from mapreduce.on_hadoop import Cluster
    from store.protocol import Store
    from yarn.submission import Submission

SENTENCE = "Error: "
LOGS_SECONDS = 20.0  # until the nodes have handed the logs over
COMMAND_SECONDS = 60.0
SHOWN_LINES = 4
# Of `yarn logs`, of the wrapper's `sh -x`, and of Hadoop's own logging within a task.
NOISE = re.compile(
    r"Container: |LogType|LogLastModified|LogLength|LogContents|End of LogType|LogAggregationType|={10}|\*{10}|\+|"
    r"log4j:|\d{4}-\d\d-\d\d .*(INFO|WARN)|WARNING: |$"
)
FROM_BYTE = re.compile(r"^(?P<path>.+), line (?P<line>\d+) from byte (?P<start>\d+)(?P<rest>:.*)$", re.DOTALL)


def why(told: Told, *, cluster: Cluster, submission: Submission, store: Store) -> YarnstickError:
    """One sentence; a task that found a bad row has said it itself."""
    if submission.lost:
        return TrialError(submission.lost)
    if told.application is None:
        said = next((line for line in reversed(told.last_lines) if "Exception" in line or "ERROR" in line), None)
        return TrialError(f"hadoop did not submit the job: {said or _last(told.last_lines) or 'it said nothing'}")
    command = f"yarn logs -applicationId {told.application}"
    written = _task_lines(told.application, cluster.command)
    sentences = [line.removeprefix(SENTENCE) for line in written if line.startswith(SENTENCE)]
    if sentences:
        return DataError(_with_line(sentences[0], store))
    tail = " | ".join(dict.fromkeys(written[-SHOWN_LINES:])) or _of_yarn(submission) or _last(told.last_lines) or ""
    tail = advised(tail, by=tail)
    return TrialError(f"{told.application} failed: {tail}; see all of it with: {command}")


def _of_yarn(submission: Submission) -> str:
    """Where no task ran, its application master may not have, as on nodes without that Java."""
    with suppress(YarnstickError):
        application = submission.application()
        return last_words(application.diagnostics) if application is not None else ""
    return ""


def _task_lines(application: str, hadoop: Path) -> list[str]:
    """What its tasks wrote to standard error, as soon as YARN has it."""
    yarn = hadoop.with_name("yarn")
    deadline = time.monotonic() + LOGS_SECONDS
    while True:
        try:
            told = subprocess.run(
                [str(yarn), "logs", "-applicationId", application, "-log_files", "stderr"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=COMMAND_SECONDS,
                check=False,
            ).stdout.decode("utf-8", "replace")
        except (OSError, subprocess.TimeoutExpired):
            return []
        if lines := [line for line in told.splitlines() if not NOISE.match(line)]:
            return lines
        if time.monotonic() > deadline:
            return []
        time.sleep(1.0)


def _with_line(sentence: str, store: Store) -> str:
    """A task that reads a part of a file knows its lines from there on only: those before are counted here."""
    found = FROM_BYTE.match(sentence)
    if not found or not found["path"].startswith(store.url + "/"):
        return sentence
    from mapreduce.rows import count_lines

    with store.open(found["path"].removeprefix(store.url + "/")) as file:
        # The first line that begins or goes on after that byte is read by the task before.
        line = int(found["line"]) + 1 + count_lines(file, int(found["start"]))
    return f"{found['path']}:{line}{found['rest']}"


def _last(lines: Iterable[str]) -> str | None:
    return next((line for line in reversed(list(lines)) if line.strip()), None)
