"""The checks of a client and of a YARN, by a ResourceManager that answers as one did, and by programs of our own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from pipeline.checks import hadoop, machine
from pipeline.checks.check import checked
from pipeline.config import read_settings
from pipeline.doctor import examine
from pipeline.experiment import Experiment
from pipeline.settings import Settings
from tests.yarn.wrong_yarn import WrongYarn, says, serving

QUIET = ("store.security=insecure", "store.retry_seconds=0", "profile.quick.datasets=synthetic:10x2x2")


@pytest.fixture
def yarn() -> Iterator[WrongYarn]:
    with serving() as server:
        yield server


@pytest.fixture(autouse=True)
def _no_hadoop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HADOOP_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "HADOOP_STREAMING_JAR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def settings(yarn: WrongYarn) -> Settings:
    return configured(yarn)


def configured(yarn: WrongYarn, *overrides: str) -> Settings:
    given = (f"hadoop.resource_managers={yarn.address}", "mapreduce.runner=hadoop", "hadoop.queue=narrow")
    return read_settings("quick", overrides=[*QUIET, *given, *overrides])


def changed(yarn: WrongYarn, **values: object) -> None:
    """The queue `narrow`, told otherwise."""
    told = json.loads(yarn.answers["scheduler"])
    told["scheduler"]["schedulerInfo"]["queues"]["queue"][1] |= values
    yarn.answers["scheduler"] = json.dumps(told).encode()


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_yarn_that_is_well_is_told(yarn: WrongYarn, settings: Settings) -> None:
    assert hadoop.resource_manager(settings).detail == (
        f"{yarn.address}, Hadoop 3.5.0: 15,360 of 16,384 MiB and 4 of 6 vcores are free, 2 applications running, "
        "0 waiting"
    )
    found = hadoop.queue(settings)
    assert (found.ok, found.detail) == (
        True,
        "root.narrow is RUNNING, 20 % of the cluster, at most 20 %, 256 of 3,276 MiB in use, containers of up to "
        "3,276 MiB and 2 vcores",
    )
    assert found.advice == "only 1 vcore: where YARN counts them, a job has none beside its master"
    assert hadoop.queue(configured(yarn, "hadoop.queue=default")).word == "ok"
    assert hadoop.nodes(settings).detail == "2 running"
    assert hadoop.gpus(settings).detail == "none in the cluster: no node that runs has yarn.io/gpu"


def test_a_queue_that_stopped_or_is_not_there_fails(yarn: WrongYarn) -> None:
    changed(yarn, state="STOPPED")
    found = hadoop.queue(configured(yarn))
    assert (found.ok, found.advice) == (False, "ask whoever runs YARN, or set yarnstick.hadoop.queue to another one")
    unknown = checked("queue", lambda: hadoop.queue(configured(yarn, "hadoop.queue=wide")))
    assert (unknown.ok, unknown.advice) == (False, "set it to one of default, narrow")


def test_nodes_that_are_ill_are_named(yarn: WrongYarn, settings: Settings) -> None:
    told = json.loads(yarn.answers["nodes"])
    first, second = told["nodes"]["node"]
    first |= {"state": "UNHEALTHY", "healthReport": "1/1 local-dirs usable space is below configured utilization"}
    yarn.answers["nodes"] = json.dumps(told).encode()
    found = hadoop.nodes(settings)
    assert (found.word, found.detail) == ("note", "1 running and 1 unhealthy")
    assert found.advice == ("not to be used: localhost (1/1 local-dirs usable space is below configured utilization)")
    second["state"] = "LOST"
    yarn.answers["nodes"] = json.dumps(told).encode()
    assert (hadoop.nodes(settings).ok, hadoop.nodes(settings).detail) == (False, "1 lost and 1 unhealthy")


def test_gpus_are_counted(yarn: WrongYarn, settings: Settings) -> None:
    told = json.loads(yarn.answers["nodes"])
    has = told["nodes"]["node"][0]["availableResource"]["resourceInformations"]["resourceInformation"]
    has.append({"name": "yarn.io/gpu", "value": 2})
    yarn.answers["nodes"] = json.dumps(told).encode()
    assert hadoop.gpus(settings).detail == "2 GPUs on 1 node of the cluster"


def test_the_client_is_run_for_its_version(yarn: WrongYarn, tmp_path: Path) -> None:
    jar = tmp_path / "hadoop-streaming.jar"
    jar.write_bytes(b"PK")
    command = program(tmp_path / "hadoop", "echo Hadoop 3.1.1; echo more")
    settings = configured(yarn, f"hadoop.command={command}", f"hadoop.streaming_jar={jar}")
    assert hadoop.client(settings).detail == f"{command}, Hadoop 3.1.1; {jar}"
    program(command, "echo 'ERROR: JAVA_HOME is not set and could not be found.' >&2; exit 1")
    found = hadoop.client(settings)
    assert (found.ok, found.detail) == (
        False,
        f"{command} version ended with 1: ERROR: JAVA_HOME is not set and could not be found.",
    )
    assert str(found.advice).startswith("set JAVA_HOME")
    missing = checked("client", lambda: hadoop.client(configured(yarn, f"hadoop.command={tmp_path / 'no'}")))
    assert (missing.ok, missing.advice) == (False, "give the path of Hadoop's bin/hadoop")


def test_the_configuration_is_whole_or_named(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "goes by its own" in hadoop.configuration(settings).detail
    folder = tmp_path / "conf"
    folder.mkdir()
    monkeypatch.setenv("HADOOP_CONF_DIR", str(folder))
    (folder / "core-site.xml").touch()
    found = hadoop.configuration(settings)
    assert (found.ok, found.detail) == (False, f"hdfs-site.xml and yarn-site.xml are not in HADOOP_CONF_DIR={folder}")
    for name in ("hdfs-site.xml", "yarn-site.xml"):
        (folder / name).touch()
    assert hadoop.configuration(settings).detail == f"HADOOP_CONF_DIR={folder}"


def test_spark_on_yarn_needs_the_configuration(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop, "runs_spark", lambda _: True)
    found = hadoop.configuration(settings)
    assert (found.ok, found.advice) == (False, "set HADOOP_CONF_DIR to the directory of yarn-site.xml")


@pytest.mark.parametrize(
    ("master", "word"), [("yarn", "ok"), ("spark://nowhere:7077", "ok"), ("local-cluster", "FAIL")]
)
def test_executors_elsewhere_take_nothing_of_this_machines_memory(
    master: str, word: str, yarn: WrongYarn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that has next to none, as an edge node may."""
    free = SimpleNamespace(available=1536 << 20, total=64 << 30)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    given = ("platforms=mllib", "executors=1", "memory_mib=2048")
    settings = configured(
        yarn, f"spark.master={master}", "hadoop.queue=default", *(f"profile.quick.{each}" for each in given)
    )
    found = machine.room(Experiment(settings, "doctor"))
    assert found.word == word, found
    if word == "FAIL":
        assert "of which 1,536 MiB are free, and 2,048 MiB of executors" in found.detail


def test_a_yarn_that_does_not_answer_is_asked_once(yarn: WrongYarn, tmp_path: Path) -> None:
    yarn.always = says(404)
    overrides = [
        *QUIET,
        f"hadoop.resource_managers={yarn.address}",
        "mapreduce.runner=hadoop",
        "profile.quick.platforms=torch-cpu",
        "probe_seconds=0",
        f"lease={tmp_path / 'lease'}",
        f"cache={tmp_path / 'cache'}",
    ]
    found = {each.check: each for each in examine("quick", store=None, overrides=overrides)}
    assert not found["resource manager"].ok
    assert "not as a ResourceManager does" in found["resource manager"].detail
    assert not found["hadoop client"].ok
    assert not found.keys() & {"queue", "nodes", "cluster gpus", "namenode"}
    assert len(yarn.asked) == 1
