"""One of an executor's processes trains, until it gives up or is gone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.ranks.trainer import Claim
from tests.pipeline.place import TOP

SIBLING = """
from models.ranks.trainer import CLAIM
while True:
    asked = input()
    print(CLAIM.give_up() if asked == "give up" else CLAIM.is_mine(int(asked), otherwise=False), flush=True)
"""


class Sibling:
    """A process of the same executor: a child of the same parent, in the same directory."""

    def __init__(self, folder: Path) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", SIBLING]
        environment = {"PYTHONPATH": str(TOP)}
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=folder, env=environment)

    def asked(self, what: int | str) -> str:
        """Whether it trains a stage, or to give up."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@pytest.fixture
def siblings(tmp_path: Path) -> Iterator[tuple[Sibling, Sibling]]:
    both = Sibling(tmp_path), Sibling(tmp_path)
    yield both
    for each in both:
        each.process.kill()
        each.process.communicate()


def test_who_trained_trains_again_whoever_asks_first(siblings: tuple[Sibling, Sibling]) -> None:
    one, other = siblings
    assert [one.asked(1), other.asked(1), other.asked(2), one.asked(2)] == ["True", "False", "False", "True"]


def test_a_stage_is_trained_once(siblings: tuple[Sibling, Sibling]) -> None:
    """Where one task has trained before another one begins, both may be given to one process."""
    one, other = siblings
    assert [one.asked(1), one.asked(1), other.asked(1), one.asked(2)] == ["True", "False", "False", "True"]


def test_who_gives_up_leaves_it_to_the_next(siblings: tuple[Sibling, Sibling]) -> None:
    one, other = siblings
    assert [one.asked(1), one.asked("give up"), other.asked(2), one.asked(3)] == ["True", "None", "True", "False"]


def test_who_is_gone_has_given_up(siblings: tuple[Sibling, Sibling]) -> None:
    one, other = siblings
    assert one.asked(1) == "True"
    one.process.kill()
    one.process.wait()
    assert other.asked(2) == "True"


@pytest.mark.parametrize("otherwise", [True, False])
def test_without_a_place_for_the_lock_the_first_task_trains(
    otherwise: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert Claim().is_mine(1, otherwise=otherwise) is otherwise
