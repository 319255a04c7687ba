"""A trial on a cluster that is others' too: it waits, is flagged, and its records say what others had."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from models.outcome import Outcome
from models.protocol import Surroundings, Yarn
from models.run import Event, Session
from pipeline.launch import Launcher
from store.opening import Reach
from tests.pipeline.place import install
from tests.pipeline.test_launch import DATA, spec
from tests.yarn.wrong_yarn import WrongYarn, says, serving
from yarn.shipped import Shipped

ID = "application_1795021969190_0008"


@pytest.fixture
def yarn() -> Iterator[WrongYarn]:
    """It has 6 vcores on two nodes, of which all applications of whatever tag are said to have 3."""
    with serving() as server:
        server.answers[f"apps/{ID}/appattempts"] = server.answers["appattempts"]
        server.answers[f"apps/{ID}/appattempts/appattempt_{ID[12:]}_000001/containers"] = server.answers["containers"]
        server.answers["apps"] = json.dumps({"apps": {"app": [{"id": ID, "queue": "root.default"}]}}).encode()
        yield server


def used(yarn: WrongYarn, *vcores: int) -> None:
    told = json.loads(yarn.answers["nodes"])
    for node, number in zip(told["nodes"]["node"], vcores, strict=True):
        node |= {"usedVirtualCores": number, "availableVirtualCores": 3 - number}
    yarn.answers["nodes"] = json.dumps(told).encode()


Measure = Callable[..., tuple[Outcome, list[Event]]]


@pytest.fixture
def measure(tmp_path: Path, yarn: WrongYarn, monkeypatch: pytest.MonkeyPatch) -> Measure:
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "packages")))
    monkeypatch.setenv("MADE_NOTES", str(tmp_path / "notes"))

    def measured(*, quiet_seconds: float = 0.0) -> tuple[Outcome, list[Event]]:
        work, heard = tmp_path / "work", list[Event]()
        session = Session(
            run_id="R",
            machine="here",
            machine_memory_gb=1.0,
            commit=None,
            session="own",
            noisy_cores=1000.0,
            datasets={"made": DATA},
            surroundings=Surroundings(work=work, spark_conf={}, archives=work, yarn=on(yarn, work)),
            parent=os.getpid(),
            quiet_share=0.05,
            quiet_seconds=quiet_seconds,
        )
        launcher = Launcher(session=session, shares_sessions=False, work=work, invocation="now", listener=heard.append)
        return launcher.measure(spec(), position=1).outcome, heard

    return measured


def on(yarn: WrongYarn, work: Path) -> Yarn:
    return Yarn(
        reach=Reach(url=work.as_uri(), security="insecure", user="ada"),
        folder="runs/R",
        jars="",
        queue="default",
        resource_managers=(yarn.address,),
        accepted_seconds=1,
        python="python",
        shipped=Shipped(),
    )


def test_what_others_had_is_in_the_records_and_makes_it_noisy(yarn: WrongYarn, measure: Measure) -> None:
    used(yarn, 3, 2)
    outcome, _ = measure()
    assert (outcome.outcome, outcome.noisy, outcome.noise) == ("ok", True, "cluster")
    assert outcome.crowding is not None
    assert outcome.crowding.vcores.mean == 2
    for record in outcome.records:
        assert (record.noisy, record.noise, record.others_vcores_before) == (True, "cluster", 2)
        assert (record.others_vcores, record.nodes_vcores) == (2, 6)
        assert record.queue_used_by_others is not None
    assert Outcome.decode(outcome.encode()) == outcome
    [tag] = {given["applicationTags"] for _, path, given, _ in yarn.asked if path == "apps"}
    assert tag.startswith("yarnstick-session-")
    assert len(tag) > len("yarnstick-session-")


def test_alone_it_is_quiet(yarn: WrongYarn, measure: Measure) -> None:
    used(yarn, 1, 2)
    outcome, heard = measure(quiet_seconds=60)
    assert (outcome.noisy, outcome.noise, outcome.records[0].others_vcores) == (False, None, 0)
    assert "waits" not in [event.kind for event in heard]


def test_it_waits_as_long_as_asked_for_and_says_so_once(yarn: WrongYarn, measure: Measure) -> None:
    used(yarn, 3, 3)
    outcome, heard = measure(quiet_seconds=3)
    assert outcome.noise == "cluster"
    assert [event.kind for event in heard][:2] == ["waits", "begun"]
    assert heard[0].note == "waits for the cluster, at most 3 s: others have 3 of 6 vcores of its nodes"


def test_before_there_are_executors_it_waits_for_all_nodes(yarn: WrongYarn, measure: Measure) -> None:
    yarn.answers["apps"] = b'{"apps":null}'
    used(yarn, 3, 0)
    outcome, heard = measure(quiet_seconds=1)
    assert heard[0].note == "waits for the cluster, at most 1 s: others have 3 of 6 vcores of the cluster"
    assert (outcome.noisy, outcome.crowding, outcome.records[0].others_vcores) == (False, None, None)


def test_a_resource_manager_that_does_not_answer_disturbs_no_trial(yarn: WrongYarn, measure: Measure) -> None:
    yarn.always = says(500)
    outcome, heard = measure(quiet_seconds=60)
    assert (outcome.outcome, outcome.noisy, outcome.crowding) == ("ok", False, None)
    assert "waits" not in [event.kind for event in heard]
