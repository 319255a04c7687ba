"""`yarnstick doctor` against a real HDFS and a real YARN, well and broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.lifecycle import Cluster
from store.slug import slug
from tests.pipeline.place import TOP

COMMAND = "from pipeline.cli import main; main()"
GIVEN = (
    "store.security=insecure",
    "mapreduce.runner=hadoop",
    "profile.quick.platforms=torch-cpu",
    "profile.quick.datasets=synthetic:10x2x2",
    "probe_seconds=0",
)
Checks = dict[str, dict[str, object]]


@pytest.fixture
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A directory of the test's own."""
    made = f"{os.environ['YARNSTICK_STORE']}-tests/{slug(request.node.name)}"
    yield made
    subprocess.run(["hdfs", "dfs", "-rm", "-r", "-f", "-skipTrash", made], check=True, capture_output=True)


def doctor(folder: Path, url: str, *arguments: str, **settings: str) -> Checks:
    given = [*GIVEN, f"lease={folder / 'lease'}", f"cache={folder / 'cache'}"]
    given += [f"{name.replace('__', '.')}={value}" for name, value in settings.items()]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "doctor", "--json", "--store", url, *arguments]
        + [part for each in given for part in ("--set", each)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TOP)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return {each["check"]: each for each in json.loads(done.stdout)}


def failed(found: Checks) -> set[str]:
    return {name for name, check in found.items() if not check["ok"]} - {"other load"}


def test_a_cluster_that_is_well(cluster: Cluster, tmp_path: Path, url: str) -> None:
    found = doctor(tmp_path, url, "--probe")
    assert failed(found) == set()
    assert str(found["namenode"]["detail"]).startswith(f"{cluster.web('namenode')}, Hadoop 3.")
    assert str(found["resource manager"]["detail"]).startswith(f"{cluster.web('resourcemanager')}, Hadoop 3.")
    assert "root.default is RUNNING, 60 % of the cluster, at most 100 %" in str(found["queue"]["detail"])
    assert found["nodes"]["detail"] == f"{sum('nodemanager' in name for name in cluster.status())} running"
    assert "within 5 s" in str(found["hdfs clock"]["detail"])
    assert "GB free" in str(found["hdfs room"]["detail"])
    assert "hadoop-streaming" in str(found["hadoop client"]["detail"])
    assert f"Python {sys.version.split()[0]} ({sys.executable}) with numpy" in str(found["python of nodes"]["detail"])
    assert subprocess.run(["hdfs", "dfs", "-ls", url], capture_output=True, check=False).stdout == b"", "nothing stays"


def test_a_python_that_no_node_has_is_named(cluster: Cluster, tmp_path: Path, url: str) -> None:
    found = doctor(tmp_path, url, "--probe", hadoop__python="/nowhere/python")
    assert failed(found) == {"python of nodes"}
    assert "/nowhere/python does not run" in str(found["python of nodes"]["detail"])


def test_executors_that_train_in_python_are_asked_for_torch(cluster: Cluster, tmp_path: Path, url: str) -> None:
    given = {"spark__master": "yarn", "profile__quick__platforms": "mllib torch-spark"}
    given |= {"profile__quick__executors": "1", "profile__quick__memory_mib": "512", "spark__overhead_mib": "512"}
    found = doctor(tmp_path, url, "--probe", **given)
    assert failed(found) == set()
    assert "torch" in str(found["python of nodes"]["detail"])
    assert "fit" in str(found["cores and memory"]["detail"])


def test_an_unknown_queue_and_a_quota_are_told(cluster: Cluster, tmp_path: Path, url: str) -> None:
    subprocess.run(["hdfs", "dfs", "-mkdir", "-p", url], check=True, capture_output=True)
    subprocess.run(["hdfs", "dfsadmin", "-setSpaceQuota", "500m", url], check=True, capture_output=True)
    found = doctor(tmp_path, url, hadoop__queue="wide")
    assert failed(found) == {"hdfs room", "queue"}
    assert "within the quota of /" in str(found["hdfs room"]["detail"])
    assert found["queue"]["advice"] == "set it to one of default, narrow"


def test_safe_mode_is_told_and_not_waited_for(cluster: Cluster, tmp_path: Path, url: str) -> None:
    subprocess.run(["hdfs", "dfsadmin", "-safemode", "enter"], check=True, capture_output=True)
    try:
        found = doctor(tmp_path, url)
    finally:
        subprocess.run(["hdfs", "dfsadmin", "-safemode", "leave"], check=True, capture_output=True)
    assert failed(found) == {"namenode"}
    assert "it is in safe mode, nothing can be written" in str(found["namenode"]["detail"])
    assert "store" not in found


def test_daemons_that_are_gone_are_told(broken: Cluster, tmp_path: Path, url: str) -> None:
    addresses = broken.web("namenode"), broken.web("resourcemanager")
    try:
        broken.kill("namenode")
        broken.kill("resourcemanager")
        found = doctor(tmp_path, url)
    finally:
        broken.up()
    assert failed(found) == {"namenode", "resource manager"}
    for name, address in zip(("namenode", "resource manager"), addresses, strict=True):
        assert f"{address} takes no connection" in str(found[name]["detail"])
        assert str(found[name]["advice"]).startswith("start ")
