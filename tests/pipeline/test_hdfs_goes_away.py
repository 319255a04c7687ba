"""HDFS goes away while trials remain: one error, soon, whatever is still to be asked; then the same command goes on."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.pipeline.place import LUIGI, PROFILE, Place, eventually, finish
from tests.store.wrong_hdfs import CutError, Handler, Namespace, WrongHdfs, cuts, serving

RETRY_SECONDS = 5
SETTINGS = """
[yarnstick.store]
url = webhdfs://{authority}/ours
security = insecure
retry_seconds = {retry_seconds}
"""
LINE = ("--profile", "tiny", "--run-id", "R")
TRIALS = "/ours/runs/R/trials"


@pytest.fixture
def hdfs() -> Iterator[WrongHdfs]:
    with serving() as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, hdfs: WrongHdfs) -> Iterator[Place]:
    """Four trials."""
    authority = hdfs.address.removeprefix("http://")
    made = Place(tmp_path, PROFILE + SETTINGS.format(authority=authority, retry_seconds=RETRY_SECONDS))
    yield made
    made.end()


def published(space: Namespace) -> list[str]:
    return [path for path in list(space.nodes) if path.startswith(f"{TRIALS}/") and path.endswith("/outcome.json")]


def go_away(server: WrongHdfs) -> None:
    server.always["*"] = cuts  # what is connected already
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("command", ["yarnstick", "luigi"])
def test_it_is_told_once_and_waited_for_once(place: Place, hdfs: WrongHdfs, command: str) -> None:
    place.hold()
    process = start(place, command)
    eventually(lambda: published(hdfs.namespace) or process.poll() is not None)
    assert process.poll() is None, finish(process)
    go_away(hdfs)
    place.go_on()
    done = finish(process)
    assert waits(done) == 1
    assert done.returncode == 1, done.stdout
    assert_one_error_line(done, hdfs)
    assert len(place.trained()) < 4


@pytest.mark.parametrize("command", ["yarnstick", "luigi"])
def test_so_it_is_while_luigi_plans(place: Place, hdfs: WrongHdfs, command: str) -> None:
    def wrong(handler: Handler, right: Callable[[], None]) -> None:
        if "/data/" in handler.path:
            hdfs.always["*"] = cuts
            raise CutError
        right()

    hdfs.always["GETFILESTATUS"] = wrong
    done = finish(start(place, command))
    assert waits(done) <= 2, "for the data, and once more by Luigi itself"
    assert done.returncode != 0, done.stdout
    assert_one_error_line(done, hdfs)
    assert place.trained() == []


def start(place: Place, command: str) -> subprocess.Popen[str]:
    if command == "luigi":
        return place.start(*LINE, "--local-scheduler", command=LUIGI)
    return place.start("run", *LINE)


def waits(done: subprocess.CompletedProcess[str]) -> int:
    return (done.stdout + done.stderr).count("; waiting for it")


def assert_one_error_line(done: subprocess.CompletedProcess[str], hdfs: WrongHdfs) -> None:
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    [error] = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert hdfs.address in error
