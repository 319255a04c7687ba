"""Answers of a ResourceManager, as recorded, and as they go wrong. The real one is asked in tests/cluster."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import ClusterError, SettingError
from store.namenodes import Access
from store.retry import Patience
from tests.yarn.wrong_yarn import (
    ENDED,
    WrongYarn,
    cuts,
    cuts_halfway,
    finds_no_active_one,
    hangs,
    refuses,
    says,
    sends_on,
    serving,
)
from yarn.resource_manager import Application, Node, ResourceManager

QUICK = Patience(seconds=5, shortest_seconds=0.001, longest_seconds=0.01)
ONCE = Patience(seconds=0)


@pytest.fixture
def yarn() -> Iterator[WrongYarn]:
    with serving() as server:
        yield server


@pytest.fixture
def other() -> Iterator[WrongYarn]:
    with serving() as server:
        yield server


def asking(
    *addresses: str, patience: Patience = QUICK, security: str = "insecure", read_seconds: float = 10.0
) -> ResourceManager:
    return ResourceManager(
        addresses,
        Access(
            security=security,  # type: ignore[arg-type]
            user="ada",
            patience=patience,
            connect_seconds=10.0,
            read_seconds=read_seconds,
        ),
    )


def nowhere() -> str:
    """An address at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_what_a_real_one_told_is_read(yarn: WrongYarn) -> None:
    manager = asking(yarn.address)
    assert manager.information().version == "3.5.0"
    assert manager.information().state == "STARTED"
    metrics = manager.metrics()
    assert (metrics.total_mib, metrics.allocated_mib, metrics.available_mib) == (16384, 1024, 15360)
    assert (metrics.total_vcores, metrics.allocated_vcores, metrics.active_nodes, metrics.running) == (6, 2, 2, 2)
    assert [(node.host, node.state, node.total_mib, node.total_vcores) for node in manager.nodes()] == [
        ("localhost", "RUNNING", 8192, 3),
        ("127.0.0.2", "RUNNING", 8192, 3),
    ]
    assert manager.nodes()[0].resources == {"memory-mb": 8192, "vcores": 3}
    [application] = manager.applications(tag="yarnstick-a1", states=("ACCEPTED", "RUNNING"))
    assert (application.state, application.tags, application.queue) == ("ACCEPTED", ("yarnstick-a1",), "root.narrow")
    assert (application.allocated_mib, application.allocated_vcores, application.containers) == (256, 1, 1)
    assert not application.has_ended
    assert yarn.asked[-1][2] == {
        "deSelects": "resourceRequests",
        "applicationTags": "yarnstick-a1",
        "states": "ACCEPTED,RUNNING",
        "user.name": "ada",
    }


def test_an_application_that_ended_has_nothing_any_more(yarn: WrongYarn) -> None:
    application = asking(yarn.address).application(ENDED)
    assert application.has_ended
    assert (application.final_status, application.allocated_mib, application.containers) == ("KILLED", 0, 0)
    assert "was killed by user" in application.diagnostics


def test_an_older_hadoop_tells_less(yarn: WrongYarn) -> None:
    yarn.answers["apps"] = b'{"apps":null}'
    yarn.answers["nodes"] = b'{"nodes":null}'
    yarn.answers["metrics"] = b'{"clusterMetrics":{"totalMB":"8192","some":{"thing":[1]}}}'
    manager = asking(yarn.address)
    assert manager.applications() == []
    assert manager.nodes() == []
    assert (manager.metrics().total_mib, manager.metrics().lost_nodes) == (8192, 0)
    yarn.answers["apps"] = b'{"apps":{"app":[{"id":"application_1_0001"}]}}'
    assert manager.applications() == [Application(id="application_1_0001")]


def test_a_gpu_of_a_node_is_seen(yarn: WrongYarn) -> None:
    told = json.loads(yarn.answers["nodes"])
    for part, value in (("usedResource", 1), ("availableResource", 3)):
        told["nodes"]["node"][0][part]["resourceInformations"]["resourceInformation"].append(
            {"name": "yarn.io/gpu", "value": value, "units": ""}
        )
    yarn.answers["nodes"] = json.dumps(told).encode()
    assert asking(yarn.address).nodes()[0].resources["yarn.io/gpu"] == 4


def test_a_number_that_is_none_spoils_nothing(yarn: WrongYarn) -> None:
    yarn.answers["scheduler"] = yarn.answers["scheduler"].replace(b": 20.833652", b":NaN")
    assert asking(yarn.address).queue("default").capacity == 80.0


def test_a_queue_is_found_by_name_and_by_path(yarn: WrongYarn) -> None:
    manager = asking(yarn.address)
    assert manager.queue("narrow") == manager.queue("root.narrow")
    with pytest.raises(
        SettingError,
        match=rf"^yarnstick\.hadoop\.queue=wide is no leaf queue of {yarn.address}; set it to one of default, narrow$",
    ):
        manager.queue("wide")
    with pytest.raises(SettingError, match=r"queue=root is no leaf queue"):
        manager.queue("root")


def test_the_largest_container_is_the_clusters_where_no_queue_tells(yarn: WrongYarn) -> None:
    told = json.loads(yarn.answers["scheduler"])
    del told["scheduler"]["schedulerInfo"]["queues"]["queue"][1]["maximumAllocation"]
    yarn.answers["scheduler"] = json.dumps(told).encode()
    queue = asking(yarn.address).queue("narrow")
    assert (queue.largest_mib, queue.largest_vcores) == (8192, 2)
    assert yarn.asked[-1][:2] == ("POST", "apps/new-application")


@pytest.mark.parametrize("wrong", [cuts, cuts_halfway, hangs, says(500), says(503, b""), refuses(500, "IOException")])
def test_what_passes_is_asked_again(yarn: WrongYarn, wrong: Callable[[object], None]) -> None:
    yarn.next(wrong, wrong)
    assert asking(yarn.address, read_seconds=0.5 if wrong is hangs else 10.0).metrics().total_mib == 16384
    assert len(yarn.asked) == 3


def test_a_standby_sends_to_the_active_one(yarn: WrongYarn, other: WrongYarn) -> None:
    yarn.always = sends_on(other.address)
    manager = asking(yarn.address, other.address)
    assert manager.metrics().total_mib == 16384
    assert manager.address == other.address
    assert manager.nodes()
    assert len(yarn.asked) == 1


def test_a_standby_tells_of_itself_and_is_passed_over_all_the_same(yarn: WrongYarn, other: WrongYarn) -> None:
    yarn.answers["info"] = b'{"clusterInfo":{"state":"STARTED","haState":"STANDBY","hadoopVersion":"3.1.1"}}'
    assert asking(yarn.address, other.address).information().version == "3.5.0"


def test_an_active_one_that_is_not_named_is_told(yarn: WrongYarn) -> None:
    yarn.always = sends_on("http://elsewhere:8088")
    with pytest.raises(
        ClusterError,
        match=rf"^{yarn.address} is a standby \(it sends on to http://elsewhere:8088\); add the active "
        r"ResourceManager to yarnstick\.hadoop\.resource_managers",
    ):
        asking(yarn.address, patience=ONCE).metrics()


def test_an_active_one_is_waited_for(yarn: WrongYarn, other: WrongYarn) -> None:
    for each in (yarn, other):
        each.next(finds_no_active_one, finds_no_active_one)
    assert asking(yarn.address, other.address).metrics().total_mib == 16384


def test_one_that_is_gone_is_passed_over(yarn: WrongYarn) -> None:
    manager = asking(nowhere(), yarn.address)
    assert manager.metrics().total_mib == 16384
    assert manager.address == yarn.address


def test_where_nobody_answers_the_addresses_are_named() -> None:
    address, second = nowhere(), nowhere()
    with pytest.raises(ClusterError) as caught:
        asking(address, patience=ONCE).metrics()
    assert str(caught.value) == (
        f"{address} takes no connection; start YARN, or correct yarnstick.hadoop.resource_managers or HADOOP_CONF_DIR"
    )
    with pytest.raises(ClusterError, match=rf"takes no connection \(tried {address}, {second}\); start YARN"):
        asking(address, second, patience=ONCE).metrics()


def test_a_wrong_address_is_not_waited_for(yarn: WrongYarn) -> None:
    yarn.always = says(200)
    with pytest.raises(ClusterError) as caught:
        asking(yarn.address, patience=Patience(seconds=600)).metrics()
    assert str(caught.value) == (
        f"{yarn.address} answered 200, and not as a ResourceManager does; correct yarnstick.hadoop.resource_managers "
        "or HADOOP_CONF_DIR"
    )
    yarn.always = says(404)
    with pytest.raises(ClusterError, match="answered 404, and not as a ResourceManager does"):
        asking(yarn.address).queues()
    assert len(yarn.asked) == 2


def test_one_that_wants_kerberos_says_so(yarn: WrongYarn) -> None:
    yarn.always = says(401)
    with pytest.raises(ClusterError, match=r"does not accept who we are; it wants Kerberos: set yarnstick\.store\.sec"):
        asking(yarn.address).metrics()


def test_with_kerberos_no_name_is_told_that_nobody_proves(yarn: WrongYarn) -> None:
    try:
        asking(yarn.address, security="kerberos").metrics()
    except SettingError as error:
        assert "pip install 'yarnstick[kerberos]'" in str(error)  # noqa: PT017  # only where it is not installed
    assert all("user.name" not in given for _, _, given, _ in yarn.asked)


def test_killing_is_asked_for_once_and_the_dead_are_no_error(yarn: WrongYarn) -> None:
    manager = asking(yarn.address)
    manager.kill(ENDED)
    method, path, parameters, body = yarn.asked[-1]
    assert (method, path, parameters) == ("PUT", f"apps/{ENDED}/state", {"user.name": "ada"})
    assert json.loads(body) == {"state": "KILLED"}
    manager.kill("application_1795019350490_9999")


def test_who_may_not_kill_is_told_how_it_is_done(yarn: WrongYarn) -> None:
    yarn.next(refuses(403, "ForbiddenException", "The default static user cannot carry out this operation."))
    with pytest.raises(ClusterError) as caught:
        asking(yarn.address).kill(ENDED)
    assert str(caught.value) == (
        f"{ENDED} goes on: {yarn.address} does not let ada kill it (The default static user cannot carry out this "
        f"operation.); kill it with yarn application -kill {ENDED}"
    )
    yarn.next(says(404))
    with pytest.raises(ClusterError, match="not as a ResourceManager does"):
        asking(yarn.address).kill(ENDED)


@pytest.mark.parametrize("id", ["", "job_1_0001", "application_1_0001/../..", "application_1"])
def test_what_is_no_id_is_asked_of_nobody(yarn: WrongYarn, id: str) -> None:
    with pytest.raises(ClusterError, match="is no id of a YARN application"):
        asking(yarn.address).kill(id)
    assert not yarn.asked


def test_an_application_that_is_not_known_is_one_sentence(yarn: WrongYarn) -> None:
    with pytest.raises(ClusterError, match=r"answered NotFoundException \(app with id: .* not found\)$"):
        asking(yarn.address).application("application_1_0001")


def test_it_is_found_by_luigi_cfg_or_by_hadoops_configuration(tmp_path: Path, yarn: WrongYarn) -> None:
    access = Access(security="insecure", patience=ONCE)
    assert ResourceManager.of((yarn.address,), access, environment={}).metrics().total_mib == 16384
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.webapp.address</name>"
        f"<value>127.0.0.1:{yarn.server_port}</value></property></configuration>"
    )
    found = ResourceManager.of((), access, environment={"HADOOP_CONF_DIR": str(tmp_path)})
    assert found.address == yarn.address
    with pytest.raises(SettingError, match="HADOOP_CONF_DIR is not set"):
        ResourceManager.of((), access, environment={})


NAMES = st.sampled_from(["nodes", "node", "id", "state", "usedMemoryMB", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(NAMES, each, max_size=3),
)


@pytest.fixture(scope="module")
def strange() -> Iterator[WrongYarn]:
    with serving() as server:
        yield server


@given(st.one_of(st.binary(max_size=40), JSON.map(lambda each: json.dumps({"nodes": {"node": each}}).encode())))
def test_no_answer_ends_in_anything_but_nodes_or_our_error(strange: WrongYarn, body: bytes) -> None:
    strange.answers["nodes"] = body
    try:
        found = asking(strange.address, patience=ONCE).nodes()
    except ClusterError:
        return
    assert all(isinstance(each, Node) for each in found)
