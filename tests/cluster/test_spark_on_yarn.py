"""MLlib's trials on a real YARN, from the command line to the report on HDFS; and what becomes of them in trouble."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Callable

import psutil
import pytest

from cluster.lifecycle import Cluster
from models.outcome import Outcome
from pipeline.config import read_settings
from pipeline.opening import open_resource_manager, open_store
from store.addresses import place_of
from store.local import LocalStore
from store.protocol import Store
from tests.cluster.test_cluster import fetched
from tests.cluster.test_resource_manager import occupied
from tests.pipeline.place import LUIGI, Place, assert_one_error, eventually, finish, kill_whole
from yarn.resource_manager import ResourceManager
from yarn.submission import LIVING

# Longer than it takes to break something.
LONG = ("--set", "profile.tiny.epochs=150")
FEW = ("--set", "profile.tiny.epochs=20")  # where they are waited for
SESSIONS_SECONDS = 300  # of trials that have an application each


@pytest.fixture
def place(edge_node: Callable[..., Place]) -> Place:
    return edge_node()


@pytest.fixture
def store(place: Place) -> Store:
    return open_store(read_settings("tiny"))


@pytest.fixture
def manager(place: Place) -> ResourceManager:
    return open_resource_manager(read_settings("tiny"))


def outcomes(store: Store, run_id: str = "R") -> dict[str, Outcome]:
    path = f"runs/{run_id}/trials"
    return {entry.name: Outcome.decode(store.read(f"{path}/{entry.name}/outcome.json")) for entry in store.list(path)}


def assert_the_report_is_as_on_a_local_store(place: Place, store: Store) -> None:
    """Made again from a copy of the run."""
    local = LocalStore(place.folder / "copy")
    shutil.copytree(store.local("runs/R"), place.folder / "copy" / "runs" / "R")
    done = place.run("report", "--run-id", "R", "--store", "copy")
    assert done.returncode == 0, done.stderr
    names = {entry.name for entry in store.list("runs/R/report") if not entry.is_directory}
    names |= {f"figures/{entry.name}" for entry in store.list("runs/R/report/figures")}
    assert {"report.html", "figures/seconds.svg"} <= names
    for name in names - {"merged.json", "published.json"}:
        assert local.read(f"runs/R/report/{name}") == store.read(f"runs/R/report/{name}"), name


def living(manager: ResourceManager) -> list[str]:
    return [each.id for each in manager.applications(states=LIVING)]


def run_to_training(place: Place, store: Store, *options: str) -> subprocess.Popen[str]:
    """A run that has come to where its application has all its executors, and the rows that it trains on."""
    process = place.start("run", "--profile", "tiny", "--run-id", "R", *LONG, *options)
    eventually(lambda: any(store.list(f"data/{data.name}/vectors") for data in store.list("data")))
    return process


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_run_ends_with_its_report_on_hdfs(
    mode: str, place: Place, store: Store, manager: ResourceManager, cluster: Cluster
) -> None:
    """By luigi, as a scheduler calls it; MLlib and torch on the very same executors."""
    both = {"profile.tiny.deploy_modes": mode, "profile.tiny.platforms": "mllib torch-spark"}
    done = place.run("--profile", "tiny", "--run-id", "R", "--settings", json.dumps(both), command=LUIGI)
    assert done.returncode == 0, done.stderr
    eventually(lambda: living(manager) == [])
    found = outcomes(store)
    assert {outcome.spec.platform for outcome in found.values()} == {"mllib", "torch-spark"}
    losses = []
    for slug, outcome in found.items():
        assert outcome.outcome == "ok", outcome.reason
        last = outcome.records[-1]
        assert (last.granted_executors, last.granted_cores, last.deploy_mode) == (2, 2, mode)
        is_torch = outcome.spec.platform == "torch-spark"
        assert {record.clock for record in outcome.records} == {"measured" if is_torch else "eventlog"}
        parts = ("compute", "comm", "scheduling", "gc", "serialization", "driver", "other")
        for record in outcome.records:
            assert sum(getattr(record, part) for part in parts) == pytest.approx(record.seconds)
        names = [entry.name for entry in store.list(f"runs/R/trials/{slug}/eventlog")]
        assert len(names) == 1
        losses.append([record.loss for record in outcome.records])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert_the_report_is_as_on_a_local_store(place, store)
    page = f"{cluster.web('namenode')}/webhdfs/v1{place_of(store.url, namenodes=()).root}/runs/R/report/report.html"
    status, body = fetched(f"{page}?op=OPEN")  # as the file browser gets it
    assert (status, body) == (200, store.read("runs/R/report/report.html"))
    assert store.leftovers() == ()
    listed = place.run("runs", "list")
    assert "R" in listed.stdout
    again = place.run(
        "run",
        "--profile",
        "tiny",
        "--run-id",
        "R",
        "--set",
        f"profile.tiny.deploy_modes={mode}",
        "--set",
        "profile.tiny.platforms=mllib torch-spark",
    )
    assert again.returncode == 0, again.stderr
    assert outcomes(store).keys() == found.keys()


def test_more_than_the_queue_has_is_refused_before_anything_is_submitted(
    place: Place, manager: ResourceManager
) -> None:
    """FAULTS 40."""
    before = len(manager.applications())
    done = place.run("run", "--profile", "tiny", "--set", "profile.tiny.executors=40")
    assert_one_error(done, "executors=40 x cores=1 are 41 vcores", "queue default has at most")
    done = place.run("run", "--profile", "tiny", "--set", "hadoop.queue=nothere")
    assert_one_error(done, "yarnstick.hadoop.queue=nothere", "default", "narrow")
    assert len(manager.applications()) == before


def test_a_container_is_held_to_its_memory(place: Place, store: Store, manager: ResourceManager) -> None:
    """FAULTS 26: Python with torch alone takes more than it was given beside the heap."""
    done = place.run(
        "run",
        "--profile",
        "tiny",
        "--run-id",
        "R",
        "--set",
        "profile.tiny.epochs=100000",  # a NodeManager looks every three seconds
        "--set",
        "profile.tiny.datasets=synthetic:20000x784x10",
        "--set",
        "profile.tiny.networks=mlp:*-512-*",
        "--set",
        "profile.tiny.platforms=torch-spark",
        "--set",
        "profile.tiny.memory_mib=512",
        "--set",
        "spark.overhead_mib=384",
    )
    assert done.returncode == 1
    [outcome] = outcomes(store).values()
    assert outcome.outcome == "failed", outcome.reason
    assert re.search(
        r"executor \w+ was ended by YARN, as it took more than its container's memory: memory_mib = 512, and beside it "
        r"384 MiB for Python, torch and the rows; try yarnstick.spark.overhead_mib = 768",
        str(outcome.reason),
    ), outcome.reason
    eventually(lambda: living(manager) == [])


def test_a_queue_that_never_has_room_fails_the_trial(place: Place, store: Store, manager: ResourceManager) -> None:
    """FAULTS 31."""
    narrow = ("--set", "hadoop.queue=narrow", "--set", "hadoop.accepted_seconds=5")
    with occupied(manager, "narrow") as other:
        done = place.run("run", "--profile", "tiny", "--run-id", "R", *narrow, "--set", "profile.tiny.executors=1")
        assert done.returncode == 1, done.stdout
        [outcome] = outcomes(store).values()
        assert outcome.outcome == "failed"
        assert "queue narrow had no room for application_" in str(outcome.reason)
        eventually(lambda: living(manager) == [other])


@pytest.mark.parametrize(
    ("mode", "how"),
    [("client", signal.SIGINT), ("cluster", signal.SIGKILL)],
    ids=["client, Ctrl-C", "cluster, kill -9"],
)
def test_no_application_outlives_a_run_and_the_same_command_goes_on(
    mode: str, how: signal.Signals, place: Place, store: Store, manager: ResourceManager
) -> None:
    """Trials that are on the store are not run again."""
    two = [
        part
        for setting in ("platforms=torch-cpu mllib", "threads=1", f"deploy_modes={mode}")
        for part in ("--set", f"profile.tiny.{setting}")
    ]
    process = run_to_training(place, store, *two, *FEW)
    process.send_signal(how)
    finish(process)
    eventually(lambda: living(manager) == [])
    before = {slug: each.invocation for slug, each in outcomes(store).items()}
    again = place.run("run", "--profile", "tiny", "--run-id", "R", *LONG, *two, *FEW)
    assert again.returncode == 0, again.stderr
    after = outcomes(store)
    assert {each.spec.platform for each in after.values() if each.outcome == "ok"} == {"torch-cpu", "mllib"}
    assert {slug: after[slug].invocation for slug in before} == before


def test_what_was_killed_with_all_its_processes_is_ended_by_the_next_run(
    place: Place, manager: ResourceManager
) -> None:
    """While it waits in its queue nothing of it runs that could see that we are gone."""
    narrow = ("--set", "hadoop.queue=narrow", "--set", "profile.tiny.executors=1")
    with occupied(manager, "narrow") as other:
        process = place.start("run", "--profile", "tiny", "--run-id", "R", *narrow)
        eventually(lambda: set(living(manager)) - {other})
        kill_whole(process)
        finish(process)
        assert set(living(manager)) > {other}
        done = place.run("run", "--profile", "tiny", "--run-id", "S")
        assert done.returncode == 0, done.stderr
        assert "was left by a run that was killed, and is ended now" in done.stdout + done.stderr
        eventually(lambda: living(manager) == [other])


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_trial_whose_application_is_killed_is_tainted_and_not_failed(
    mode: str, place: Place, store: Store, manager: ResourceManager
) -> None:
    """Spark's own watch sees the end before ours does."""
    process = run_to_training(place, store, "--set", f"profile.tiny.deploy_modes={mode}")
    [ours] = living(manager)
    manager.kill(ours)
    eventually(lambda: bool(outcomes(store)))
    process.send_signal(signal.SIGINT)
    finish(process)
    first = outcomes(store)[min(outcomes(store))]
    assert (first.outcome, f"{ours} ended as KILLED" in str(first.reason)) == ("tainted", True), first.reason


def test_a_node_that_dies_under_a_trial_taints_it(
    place: Place, store: Store, manager: ResourceManager, broken: Cluster
) -> None:
    """FAULTS 24: what had fewer executors for a while is kept, not ranked, and run again."""
    process = run_to_training(place, store)
    # YARN may have put all of them on one node, and the master too.
    host = min(_host(each) for each in _executors())
    containers = [each for each in _executors() if _host(each) == host]
    broken.kill("nodemanager-2" if host == "127.0.0.2" else "nodemanager-1")
    for each in containers:
        each.kill()
    eventually(lambda: any(each.outcome == "tainted" for each in outcomes(store).values()))
    process.send_signal(signal.SIGINT)
    finish(process)
    [tainted] = [each for each in outcomes(store).values() if each.outcome == "tainted"]
    # With its node the application's own master may have gone.
    assert re.search(r"was lost|ended as FAILED before its work was done", str(tainted.reason)), tainted.reason


def _host(executor: psutil.Process) -> str:
    words = executor.cmdline()
    return words[words.index("--hostname") + 1]


def _executors() -> list[psutil.Process]:
    found = []
    for each in psutil.process_iter():
        try:
            if "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend" in each.cmdline():
                found.append(each)
        except psutil.Error:
            continue
    return found


@pytest.mark.timeout(2 * SESSIONS_SECONDS)
def test_a_cluster_that_goes_down_while_training_gives_one_error_and_then_the_run_goes_on(
    place: Place, store: Store, manager: ResourceManager, broken: Cluster
) -> None:
    """However many trials are left, each of which would find the same."""
    several = ("--set", "profile.tiny.trials=2", *FEW)
    process = run_to_training(place, store, *several)
    broken.down()
    done = finish(process)
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr.count("Error: ") == 1, done.stderr
    broken.up()
    again = place.start("run", "--profile", "tiny", "--run-id", "R", *several)
    _, errors = again.communicate(timeout=SESSIONS_SECONDS)
    assert again.returncode == 0, errors
    last = {slug.rpartition("-a")[0]: each.outcome for slug, each in sorted(outcomes(store).items())}
    assert list(last.values()) == ["ok"] * 2
