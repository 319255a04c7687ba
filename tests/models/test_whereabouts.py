"""Where a trial computes, as far as anybody says it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.protocol import Surroundings, Yarn
from models.spec import Resources
from models.whereabouts import computes_here
from store.namenodes import Access
from store.opening import Reach
from store.retry import Patience
from tests.yarn.wrong_yarn import WrongYarn, serving
from yarn.resource_manager import ResourceManager
from yarn.shipped import Shipped

EXECUTORS = Resources(executors=2, cores=1)


@pytest.fixture
def yarn() -> Iterator[WrongYarn]:
    with serving() as server:
        yield server


def around(folder: Path, *, yarn: bool = False, is_driver: bool = False, url: str | None = None) -> Surroundings:
    asked = Yarn(
        reach=Reach(url=folder.as_uri(), security="insecure", user="ada"), folder="runs/R", jars="", queue="default",
        resource_managers=(), accepted_seconds=1, python="python", shipped=Shipped(), is_driver=is_driver,
    )  # fmt: skip
    return Surroundings(work=folder, spark_conf={}, archives=folder, yarn=asked if yarn else None, spark_url=url)


def manager(yarn: WrongYarn) -> ResourceManager:
    return ResourceManager((yarn.address,), Access(security="insecure", user="ada", patience=Patience(seconds=0)))


def named(yarn: WrongYarn, *hosts: str) -> None:
    told = json.loads(yarn.answers["nodes"])
    for node, host in zip(told["nodes"]["node"], hosts, strict=True):
        node["nodeHostName"] = host
    yarn.answers["nodes"] = json.dumps(told).encode()


def test_a_process_and_executors_without_a_cluster_are_here(tmp_path: Path) -> None:
    assert computes_here(Resources(threads=2), around(tmp_path, yarn=True), None)
    assert computes_here(EXECUTORS, around(tmp_path), None)


def test_executors_on_yarn_are_here_where_all_of_its_nodes_are(tmp_path: Path, yarn: WrongYarn) -> None:
    named(yarn, "localhost", "127.0.0.2")
    assert computes_here(EXECUTORS, around(tmp_path, yarn=True), manager(yarn))
    named(yarn, "localhost", "node-1.invalid")
    assert not computes_here(EXECUTORS, around(tmp_path, yarn=True), manager(yarn))


def test_a_driver_on_a_node_is_not_where_was_measured(tmp_path: Path, yarn: WrongYarn) -> None:
    named(yarn, "localhost", "127.0.0.2")
    for resources in (EXECUTORS, Resources(threads=2)):
        assert not computes_here(resources, around(tmp_path, yarn=True, is_driver=True), manager(yarn))


def test_where_nobody_says_where_executors_are_they_are_not_here(tmp_path: Path, yarn: WrongYarn) -> None:
    del yarn.answers["nodes"]
    assert not computes_here(EXECUTORS, around(tmp_path, yarn=True), manager(yarn))
    assert not computes_here(EXECUTORS, around(tmp_path, yarn=True), None)
    assert not computes_here(EXECUTORS, around(tmp_path, url="spark://master:7077"), None)
