"""What others have of a cluster is told from what we have, while both come and go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import ClusterError
from store.namenodes import Access
from store.retry import Patience
from tests.yarn.wrong_yarn import RECORDED, WrongYarn, cuts, refuses, says, serving
from yarn.crowd import Crowd
from yarn.crowding import Crowding, Held, Look, crowding
from yarn.resource_manager import Container, ResourceManager

OURS = "application_1795021969190_0008"
ATTEMPTS = f"apps/{OURS}/appattempts"
CONTAINERS = f"{ATTEMPTS}/appattempt_1795021969190_0008_000001/containers"
FIRST, SECOND = "localhost:26399", "127.0.0.2:26406"
NEVER = 3600.0  # a pause in which no look of the thread's own comes


@pytest.fixture
def yarn() -> Iterator[WrongYarn]:
    """Two nodes of 3 vcores. Of ours is a master on the second, and an executor on each."""
    with serving() as server:
        server.answers[ATTEMPTS] = server.answers["appattempts"]
        server.answers[CONTAINERS] = server.answers["containers"]
        ours = {"id": OURS, "queue": "root.default", "allocatedMB": 3200, "allocatedVCores": 3, "runningContainers": 3}
        server.answers["apps"] = encoded({"apps": {"app": [ours]}})
        used(server, first=1, second=2)
        yield server


def encoded(answer: Any) -> bytes:
    return json.dumps(answer).encode()


def used(yarn: WrongYarn, **vcores: int) -> None:
    """Each node has 3, of whomever."""
    told = json.loads((RECORDED / "nodes.json").read_bytes())
    for node, used in zip(told["nodes"]["node"], (vcores["first"], vcores["second"]), strict=True):
        node |= {"usedVirtualCores": used, "availableVirtualCores": 3 - used}
        node |= {"usedMemoryMB": 2048 * used, "availMemoryMB": 8192 - 2048 * used}
    yarn.answers["nodes"] = encoded(told)


def manager(yarn: WrongYarn) -> ResourceManager:
    access = Access(security="insecure", user="ada", patience=Patience(seconds=0), read_seconds=5)
    return ResourceManager((yarn.address,), access)


def crowd(yarn: WrongYarn, *, pause_seconds: float = NEVER) -> Crowd:
    return Crowd(manager(yarn), ours="yarnstick-session-a", queue="default", pause_seconds=pause_seconds)


def measured(yarn: WrongYarn) -> Crowding:
    looking = crowd(yarn)
    looking.begin()
    found = looking.end()
    assert found is not None
    return found


def test_containers_are_read_as_a_real_one_tells_them(yarn: WrongYarn) -> None:
    found = manager(yarn).containers(OURS) or []
    assert [(each.node, each.vcores, each.mib, each.is_master) for each in found] == [
        (SECOND, 1, 896, True),
        (FIRST, 1, 1152, False),
        (SECOND, 1, 1152, False),
    ]


def test_containers_as_others_tell_them(yarn: WrongYarn) -> None:
    """One as itself, numbers as text, none at all; the newest attempt is asked."""
    yarn.answers[CONTAINERS] = b'{"container":{"containerId":"c_000002","nodeId":"n:1","allocatedVCores":"2"}}'
    [only] = manager(yarn).containers(OURS) or []
    assert (only.node, only.vcores, only.mib) == ("n:1", 2, 0)
    for nothing in (b"{}", b'{"container":null}', b'{"container":[]}', b'{"container":{"containerState":"COMPLETE"}}'):
        yarn.answers[CONTAINERS] = nothing
        assert manager(yarn).containers(OURS) == []
    second = CONTAINERS.replace("_000001/", "_000002/")
    told = json.loads(yarn.answers["appattempts"])
    told["appAttempts"]["appAttempt"].append({"id": 2, "appAttemptId": "appattempt_1795021969190_0008_000002"})
    yarn.answers[ATTEMPTS] = encoded(told)
    yarn.answers[second] = b'{"container":[{"nodeId":"n:2"}]}'
    assert [each.node for each in manager(yarn).containers(OURS) or []] == ["n:2"]
    yarn.answers[ATTEMPTS] = b'{"appAttempts":null}'
    assert manager(yarn).containers(OURS) == []


def test_an_application_that_is_gone_has_none_and_who_does_not_know_them_says_so(yarn: WrongYarn) -> None:
    assert manager(yarn).containers("application_1_0001") == []
    yarn.next(says(404))
    assert manager(yarn).containers(OURS) is None


def test_alone_on_a_cluster_nobody_else_has_anything(yarn: WrongYarn) -> None:
    found = measured(yarn)
    assert (found.vcores.before, found.vcores.mean, found.vcores.largest, found.share) == (0, 0, 0, 0)
    assert (found.nodes, found.nodes_vcores, found.nodes_mib) == ((SECOND, FIRST), 6, 16384)
    assert (found.looks, found.missed) == (1, 0)


def test_others_are_those_without_our_tag(yarn: WrongYarn) -> None:
    used(yarn, first=3, second=2)
    found = measured(yarn)
    assert (found.vcores.mean, found.in_cluster.mean, found.share) == (2, 2, 2 / 6)
    assert found.mib.mean == 5 * 2048 - (896 + 2 * 1152)
    assert {given["applicationTags"] for _, path, given, _ in yarn.asked if path == "apps"} == {"yarnstick-session-a"}


def test_nodes_without_executors_of_ours_are_none_of_the_trials(yarn: WrongYarn) -> None:
    told = json.loads(yarn.answers[CONTAINERS])
    told["container"] = [each for each in told["container"] if each["nodeId"] == SECOND]
    yarn.answers[CONTAINERS] = encoded(told)
    used(yarn, first=3, second=2)
    found = measured(yarn)
    assert (found.nodes, found.nodes_vcores, found.vcores.mean) == ((SECOND,), 3, 0)
    assert (found.cluster_vcores, found.in_cluster.mean) == (6, 3)


def test_a_master_alone_is_no_executor(yarn: WrongYarn) -> None:
    told = json.loads(yarn.answers[CONTAINERS])
    yarn.answers[CONTAINERS] = encoded({"container": told["container"][:1]})
    looking = crowd(yarn)
    looking.begin()
    assert looking.end() is None


def test_before_is_what_there_was_without_us(yarn: WrongYarn) -> None:
    ours, yarn.answers["apps"] = yarn.answers["apps"], b'{"apps":null}'
    used(yarn, first=1, second=0)
    looking = crowd(yarn)
    looking.begin()
    yarn.answers["apps"] = ours
    used(yarn, first=3, second=3)
    found = looking.end()
    assert found is not None
    assert (found.vcores.before, found.vcores.mean) == (1, 3)


def test_the_share_of_the_queue_is_of_what_it_has_less_of(yarn: WrongYarn) -> None:
    told = json.loads(yarn.answers["scheduler"])
    default = told["scheduler"]["schedulerInfo"]["queues"]["queue"][0]
    assert default["maxEffectiveCapacity"]["vCores"] == 6
    default["resourcesUsed"] = {"memory": 3200 + 1024, "vCores": 3 + 3}
    yarn.answers["scheduler"] = encoded(told)
    queue = measured(yarn).queue
    assert queue is not None
    assert (queue.before, queue.mean) == (0.5, 0.5)
    default["resourcesUsed"] = {"memory": 16384, "vCores": 3}
    yarn.answers["scheduler"] = encoded(told)
    queue = measured(yarn).queue
    assert queue is not None
    assert queue.mean == pytest.approx((16384 - 3200) / 16384)
    default["queueName"] = "renamed"
    yarn.answers["scheduler"] = encoded(told)
    assert measured(yarn).queue is None


def test_where_nodes_of_ours_are_not_told_all_are_meant(yarn: WrongYarn) -> None:
    ours, yarn.answers["apps"] = yarn.answers["apps"], b'{"apps":null}'
    used(yarn, first=1, second=1)
    unknown = Crowd(_Untold((yarn.address,), Access(security="insecure")), ours="a", queue="default")
    unknown.begin()
    yarn.answers["apps"] = ours
    used(yarn, first=3, second=2)
    found = unknown.end()
    assert found is not None
    assert (found.nodes, found.nodes_vcores, found.vcores.before, found.vcores.mean) == ((), 6, 2, 2)


class _Untold(ResourceManager):
    def containers(self, id: str) -> None:
        return None


def test_looks_go_on_while_a_trial_runs(yarn: WrongYarn) -> None:
    looking = crowd(yarn, pause_seconds=0.01)
    looking.begin()
    looks = 0
    while looks < 3:
        looks = sum(path == "nodes" for _, path, _, _ in list(yarn.asked)) - 1
        Event().wait(0.01)
    found = looking.end()
    assert found is not None
    assert found.looks >= 3
    asked = len(yarn.asked)
    Event().wait(0.1)
    assert len(yarn.asked) == asked


@pytest.mark.parametrize("wrong", [cuts, says(500), refuses(403, "ForbiddenException"), says(200)])
def test_one_that_does_not_answer_is_passed_over_and_counted(yarn: WrongYarn, wrong: Any) -> None:
    looking = crowd(yarn)
    yarn.always = wrong
    looking.begin()
    assert looking.present() is None
    yarn.always = None
    found = looking.end()
    assert found is not None
    assert (found.vcores.before, found.looks, found.missed) == (None, 1, 2)
    yarn.always = wrong
    silent = crowd(yarn)
    silent.begin()
    assert silent.end() is None


def test_what_changes_during_a_look_is_looked_at_again(yarn: WrongYarn) -> None:
    """An executor that came between two answers is not taken for others'."""
    answers, without = yarn.answers, encoded({"container": json.loads(yarn.answers[CONTAINERS])["container"][:2]})

    class Growing(dict[str, bytes]):
        looks = 0

        def __getitem__(self, path: str) -> bytes:
            if path == CONTAINERS:
                self.looks += 1
                return without if self.looks == 1 else answers[path]
            return answers[path]

    yarn.answers = Growing(answers)
    present = crowd(yarn).present()
    assert present is not None
    assert (present.vcores, present.of, present.is_ours) == (0, 6, True)
    assert yarn.answers.looks == 4


def test_before_we_are_on_any_node_all_nodes_are_looked_at(yarn: WrongYarn) -> None:
    yarn.answers["apps"] = b'{"apps":null}'
    used(yarn, first=3, second=0)
    present = crowd(yarn).present()
    assert present is not None
    assert (present.vcores, present.of, present.is_ours, present.share) == (3, 6, False, 0.5)


def test_a_node_that_is_lost_was_one_of_ours() -> None:
    room, gone = {"a": Held(4, 8), "b": Held(4, 8)}, {"a": Held(4, 8), "b": Held()}
    looks = [
        Look(others={"a": Held(1), "b": Held(2)}, room=room, ours=frozenset("ab"), queue=None),
        Look(others={"a": Held(2), "b": Held()}, room=gone, ours=frozenset("a"), queue=None),
    ]
    found = crowding(None, looks)
    assert found is not None
    assert (found.nodes, found.nodes_vcores, found.vcores.mean, found.vcores.largest) == (("a", "b"), 8, 2.5, 3)
    assert (found.vcores.before, found.queue, found.cluster_vcores) == (None, None, 4)


ANY = st.recursive(
    st.none() | st.integers(-(2**70), 2**70) | st.text(max_size=3),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(st.sampled_from(["container", "containerId", "nodeId", "allocatedVCores"]), each, max_size=3)
    ),
)


@pytest.fixture(scope="module")
def strange() -> Iterator[WrongYarn]:
    with serving() as server:
        server.answers[ATTEMPTS] = server.answers["appattempts"]
        yield server


@given(st.binary(max_size=40) | ANY.map(lambda each: encoded({"container": each})))
def test_no_answer_ends_in_anything_but_containers_or_our_error(strange: WrongYarn, body: bytes) -> None:
    strange.answers[CONTAINERS] = body
    try:
        found = manager(strange).containers(OURS) or []
    except ClusterError:
        return
    assert all(isinstance(each, Container) for each in found)


HELD = st.builds(Held, st.integers(0, 64).map(float), st.integers(0, 2**20).map(float))
NODES = st.dictionaries(st.sampled_from("abcd"), HELD)
LOOKS = st.builds(
    Look,
    others=NODES,
    room=NODES,
    ours=st.frozensets(st.sampled_from("abcd")),
    queue=st.none() | st.floats(0, 1),
)


@given(st.none() | LOOKS, st.lists(LOOKS, max_size=5))
def test_means_lie_between_nothing_and_the_largest(before: Look | None, during: list[Look]) -> None:
    found = crowding(before, during)
    assert (found is None) == (not any(look.ours for look in during))
    if found is not None:
        assert (found.vcores.before is None) == (before is None)
        for each in filter(None, (found.vcores, found.mib, found.in_cluster, found.queue)):
            assert 0 <= each.mean <= each.largest * (1 + 1e-9)
        assert found.vcores.largest <= found.in_cluster.largest
        assert found.looks <= len(during)
