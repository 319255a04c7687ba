"""The stores that the conformance suite runs over here; tests/cluster/test_store.py runs it over a real HDFS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from store.local import LocalStore
from store.protocol import Store


def local(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "store")


STORES: list[Callable[[Path], Store]] = [local]


@pytest.fixture(params=STORES, ids=lambda make: make.__name__)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    made: Store = request.param(tmp_path)
    return made
