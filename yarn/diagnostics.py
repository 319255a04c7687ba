"""What YARN says of an application that failed, without the forms it says it in: the program's own last words."""

from __future__ import annotations

import re

LONGEST = 300
MOST_LINES = 3
# A node without Java, one whose Java is too old for the options it is given, and one too old for the classes.
NO_JAVA = re.compile(r"/bin/java: No such file|Could not create the Java Virtual Machine|UnsupportedClassVersionError")
SEND_ONE = "; where nodes lack the right Java, send one along by yarnstick.hadoop.java_archive"
# All that a NodeManager writes around the words of the program, and the ResourceManager around those.
FORM = re.compile(
    r"(Container id|Exit code|Exception message|Shell output|Shell error output): ?$|"
    r"(Container id|Exit code): \S+$|Failing this attempt|For more detailed output|\. Failing the application|"
    r"log4j:|Application application_\d+_\d+ failed|Last \d+ bytes of [\w.]+ :$|"
    r"\[[\d: .-]+\]\s*(Container exited with a non-zero|Exception from container)"
)

# Of a container's exit code: its node was lost or ran out of disks, or YARN wanted it for others. Not among them is
# memory beyond its own (-103, -104).
TAKEN = re.compile(r"exitCode: -(100|101|102|105|108)\b")


def was_taken(diagnostics: str) -> bool:
    """Whether the application's master was taken away, and did not fail by itself."""
    return TAKEN.search(diagnostics) is not None


def last_words(diagnostics: str) -> str:
    """On one line and not too long; empty where YARN says nothing."""
    lines = [line.removeprefix("Exception message: ").strip() for line in diagnostics.splitlines()]
    said = list(dict.fromkeys(line for line in lines if line and not FORM.match(line)))
    # Each attempt says it again, and what is said last tells most. Where all is form, the form has to do.
    words = " | ".join(said[-MOST_LINES:]) or " ".join(diagnostics.split())
    return advised(words if len(words) <= LONGEST else f"{words[: LONGEST - 3]}...", by=diagnostics)


def advised(words: str, *, by: str) -> str:
    """With what to do where that can be told by what was said."""
    return words + SEND_ONE if NO_JAVA.search(by) and not words.endswith(SEND_ONE) else words
