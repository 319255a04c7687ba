"""What holds for the whole suite: settings of the machine's user do not reach a test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# No deadline: the first example of a test pays for its imports.
settings.register_profile("yarnstick", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("yarnstick")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium. Where CI installs it, its absence is a failure and no skip."""
    chromium = shutil.which("chromium")
    if chromium is None:
        if "CI" in os.environ:
            pytest.fail("no chromium on PATH, and .ci/run installs it")
        pytest.skip("no chromium on PATH")
    from playwright.sync_api import sync_playwright

    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu", *quiet])
        yield started
        started.close()


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LUIGI_CONFIG_PATH", raising=False)
