"""What holds for the whole suite: settings of the machine's user do not reach a test."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# No deadline: the first example of a test pays for its imports.
settings.register_profile("yarnstick", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("yarnstick")


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LUIGI_CONFIG_PATH", raising=False)
