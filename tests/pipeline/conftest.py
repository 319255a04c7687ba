"""What the tests of the commands share: a place of their own, and one run that ended well."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pipeline.place import PROFILE, Place


@dataclass(frozen=True)
class Finished:
    """Tests look at it and leave it as it is."""

    place: Place
    done: subprocess.CompletedProcess[str]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "place")
    yield made
    made.end()


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The run R of a platform of ours and one of another package."""
    settings = PROFILE.replace("platforms = steady", "platforms = torch-cpu steady")
    place = Place(tmp_path_factory.mktemp("finished"), settings)
    done = place.run("run", "--profile", "tiny", "--run-id", "R")
    assert done.returncode == 0, done.stderr
    return Finished(place=place, done=done)
