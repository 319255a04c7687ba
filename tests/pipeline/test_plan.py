"""From a profile to its trials: complete shuffled blocks, each configuration once, limits told with their numbers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.config import read_settings
from pipeline.plan import Limits, Planned, Room, Subject, plan
from store.errors import SettingError

SIX = Subject(name="six", slug="six-1", columns=6, classes=3)
NINE = Subject(name="nine", slug="nine-1", columns=9, classes=3)
ROOM = Limits(cores=8, memory_mib=32768)
SMALL = {
    "networks": "mlp:*-8-*",
    "platforms": "torch-cpu",
    "threads": "1",
    "executors": "1",
    "cores": "1",
    "trials": "2",
}


@pytest.fixture(autouse=True)
def _empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def planned(*subjects: Subject, limits: Limits = ROOM, seed: int = 0, **lists: str) -> list[Planned]:
    given = [f"profile.quick.{key}={value}" for key, value in (SMALL | lists).items()]
    return plan(read_settings("quick", overrides=[f"seed={seed}", *given]), list(subjects or [SIX]), limits)


def blocks(trials: list[Planned]) -> list[list[Planned]]:
    return [list(block) for _, block in groupby(trials, key=lambda each: each.spec.trial)]


def axes(trials: list[Planned], name: str) -> set[object]:
    return {
        getattr(part, name)
        for each in trials
        for part in (each.spec, each.spec.resources, each.spec.hyperparameters)
        if hasattr(part, name)
    }


def test_every_configuration_is_once_in_each_block() -> None:
    trials = planned(platforms="torch-cpu mllib", threads="1 2", executors="1 2", cores="1 2", trials="4")
    whole = blocks(trials)
    assert [block[0].spec.trial for block in whole] == [1, 2, 3, 4]
    configurations = [Counter(each.spec.configuration for each in block) for block in whole]
    assert all(each == configurations[0] for each in configurations)
    assert set(configurations[0].values()) == {1}
    assert len(configurations[0]) == 2 + 4
    assert len({each.spec.slug for each in trials}) == len(trials)


def test_shards_and_staleness_are_those_of_a_parameter_server() -> None:
    lists = {"shards": "1 2", "staleness": "0 3 8", "trials": "1"}
    trials = planned(platforms="torch-spark-async torch-spark torch-cpu", **lists)
    found = {
        name: [each for each in trials if each.spec.platform == name] for name in {t.spec.platform for t in trials}
    }
    assert len(found["torch-spark-async"]) == 2 * 3
    assert (axes(found["torch-spark-async"], "shards"), axes(found["torch-spark-async"], "staleness")) == (
        {1, 2},
        {0, 3, 8},
    )
    for name in ("torch-spark", "torch-cpu"):
        assert len(found[name]) == 1
        assert (axes(found[name], "shards"), axes(found[name], "staleness")) == ({None}, {None})


def test_the_usual_initial_weights_have_the_name_they_had_before_there_was_a_choice() -> None:
    both = planned(initial_weights="glorot mllib", trials="1")
    assert axes(both, "initial_weights") == {None, "mllib"}
    [usual] = planned(trials="1")
    assert "initial_weights" not in usual.spec.configuration
    assert usual.spec.slug in {each.spec.slug for each in both}
    [own] = planned(networks="torch:small_cnn:make", initial_weights="glorot mllib", trials="1")
    assert own.spec.hyperparameters.initial_weights is None, "a module draws its own"


def test_the_order_is_shuffled_and_the_same_for_the_same_seed() -> None:
    lists = {"threads": "1 2 3 4 5 6 7 8", "trials": "5"}
    trials, others = planned(**lists), planned(**lists, seed=1)
    orders = [tuple(each.spec.resources.threads for each in block) for block in blocks(trials)]
    assert len(set(orders)) > 1
    assert orders[0] != (1, 2, 3, 4, 5, 6, 7, 8)
    assert trials == planned(**lists)
    assert [each.spec.resources.threads for each in trials] != [each.spec.resources.threads for each in others]


def test_the_seed_of_a_trial_is_seed_plus_trial() -> None:
    assert [each.spec.seed for each in planned(trials="3", seed=5)] == [6, 7, 8]
    assert axes(planned(), "attempt") == {1}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(seed=st.integers(0, 1000))
def test_trials_of_a_shared_session_stay_together(seed: int) -> None:
    lists = {"platforms": "mllib", "executors": "1 2", "cores": "1 2", "solvers": "gd l-bfgs", "fractions": "0.5 1"}
    for block in blocks(planned(seed=seed, **lists)):
        sessions = [session for session, _ in groupby(block, key=lambda each: each.spec.session)]
        assert len(sessions) == len(set(sessions)) == 4
    own = [planned(seed=each, **lists, session="own") for each in range(5)]
    runs = [len(list(groupby(block, key=lambda each: each.spec.session))) for each in own for block in blocks(each)]
    assert max(runs) > 4


def test_what_a_platform_does_not_vary_is_none() -> None:
    [mllib, _] = planned(platforms="mllib", threads="1 2", precisions="float32 float64", workers="1 2", trials="2")
    assert (mllib.spec.resources.threads, mllib.spec.resources.workers) == (None, None)
    assert (mllib.spec.hyperparameters.precision, mllib.spec.hyperparameters.gradient) == ("float64", None)
    [torch, _] = planned(platforms="torch-cpu", executors="1 2", cores="1 2", memory_mib="1024 2048")
    resources = torch.spec.resources
    assert (resources.executors, resources.cores, resources.memory_mib) == (None, None, None)
    assert (resources.partitions, resources.deploy_mode) == (None, None)


def test_configurations_that_become_equal_count_once() -> None:
    assert len(planned(batch_sizes="full 16 64", trials="1")) == 1
    assert len(planned(solvers="l-bfgs", learning_rates="0.1 0.5", trials="1")) == 1
    assert len(planned(solvers="gd l-bfgs", learning_rates="0.1 0.5", trials="1")) == 3
    assert len(planned(solvers="gd sgd", batch_sizes="full 16 64", trials="1")) == 3
    assert len(planned(platforms="torch-cpu torch-cpu", trials="1")) == 1
    assert axes(planned(batch_sizes="full 16"), "batch_size") == {None}
    assert axes(planned(solvers="l-bfgs"), "learning_rate") == {None}


def test_partitions_are_the_most_slots_that_fit_and_the_same_over_the_sweep() -> None:
    sweep = {"platforms": "mllib", "executors": "1 2 4", "cores": "1 2"}
    assert axes(planned(**sweep), "partitions") == {8}
    assert axes(planned(**sweep, limits=Limits(cores=4, memory_mib=32768)), "partitions") == {4}
    # Four executors of 8 GiB do not fit.
    few = Limits(cores=8, memory_mib=16384)
    assert axes(planned(**sweep, memory_mib="8192", limits=few), "partitions") == {4}
    assert axes(planned(**sweep, partitions="3"), "partitions") == {3}
    assert axes(planned(**sweep, partitions="3 6"), "partitions") == {3, 6}


@pytest.mark.parametrize(
    ("lists", "numbers"),
    [
        ({"platforms": "torch-cpu", "threads": "9"}, ["threads=9", "8 cores"]),
        ({"platforms": "mllib", "executors": "4", "cores": "4"}, ["executors=4", "cores=4", "16 cores", "has 8"]),
        ({"platforms": "mllib", "executors": "1 2", "cores": "9"}, ["cores=9", "has 8"]),
        ({"platforms": "mllib", "executors": "1 2", "memory_mib": "40000"}, ["memory_mib=40000", "40000 MiB", "32768"]),
        ({"platforms": "torch-cpu mllib", "threads": "1 2", "cores": "9"}, ["cores=9", "has 8"]),
    ],
)
def test_a_demand_beyond_this_machine_is_an_error(lists: dict[str, str], numbers: list[str]) -> None:
    with pytest.raises(SettingError) as told:
        planned(**lists)
    assert all(number in str(told.value) for number in [*numbers, "profile.quick", "lower"]), told.value


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        ({"platforms": "torch-cpu", "threads": "1 9"}, "threads=9 exceeds the 8 cores of this machine"),
        (
            {"platforms": "mllib", "executors": "1 4", "cores": "4"},
            "executors=4 x cores=4 are 16 cores, and this machine has 8",
        ),
        (
            {"platforms": "mllib", "executors": "1", "memory_mib": "1024 40000"},
            "executors=1 x memory_mib=40000 are 40000 MiB, and this machine has 32768",
        ),
    ],
)
def test_one_of_a_sweep_beyond_this_machine_is_a_row_with_its_reason(lists: dict[str, str], reason: str) -> None:
    trials = planned(**lists)
    assert Counter(each.impossible for each in trials) == {None: 2, reason: 2}


def test_a_sweep_of_which_nothing_is_possible_is_an_error() -> None:
    with pytest.raises(SettingError, match=r"nothing of profile.quick can run here: threads=9.*smaller"):
        planned(threads="9 10")


@pytest.mark.parametrize("solver", ["sgd", "momentum", "adam"])
def test_a_mini_batch_solver_needs_a_batch_size(solver: str) -> None:
    with pytest.raises(SettingError, match=rf"solver {solver} needs a batch size, and profile.quick.batch_sizes"):
        planned(solvers=f"gd {solver}", batch_sizes="full")
    assert axes(planned(solvers=solver, batch_sizes="full 16"), "batch_size") == {16}


def test_a_network_takes_the_sizes_of_its_dataset() -> None:
    trials = planned(SIX, NINE)
    assert {(each.spec.dataset, each.spec.data, each.spec.network.name) for each in trials} == {
        ("six", "six-1", "mlp:6-8-3"),
        ("nine", "nine-1", "mlp:9-8-3"),
    }
    fixed = planned(SIX, NINE, networks="mlp:6-4-3 mlp:9-4-3 mlp:6-8-*")
    assert {(each.spec.dataset, each.spec.network.name) for each in fixed} == {
        ("six", "mlp:6-4-3"),
        ("six", "mlp:6-8-3"),
        ("nine", "mlp:9-4-3"),
    }


def test_every_kind_of_network_takes_its_sizes_and_equal_ones_count_once() -> None:
    networks = "perceptron:*-* mlp:*-* mlp:*-8-*:sigmoid mlp:*-8-* mlp:*-8-4-*:relu,tanh torch:my_nets:make"
    trials = planned(SIX, NINE, networks=networks, trials="1")
    assert Counter((each.spec.dataset, each.spec.network.name) for each in trials) == {
        (dataset, name): 1
        for dataset, columns in (("six", 6), ("nine", 9))
        for name in (
            f"perceptron:{columns}-3",
            f"mlp:{columns}-8-3",
            f"mlp:{columns}-8-4-3:relu,tanh",
            "torch:my_nets:make",
        )
    }
    assert len({each.spec.slug for each in trials}) == 8


def test_platforms_with_one_way_to_a_gradient_have_no_such_axis() -> None:
    trials = planned(platforms="numpy torch-cpu mllib", gradients="autograd manual", trials="1")
    found = Counter((each.spec.platform, each.spec.hyperparameters.gradient) for each in trials)
    assert found == {("numpy", None): 1, ("mllib", None): 1, ("torch-cpu", "autograd"): 1, ("torch-cpu", "manual"): 1}


def test_a_network_without_a_dataset_is_an_error_with_both_numbers() -> None:
    with pytest.raises(SettingError, match=r"network mlp:7-8-3 fits none .* six has 6 and 3; nine has 9 and 3"):
        planned(SIX, NINE, networks="mlp:*-8-* mlp:7-8-3")


def test_a_dataset_without_a_network_is_an_error_with_both_numbers() -> None:
    with pytest.raises(
        SettingError, match=r"dataset nine has 9 columns and 3 classes, .* mlp:6-8-3 fits; write mlp:\*"
    ):
        planned(SIX, NINE, networks="mlp:6-8-3")


def test_an_unknown_platform_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"platform 'torhc-cpu' is not known; known are mllib, .*torch-cpu"):
        planned(platforms="torch-cpu torhc-cpu")


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        ({"cores": "3"}, "cores=3 exceeds the 2 vcores of the largest container of queue narrow"),
        ({"memory_mib": "4000"}, "is 4400 MiB with Spark's overhead, which exceeds the 4096 MiB of the largest"),
        ({"executors": "3", "cores": "2"}, "are 7 vcores with the application master, and queue narrow has at most 6"),
        ({"executors": "4"}, "are 10624 MiB with overhead and application master, and queue narrow has at most 10000"),
    ],
)
def test_on_yarn_the_queue_is_the_limit(lists: dict[str, str], reason: str) -> None:
    room = Room(queue="narrow", cores=6, memory_mib=10_000, largest_cores=2, largest_mib=4096)
    limits = Limits(cores=1, memory_mib=1024, room=room)
    with pytest.raises(SettingError, match=re.escape(reason)):
        planned(platforms="mllib", limits=limits, **lists)
    fitting = planned(platforms="mllib", executors="2", cores="2", limits=limits)
    assert [each.impossible for each in fitting] == [None, None]


def test_in_cluster_mode_the_driver_is_a_container_too() -> None:
    """2048 MiB and 384 beside them, where the master of client mode takes 896."""
    small = Room(queue="narrow", cores=6, memory_mib=10_000, largest_cores=2, largest_mib=2048)
    lists = {"platforms": "mllib", "memory_mib": "1024", "trials": "1"}
    said = (
        "Spark's driver (deploy_modes=cluster) is 2432 MiB with its overhead, which exceeds the 2048 MiB of the largest"
    )
    with pytest.raises(SettingError, match=re.escape(said)):
        planned(**lists, deploy_modes="cluster", limits=replace(ROOM, room=small))
    swept = planned(**lists, deploy_modes="client cluster", limits=replace(ROOM, room=small))
    assert {each.spec.resources.deploy_mode: bool(each.impossible) for each in swept} == {
        "client": False,
        "cluster": True,
    }
    tight = Limits(cores=8, memory_mib=1024, room=replace(small, largest_mib=4096, memory_mib=2 * 1408 + 896))
    assert [each.impossible for each in planned(**lists | {"executors": "2"}, limits=tight)] == [None]
    with pytest.raises(SettingError, match="are 5248 MiB with overhead and application master, and queue narrow"):
        planned(**lists | {"executors": "2"}, deploy_modes="cluster", limits=tight)


def test_settings_of_ones_own_for_spark_are_in_the_sum() -> None:
    room = Room(queue="narrow", cores=6, memory_mib=10_000, largest_cores=2, largest_mib=4096, python_mib=1536)
    lists = {"platforms": "mllib", "memory_mib": "2048", "trials": "1"}
    given = {"spark.executor.memoryOverhead": "3g"}
    assert [each.impossible for each in planned(**lists, limits=replace(ROOM, room=room))] == [None]
    with pytest.raises(SettingError, match="memory_mib=2048 is 5120 MiB with Spark's overhead, which exceeds the 4096"):
        planned(**lists, limits=replace(ROOM, room=replace(room, spark_conf=given)))
    less = replace(room, largest_mib=2560, spark_conf={"spark.executor.memoryOverhead": "512"})
    assert [each.impossible for each in planned(**lists, limits=replace(ROOM, room=less))] == [None]


def test_machines_that_nobody_asks_are_no_limit() -> None:
    elsewhere = Limits(cores=1, memory_mib=1024, has_executors=False)
    fitting = planned(platforms="mllib", executors="40", cores="8", limits=elsewhere)
    assert [each.impossible for each in fitting] == [None, None]
    with pytest.raises(SettingError, match="threads=2 exceeds the 1 cores of this machine"):
        planned(platforms="torch-cpu", threads="2", limits=elsewhere)
