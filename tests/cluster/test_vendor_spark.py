"""A vendor's Spark on a real YARN, with its driver here and with its driver on a node."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from models.outcome import Outcome
from pipeline.config import read_settings
from pipeline.opening import open_store
from tests.models.vendor_spark import VERSION, vendor_spark
from tests.pipeline.place import Place, assert_one_error


@pytest.fixture
def place(edge_node: Callable[..., Place], tmp_path: Path) -> Place:
    return edge_node(home=vendor_spark(tmp_path / "spark"), executors=1)


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_both_sides_are_its_own(place: Place, mode: str) -> None:
    done = place.run("run", "--profile", "tiny", "--run-id", "R", "--set", f"profile.tiny.deploy_modes={mode}")
    assert done.returncode == 0, done.stderr
    store, path = open_store(read_settings("tiny")), "runs/R/trials"
    [outcome] = [Outcome.decode(store.read(f"{path}/{entry.name}/outcome.json")) for entry in store.list(path)]
    versions = json.loads(str(outcome.records[0].versions))
    assert (outcome.spec.resources.deploy_mode, outcome.outcome, versions["pyspark"]) == (mode, "ok", VERSION)
    assert versions["java"]


def test_a_python_side_of_another_spark_is_told(place: Place) -> None:
    for name in (place.folder.parent / "spark" / "python" / "lib").glob("py4j-*.zip"):
        name.rename(name.with_name("py4j-0.1-src.zip"))
    done = place.run("run", "--profile", "tiny", "--run-id", "R", "--set", "profile.tiny.deploy_modes=cluster")
    assert_one_error(done, "spark-submit ended with 1", "py4j-", "not found")
