"""docs/faults.md names the tests that show each fault: these are there."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).parent.parent
NAME = re.compile(r"(?P<file>tests/[\w/]+\.py)|`(?P<test>test_\w+)`|(?P<joined> and )")


def named(page: str) -> list[tuple[str, str]]:
    """Each test with its file; of `a.py and b.py: x` both have it."""
    found: list[tuple[str, str]] = []
    for row in page.splitlines():
        files: list[str] = []
        joined = False
        for match in NAME.finditer(row.rpartition(" | ")[2] if row.startswith("| ") else ""):
            if match["file"]:
                files = [*files, match["file"]] if joined else [match["file"]]
            elif match["test"]:
                found += [(file, match["test"]) for file in files]
            joined = bool(match["joined"])
    return found


def test_every_test_that_is_named_is_there() -> None:
    tests = named((TOP / "docs" / "faults.md").read_text(encoding="utf-8"))
    assert len(tests) > 80
    missing = [(file, test) for file, test in tests if f"def {test}(" not in (TOP / file).read_text(encoding="utf-8")]
    assert missing == []


def test_the_check_sees() -> None:
    row = (
        "| 1 | it `test_not_here` breaks | told | tests/a.py and tests/b.py: `test_x`; tests/c.py: `test_y`, `test_z` |"
    )
    ours = [("tests/a.py", "test_x"), ("tests/b.py", "test_x"), ("tests/c.py", "test_y"), ("tests/c.py", "test_z")]
    assert named(row.removesuffix(" |")) == ours
