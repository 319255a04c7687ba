"""Why a job on a cluster failed: from what its tasks wrote, with a stand-in for the command that fetches that."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mapreduce import failures
from mapreduce.failures import why
from mapreduce.hadoop_runner import Told
from store.errors import DataError, TrialError, YarnstickError
from store.local import LocalStore

LOGS = """\
Container: container_1_0001_01_000002 on node-1_8041
LogAggregationType: AGGREGATED
======================================
LogType:stderr
LogLastModified:Wed Nov 18 16:43:39 +0000 2026
LogLength:123
LogContents:
+ python3 mr_pixel_range.py --step-num=0 --mapper
2026-11-18 16:43:39,294 INFO mapred.YarnChild: started
{written}
End of LogType:stderr
***************************************
"""


@pytest.fixture
def explain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(failures, "LOGS_SECONDS", 0.0)

    def explained(written: str, *lines: str, application: str | None = "application_1_0001") -> YarnstickError:
        (tmp_path / "logs.txt").write_text(LOGS.format(written=written))
        command = tmp_path / "yarn"
        command.write_text(f'#!/bin/sh\n[ "$3" = application_1_0001 ] && cat {tmp_path}/logs.txt\n')
        command.chmod(0o755)
        told = Told(listener=lambda told: None, application=application, last_lines=deque(lines))
        cluster: Any = SimpleNamespace(command=tmp_path / "hadoop")
        submission: Any = SimpleNamespace(lost=None, application=lambda: None)
        return why(told, cluster=cluster, submission=submission, store=LocalStore(tmp_path / "store"))

    return explained


def test_the_sentence_of_a_task_is_the_reason(explain: Any) -> None:
    error = explain("Error: hdfs:///a/part-0:3: 4 columns, but 5 are expected\nTraceback or what else")
    assert isinstance(error, DataError)
    assert str(error) == "hdfs:///a/part-0:3: 4 columns, but 5 are expected"


def test_a_line_within_a_part_of_a_file_is_counted_from_its_beginning(explain: Any, tmp_path: Path) -> None:
    """A task drops the line that it finds begun, whose reader is the task before."""
    store = LocalStore(tmp_path / "store")
    store.write("in/part-0", b"1,0\n" * 10 + b"x,0\n" + b"1,0\n" * 10)
    begins = 4 * 5 + 2  # within line 6; so line 7 is the first of this task, and 11 the fifth
    error = explain(f"Error: {store.url}/in/part-0, line 5 from byte {begins}: column 1 holds 'x'")
    assert str(error) == f"{store.url}/in/part-0:11: column 1 holds 'x'"


def test_without_a_sentence_its_last_words_and_the_command_for_more(explain: Any) -> None:
    error = explain("setup-wrapper.sh: line 30: /nowhere/python: not found")
    assert isinstance(error, TrialError)
    assert str(error) == (
        "application_1_0001 failed: setup-wrapper.sh: line 30: /nowhere/python: not found; see all of it with: "
        "yarn logs -applicationId application_1_0001"
    )


def test_without_logs_what_hadoop_said_last(explain: Any) -> None:
    assert "failed: Job not successful!; see" in str(explain("", "Counters: 3", "Job not successful!", ""))


def test_a_job_that_was_never_submitted(explain: Any) -> None:
    error = explain("", "INFO a", "Exception in thread main: no such queue", "\tat Hadoop", application=None)
    assert str(error) == "hadoop did not submit the job: Exception in thread main: no such queue"
