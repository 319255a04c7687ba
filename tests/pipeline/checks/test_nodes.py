"""What the probe makes of what nodes told. The job itself runs in tests/cluster."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest

from mapreduce.node_facts import PACKAGES
from pipeline.checks.check import checked
from pipeline.checks.nodes import ON_EXECUTORS, asked_too, judged, probe
from pipeline.config import read_settings

OURS = {name: version(name) for name in PACKAGES}


def told(host: str, *, python: str = "3.11.7", distutils: bool = True, **packages: str | None) -> str:
    facts = {"host": host, "python": python, "executable": "/opt/python", "packages": OURS | packages}
    return json.dumps({**facts, "distutils": distutils})


def test_nodes_that_are_alike_are_told_once() -> None:
    found = judged([told("a"), told("b"), told("a")], of=3)
    assert found.word == "ok"
    assert found.detail == (
        f"2 of 3 nodes told: Python 3.11.7 (/opt/python) with numpy {OURS['numpy']} and pyarrow {OURS['pyarrow']}"
    )


def test_another_version_is_a_note() -> None:
    found = judged([told("a", numpy="1.24.0")], of=1)
    assert found.word == "note"
    assert found.advice == (
        f"here it is numpy {OURS['numpy']} and pyarrow {OURS['pyarrow']}: results may differ in the last digits"
    )


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        (told("b", python="3.6.8"), "b: /opt/python is Python 3.6.8, and jobs need 3.11 or 3.12"),
        (told("b", numpy=None), "b: /opt/python has no numpy"),
        (told("b", distutils=False), "b: /opt/python has no distutils (pip install setuptools)"),
        ("b: /opt/python does not run", "b: /opt/python does not run"),
    ],
)
def test_a_node_that_lacks_something_is_named(line: str, trouble: str) -> None:
    found = judged([told("a"), line], of=2)
    assert not found.ok
    assert found.detail.endswith(f"; {trouble}")
    assert str(found.advice).startswith("set yarnstick.hadoop.python to one that has all, or ship one by")


def test_torch_is_asked_for_where_executors_train_with_it() -> None:
    on_yarn = "spark.master=yarn"
    torch, mllib = "profile.quick.platforms=torch-spark mllib", "profile.quick.platforms=torch-cpu mllib"
    assert asked_too(read_settings("quick", overrides=[on_yarn])) == ON_EXECUTORS, "quick has torch-spark"
    assert asked_too(read_settings("quick", overrides=[on_yarn, torch])) == ON_EXECUTORS
    assert asked_too(read_settings("quick", overrides=[on_yarn, mllib])) == ()
    assert asked_too(read_settings("quick", overrides=[torch])) == (), "executors are on this machine"


def test_a_node_without_torch_is_named_with_the_way_to_ship_one() -> None:
    has = {name: version(name) for name in ON_EXECUTORS}
    found = judged([told("a", **has), told("b", **has | {"torch": None})], of=2, also=ON_EXECUTORS)
    assert not found.ok
    assert found.detail.endswith("; b: /opt/python has no torch")
    assert str(found.advice).endswith("; yarnstick pack-environment --requirement torch makes one that has torch too")


def test_another_build_of_the_same_torch_is_no_other_version() -> None:
    has = {name: version(name) for name in ON_EXECUTORS}
    build = {"torch": f"{version('torch').partition('+')[0]}+cu130"}
    assert judged([told("a", **has | build)], of=1, also=ON_EXECUTORS).word == "ok"
    other = judged([told("a", **has | {"torch": "1.13.0+cpu"})], of=1, also=ON_EXECUTORS)
    assert (other.word, f"torch {version('torch').partition('+')[0]}" in str(other.advice)) == ("note", True)


def test_silence_is_a_failure() -> None:
    assert (judged([], of=2).ok, judged([], of=2).detail) == (False, "0 of 2 nodes told: nothing")


def test_without_hdfs_there_is_no_probe() -> None:
    found = checked("probe", lambda: probe(read_settings("quick")))
    assert (found.ok, found.advice) == (False, "set that to hdfs:///user/NAME/yarnstick")
