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
from tests.made_clock import MadeClock
from tests.pipeline.place import eventually
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


class Clock(MadeClock):
    """Its own sleeping is short and real; the test says how late it is."""

    def sleep(self, seconds: float) -> None:
        time.sleep(0.01)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("yarn.submission.time", made)
    return made


@pytest.fixture
def submission(yarn: WrongYarn, clock: Clock) -> Iterator[Submission]:
    made = Submission((yarn.address,), ACCESS, queue="narrow", accepted_seconds=ACCEPTED_SECONDS)
    yield made
    made.end()


@pytest.fixture
def passes(yarn: WrongYarn, clock: Clock) -> Callable[[float], None]:
    def passes(seconds: float) -> None:
        """That much later, and what is so then was seen: two requests have begun since."""
        clock.now += seconds
        seen = len(yarn.asked)
        eventually(lambda: len(yarn.asked) >= seen + 2)

    return passes


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
    yarn: WrongYarn,
    submission: Submission,
    clock: Clock,
    becomes: Callable[[str], None],
    passes: Callable[[float], None],
) -> None:
    """As after a failover, or when its master died and another one is to come."""
    gone = Event()
    becomes("ACCEPTED")
    submission.watch(gone=gone.set)
    passes(0)
    passes(0.6 * ACCEPTED_SECONDS)
    becomes("RUNNING")
    passes(0)
    passes(ACCEPTED_SECONDS)
    becomes("ACCEPTED")
    passes(0)
    passes(0.9 * ACCEPTED_SECONDS)
    assert not gone.is_set()
    assert not killed(yarn)
    clock.now += 0.2 * ACCEPTED_SECONDS
    assert gone.wait(30)
    assert killed(yarn)
    assert str(submission.lost).startswith(f"queue narrow had no room for {ENDED} within 1 s (state ACCEPTED")


def test_it_does_not_wait_before_it_is_there(
    yarn: WrongYarn, submission: Submission, clock: Clock, passes: Callable[[float], None]
) -> None:
    """Its files are sent before it is submitted, however long that takes."""
    gone = Event()
    told = yarn.answers["apps"]
    yarn.answers["apps"] = b'{"apps":null}'
    submission.watch(gone=gone.set)
    passes(1.5 * ACCEPTED_SECONDS)
    yarn.answers["apps"] = told
    passes(0)
    passes(0.9 * ACCEPTED_SECONDS)
    assert not gone.is_set()
    clock.now += 0.2 * ACCEPTED_SECONDS
    assert gone.wait(30)
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
