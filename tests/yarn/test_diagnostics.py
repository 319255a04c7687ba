"""Of YARN's diagnostics, as Hadoop 3.5.0 wrote them, what the program said stays."""

from __future__ import annotations

import pytest

from yarn.diagnostics import LONGEST, SEND_ONE, last_words, was_taken

NO_JAVA = """Application application_1795021969190_0009 failed 2 times due to AM Container for \
appattempt_1795021969190_0009_000002 exited with  exitCode: 127
Failing this attempt.Diagnostics: [2026-11-18 17:17:07.832]Exception from container-launch.
Container id: container_1795021969190_0009_02_000001
Exit code: 127

[2026-11-18 17:17:07.835]Container exited with a non-zero exit code 127. Error file: prelaunch.err.
Last 4096 bytes of prelaunch.err :
Last 4096 bytes of stderr :
/bin/bash: line 1: /nowhere/bin/java: No such file or directory


[2026-11-18 17:17:07.835]Container exited with a non-zero exit code 127. Error file: prelaunch.err.
Last 4096 bytes of prelaunch.err :
Last 4096 bytes of stderr :
/bin/bash: line 1: /nowhere/bin/java: No such file or directory


For more detailed output, check the application tracking page: http://localhost:8088/cluster/app/x Then click on links \
to logs of each attempt.
. Failing the application."""
NO_SETSID = """Application application_1795021969190_0002 failed 2 times due to AM Container for \
appattempt_1795021969190_0002_000002 exited with  exitCode: 127
Failing this attempt.Diagnostics: [2026-11-18 17:15:04.486]Exception from container-launch.
Container id: container_1795021969190_0002_02_000001
Exit code: 127
Exception message: /local/default_container_executor_session.sh: line 5: exec: setsid: not found


[2026-11-18 17:15:04.497]Container exited with a non-zero exit code 127. 
[2026-11-18 17:15:04.497]Container exited with a non-zero exit code 127. 
For more detailed output, check the application tracking page: http://localhost:8088/cluster/app/x Then click on links \
to logs of each attempt.
. Failing the application."""  # noqa: W291


@pytest.mark.parametrize(
    ("diagnostics", "expected"),
    [
        (NO_JAVA, f"/bin/bash: line 1: /nowhere/bin/java: No such file or directory{SEND_ONE}"),
        (NO_SETSID, "/local/default_container_executor_session.sh: line 5: exec: setsid: not found"),
        ("", ""),
        ("Application killed by user.", "Application killed by user."),
        ("Exit code: 1\n", "Exit code: 1"),
        ("x" * 1000, "x" * (LONGEST - 3) + "..."),
    ],
)
def test_what_the_program_said_is_left(diagnostics: str, expected: str) -> None:
    assert last_words(diagnostics) == expected


@pytest.mark.parametrize(
    ("code", "taken"),
    [(-100, True), (-102, True), (-105, True), (-103, False), (-1000, False), (1, False), (143, False)],
)
def test_a_lost_node_and_a_preempted_container_are_nobodys_fault(code: int, taken: bool) -> None:
    said = f"AM Container for appattempt_1795021969190_0009_000001 exited with  exitCode: {code}\nFailing this attempt."
    assert was_taken(said) is taken
