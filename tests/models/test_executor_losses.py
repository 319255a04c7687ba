"""How a fit that loses executors again and again is ended, by a log as Spark writes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from models import executor_losses
from models.executor_losses import Losses, Removals, most

GONE = b'{"Event":"SparkListenerExecutorRemoved","Timestamp":1,"Executor ID":"0","Removed Reason":"code 52"}\n'
TASK = b'{"Event":"SparkListenerTaskEnd","Stage ID":1}\n'


class Application:
    """What of one is looked at."""

    def __init__(self, log: Path, *, gives_up: bool = False) -> None:
        self.master: Any = SimpleNamespace(event_log=lambda: log, gives_up=gives_up)
        self.resources = SimpleNamespace(executors=1)
        self.cancelled = Event()
        self.session = SimpleNamespace(sparkContext=SimpleNamespace(cancelAllJobs=self.cancelled.set))


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(executor_losses, "POLL_SECONDS", 0.01)
    path = tmp_path / "app-1"
    path.write_bytes(GONE * 9)  # before the fit
    return path


def append(path: Path, lines: bytes) -> None:
    with path.open("ab") as file:
        file.write(lines)


@pytest.fixture
def watched(log: Path) -> Callable[[bytes], tuple[Application, Losses]]:
    def ended(lines: bytes, *, seconds: float = 0.5, **about: bool) -> tuple[Application, Losses]:
        made = Application(log, **about)
        with Losses(made) as losses:  # type: ignore[arg-type]
            append(log, lines)
            made.cancelled.wait(seconds)
        return made, losses

    return ended


def test_only_whole_lines_that_are_new_are_counted(log: Path) -> None:
    removals = Removals(Application(log).master)
    assert removals.new() == 9
    append(log, TASK + GONE + GONE[:60])
    assert removals.new() == 1
    append(log, GONE[60:] + TASK)
    assert removals.new() == 1
    assert removals.new() == 0


def test_one_executor_too_many_ends_the_fit(watched: Callable[..., tuple[Application, Losses]]) -> None:
    application, losses = watched(GONE * (most(1) + 1), seconds=30)
    assert application.cancelled.is_set()
    assert str(losses.too_many).startswith("4 executors were lost one after the other; ")


def test_a_few_do_not(watched: Callable[..., tuple[Application, Losses]]) -> None:
    application, losses = watched(GONE * most(1))
    assert (application.cancelled.is_set(), losses.too_many) == (False, None)


def test_who_gives_up_by_itself_is_left_alone(watched: Callable[..., tuple[Application, Losses]]) -> None:
    application, losses = watched(GONE * 50, gives_up=True)
    assert (application.cancelled.is_set(), losses.too_many) == (False, None)
