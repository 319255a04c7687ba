"""How long an application may wait for its queue, and which ones are orphans of ours, as a ResourceManager tells."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from threading import Event

import pytest

from store.namenodes import Access
from store.retry import Patience
from tests.yarn.wrong_yarn import ENDED, Handler, WrongYarn, refuses, serving
from yarn.resource_manager import ResourceManager
from yarn.submission import Submission, end_orphans, new_tag

ACCEPTED_SECONDS = 1.0
ACCESS = Access(security="insecure", user="ada", patience=Patience(seconds=5))
STATE = f"apps/{ENDED}/state"


@pytest.fixture
def yarn() -> Iterator[WrongYarn]:
    with serving() as server:
        yield server


@pytest.fixture
def submission(yarn: WrongYarn, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submission]:
    monkeypatch.setattr("yarn.submission.POLL_SECONDS", 0.02)
    monkeypatch.setattr("yarn.submission.RUNNING_POLL_SECONDS", 0.02)
    made = Submission((yarn.address,), ACCESS, queue="narrow", accepted_seconds=ACCEPTED_SECONDS)
    yield made
    made.end()


@pytest.fixture
def becomes(yarn: WrongYarn) -> Callable[[str], None]:
    """The only application that there is."""

    def becomes(state: str) -> None:
        told = json.loads(yarn.answers["apps"])
        told["apps"]["app"][0]["state"] = state
        yarn.answers["apps"] = json.dumps(told).encode()

    return becomes


def killed(yarn: WrongYarn) -> bool:
    return ("PUT", STATE) in [(method, path) for method, path, _, _ in yarn.asked]


def test_one_that_waits_again_has_its_time_once_more(
    yarn: WrongYarn, submission: Submission, becomes: Callable[[str], None]
) -> None:
    """As after a failover, or when its master died and another one is to come."""
    gone = Event()
    becomes("ACCEPTED")
    submission.watch(gone=gone.set)
    time.sleep(ACCEPTED_SECONDS / 2)
    becomes("RUNNING")
    time.sleep(ACCEPTED_SECONDS)
    becomes("ACCEPTED")
    assert not gone.wait(ACCEPTED_SECONDS / 2)
    assert not killed(yarn)
    assert gone.wait(10 * ACCEPTED_SECONDS)
    assert killed(yarn)
    assert str(submission.lost).startswith(f"queue narrow had no room for {ENDED} within 1 s (state ACCEPTED")


def test_it_does_not_wait_before_it_is_there(
    yarn: WrongYarn, submission: Submission, becomes: Callable[[str], None]
) -> None:
    """Its files are sent before it is submitted, however long that takes."""
    gone = Event()
    told = yarn.answers["apps"]
    yarn.answers["apps"] = b'{"apps":null}'
    submission.watch(gone=gone.set)
    time.sleep(ACCEPTED_SECONDS * 1.5)
    yarn.answers["apps"] = told
    assert not gone.wait(ACCEPTED_SECONDS / 2)
    assert gone.wait(10 * ACCEPTED_SECONDS)
    assert killed(yarn)


def dead_tag() -> str:
    """As a process had it that is no more."""
    dead = subprocess.run(
        [sys.executable, "-c", "from yarn.submission import new_tag; print(new_tag())"],
        capture_output=True,
        text=True,
        check=True,
    )
    return dead.stdout.strip()


def applications(yarn: WrongYarn, *told: tuple[str, str]) -> list[str]:
    """One for each user and tag; their ids."""
    ids = [f"application_1_{number:04}" for number in range(1, len(told) + 1)]
    apps = [
        {"id": id, "user": user, "state": "RUNNING", "applicationTags": tag}
        for id, (user, tag) in zip(ids, told, strict=True)
    ]
    yarn.answers["apps"] = json.dumps({"apps": {"app": apps}}).encode()
    for id in ids:
        yarn.answers[f"apps/{id}/state"] = b'{"state":"KILLED"}'
    return ids


def asked_to_kill(yarn: WrongYarn) -> list[str]:
    return [path.split("/")[1] for method, path, _, _ in yarn.asked if method == "PUT"]


def test_orphans_are_of_this_host_and_this_user_and_of_processes_that_are_dead(yarn: WrongYarn) -> None:
    dead = dead_tag()
    host = socket.gethostname().lower()
    assert host in dead
    elsewhere = dead.replace(f".{host}.", ".somewhere-else.")
    left, *_ = applications(
        yarn, ("ada", dead), ("grace", dead), ("ada", new_tag()), ("ada", elsewhere), ("ada", "mine"), ("ada", "")
    )
    told = end_orphans(ResourceManager((yarn.address,), ACCESS), user="ada")
    assert told == [f"{left} was left by a run that was killed, and is ended now"]
    assert asked_to_kill(yarn) == [left]
    assert yarn.asked[0][2]["user"] == "ada", "others' are not even asked for"


def test_an_orphan_that_cannot_be_killed_is_told_and_stops_nothing(yarn: WrongYarn) -> None:
    dead = dead_tag()
    first, second = applications(yarn, ("ada", dead), ("ada", dead))

    def wrong(handler: Handler) -> None:
        path = re.sub(r"^/ws/v1/cluster/|\?.*$", "", handler.path)
        if path == f"apps/{first}/state":
            refuses(403, "ForbiddenException", "not yours")(handler)
        else:
            handler.send(200, yarn.answers[path])

    yarn.always = wrong
    told = end_orphans(ResourceManager((yarn.address,), ACCESS), user="ada")
    assert [each.split()[0] for each in told] == [first, second]
    assert f"does not let ada kill it (not yours); kill it with yarn application -kill {first}" in told[0]
    assert told[1].endswith("and is ended now")
    assert asked_to_kill(yarn) == [first, second]
