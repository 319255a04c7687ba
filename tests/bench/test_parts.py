"""Which benchmarks a line chooses, and that those of this machine are not sent to a cluster. None is run here."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench.__main__ import PARTS, chosen
from bench.beside_cluster import LEADS_THERE, without_it
from bench.load import LoadedError, check_quiet
from models.probes import usable_cores
from tests.pipeline.place import TOP


def test_a_cluster_of_the_environment_is_measured_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("YARNSTICK_CLUSTER", raising=False)
    assert chosen([]) == list(PARTS)
    monkeypatch.setenv("YARNSTICK_CLUSTER", "/build/cluster")
    assert chosen([]) == [*PARTS, "cluster"]
    assert chosen(["data"]) == ["data"]


def test_without_a_cluster_it_is_an_error_to_ask_for_it() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "YARNSTICK_CLUSTER"}
    done = subprocess.run(
        [sys.executable, "-m", "bench", "cluster"],
        cwd=TOP,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Error: benchmark cluster needs a cluster, and YARNSTICK_CLUSTER is not set; give make cluster-up and "
        ". build/cluster/env before it\n"
    )


def test_parts_of_this_machine_see_nothing_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LEADS_THERE:
        monkeypatch.setenv(name, f"/build/cluster/{name}")
    monkeypatch.delenv("YARNSTICK_CLUSTER", raising=False)
    before = dict(os.environ)
    with without_it():
        assert dict(os.environ) == before, "without a cluster these are one's own"
    monkeypatch.setenv("YARNSTICK_CLUSTER", "/build/cluster")
    with without_it():
        assert not os.environ.keys() & set(LEADS_THERE)
    assert {name: os.environ[name] for name in LEADS_THERE} == {name: before[name] for name in LEADS_THERE}


def test_all_of_what_leads_to_a_cluster_is_known() -> None:
    told = (TOP / "cluster" / "templates" / "env").read_text(encoding="utf-8")
    names = {line.split()[1].partition("=")[0] for line in told.splitlines() if line.startswith("export ")}
    # A Java, the mark itself, and what keeps servers on loopback, lead nowhere.
    assert names == {*LEADS_THERE, "JAVA_HOME", "YARNSTICK_CLUSTER", "SPARK_LOCAL_IP"}


def test_daemons_of_a_cluster_are_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = 0.08 * usable_cores()
    monkeypatch.delenv("YARNSTICK_CLUSTER", raising=False)
    with pytest.raises(LoadedError, match="more than 5%"):
        check_quiet(cores, "now")
    monkeypatch.setenv("YARNSTICK_CLUSTER", "/build/cluster")
    check_quiet(cores, "now")
