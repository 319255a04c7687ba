"""What YARN granted and what it ended, by a ResourceManager that answers as one did. Real ones are in tests/cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from models import spark_application
from models.event_log import Application, Executor
from models.platforms.mllib import MLlib
from models.protocol import Surroundings, TaintedError, Yarn
from models.spark_application import SparkApplication
from models.spark_on_yarn import ClientMode, ClusterMode
from models.spec import Resources
from store.opening import Reach
from tests.models.made import packed, spec, surroundings
from tests.yarn.wrong_yarn import WrongYarn, refuses, serving
from yarn.shipped import Shipped

OURS = "application_1795021969190_0008"
ATTEMPTS = f"apps/{OURS}/appattempts"
CONTAINERS = f"{ATTEMPTS}/appattempt_1795021969190_0008_000001/containers"
# As recorded: two executors, each in a container of 1152 MiB.
AS_RECORDED = Resources(executors=2, cores=1, memory_mib=768, deploy_mode="client")


@pytest.fixture
def yarn() -> Iterator[WrongYarn]:
    with serving() as server:
        server.answers[ATTEMPTS] = server.answers["appattempts"]
        server.answers[CONTAINERS] = server.answers["containers"]
        told(server, state="RUNNING", allocatedVCores=3)
        yield server


def told(yarn: WrongYarn, **values: Any) -> None:
    """Of our application, whoever asks for it, by its id or its tag."""
    ours = {"id": OURS, "queue": "root.default", "finalStatus": "UNDEFINED", **values}
    yarn.answers[f"apps/{OURS}"] = json.dumps({"app": ours}).encode()
    yarn.answers["apps"] = json.dumps({"apps": {"app": [ours]}}).encode()


def on(server: WrongYarn, folder: Path, **changes: Any) -> tuple[Surroundings, Yarn]:
    made = Yarn(
        reach=Reach(url="webhdfs://127.0.0.1:1/s", security="insecure", user="ada", retry_seconds=0, cache=folder),
        folder="applications",
        jars="",
        queue="default",
        resource_managers=(server.address,),
        accepted_seconds=60.0,
        python="python3",
        shipped=Shipped(),
    )
    return surroundings(folder, yarn=made, **changes), made


def granted(server: WrongYarn, folder: Path, resources: Resources, **changes: Any) -> tuple[int, int, str | None]:
    mode = ClusterMode(*on(server, folder, **changes))
    mode.conf(resources)
    mode.started(OURS)
    return mode.granted(Application(executors=[Executor(name=name, host="n", cores=1, added=0.0) for name in "12"]))


def test_what_is_granted_as_asked_is_not_spoken_of(yarn: WrongYarn, tmp_path: Path) -> None:
    assert granted(yarn, tmp_path, AS_RECORDED) == (2, 2, None)


def test_other_memory_than_was_asked_for_is_told(yarn: WrongYarn, tmp_path: Path) -> None:
    less = Resources(executors=2, cores=1, memory_mib=640, deploy_mode="client")
    said = "YARN granted executors containers of 1152 MiB, and 1024 MiB were asked for"
    assert granted(yarn, tmp_path, less) == (2, 2, said)
    own = {"spark.executor.memoryOverhead": "512m"}
    assert granted(yarn, tmp_path, less, spark_conf=own) == (2, 2, None)


def test_fewer_cores_and_other_memory_are_both_told(yarn: WrongYarn, tmp_path: Path) -> None:
    told(yarn, state="RUNNING", allocatedVCores=2)
    less = Resources(executors=2, cores=1, memory_mib=640, deploy_mode="client")
    executors, cores, said = granted(yarn, tmp_path, less)
    assert (executors, cores) == (2, 1)
    first, _, second = str(said).partition(" | ")
    assert first.startswith("YARN granted 1 vcores for 2 executors with 2 cores in all")
    assert second.startswith("YARN granted executors containers of 1152 MiB")


def test_a_yarn_that_does_not_tell_of_containers_fails_no_trial(yarn: WrongYarn, tmp_path: Path) -> None:
    yarn.answers.pop(CONTAINERS)
    assert granted(yarn, tmp_path, AS_RECORDED) == (2, 2, None)
    yarn.answers[ATTEMPTS] = b"no JSON"
    assert granted(yarn, tmp_path, AS_RECORDED) == (2, 2, None)
    mode = ClusterMode(*on(yarn, tmp_path))
    mode.conf(AS_RECORDED)
    mode.started(OURS)
    yarn.next(lambda handler: handler.send(200, yarn.answers[f"apps/{OURS}"]), refuses(403, "AccessControlException"))
    assert mode.granted(Application())[2] is None


def test_who_may_wait_hears_of_an_end_that_the_watch_has_not_seen_yet(yarn: WrongYarn, tmp_path: Path) -> None:
    mode = ClientMode(*on(yarn, tmp_path))
    mode._submission.watch(gone=lambda: None)
    told(yarn, state="KILLED", finalStatus="KILLED", diagnostics="Application killed by user ada")
    assert mode.lost() is None
    assert f"{OURS} ended as KILLED before its work was done" in str(mode.lost(within_seconds=30))


@pytest.mark.parametrize("has_stopped", [True, False])
def test_a_trial_waits_for_the_watch_only_where_spark_has_stopped(
    has_stopped: bool, yarn: WrongYarn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error comes with Spark's own end, a second after YARN's; the watch of ours looks every three."""
    here, made = on(yarn, tmp_path / "session")
    mode = ClientMode(here, made)
    told(yarn, state="KILLED", finalStatus="KILLED")
    data, trainer = packed(tmp_path / "data"), MLlib(here)

    def fails(*_: object) -> None:
        mode._submission.watch(gone=lambda: None)  # its first look is a second away
        raise ZeroDivisionError

    application = SparkApplication.__new__(SparkApplication)
    application.master, application.resources = mode, spec("mllib").resources
    context = SimpleNamespace(
        _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: has_stopped)), setJobGroup=lambda *_: None
    )
    application.session = SimpleNamespace(sparkContext=context)  # type: ignore[assignment]
    monkeypatch.setattr(SparkApplication, "shared", lambda *_: application)
    monkeypatch.setattr(SparkApplication, "stop", lambda *_: None)
    monkeypatch.setattr(spark_application, "LOST_SECONDS", 30.0)
    monkeypatch.setattr(mode, "rows", fails)
    # Any error of Spark's; the store that nobody serves has no event log to look at.
    with pytest.raises(TaintedError if has_stopped else ZeroDivisionError):
        list(trainer.train(spec("mllib"), data))
