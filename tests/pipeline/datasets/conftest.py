"""What the tests of the data share: settings as shipped, a store, and MNIST, fetched once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.config import read_settings
from pipeline.datasets.mnist import Mnist
from pipeline.datasets.progress import Progress
from pipeline.settings import Settings
from store.local import LocalStore

Make = Callable[..., Settings]


class Told(Progress):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """The settings as shipped, with some replaced; nothing is kept outside of the test's directory."""
    monkeypatch.chdir(tmp_path)

    def make(*overrides: str) -> Settings:
        return read_settings("quick", overrides=[f"cache={tmp_path / 'cache'}", *overrides])

    return make


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture(scope="session")
def mnist_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real MNIST from wherever it is to be had; this fails, and is not skipped, where there is none."""
    cache = tmp_path_factory.mktemp("mnist")
    settings = read_settings("quick", overrides=[f"cache={cache}", "mnist.source_seconds=5"])
    Mnist(settings, progress=Told()).fetch()
    return cache
