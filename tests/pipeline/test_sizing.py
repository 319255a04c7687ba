"""Study C's rule, by hand and as a user types it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.sizing import Shape, shapes
from store.errors import SettingError
from tests.pipeline.place import Place, assert_one_error


def test_the_studys_own_cluster_by_hand() -> None:
    """It gave 7 executors of 5 cores 13 GB, as here, and 9 of 4 cores 11 GB, where 10.6 is rounded down to 10 here."""
    found = shapes(nodes=2, cores=24, memory_gb=64)
    # 23 cores of a node are 4 x 5, so 8 executors less the master's; 63 / 4 - 2 = 13.75 GB.
    assert found[0] == Shape(cores=5, executors=7, memory_gb=13, idle_cores=3)
    # 5 x 4 cores; 63 / 5 - 2 = 10.6 GB.
    assert found[1] == Shape(cores=4, executors=9, memory_gb=10, idle_cores=3)
    # Of one core there were 23, with 63 / 23 - 2 = 0.7 GB.
    assert [each.cores for each in found] == [5, 4, 3, 2]


@given(
    nodes=st.integers(1, 200),
    cores=st.integers(1, 256),
    memory=st.floats(0, 4096, allow_nan=False, allow_infinity=False),
)
def test_what_is_said_fits(nodes: int, cores: int, memory: float) -> None:
    try:
        found = shapes(nodes=nodes, cores=cores, memory_gb=memory)
    except SettingError:
        return
    for each in found:
        places = each.executors + 1
        of_a_node = -(-places // nodes)
        assert of_a_node * nodes == places
        assert of_a_node * each.cores + each.idle_cores + 1 == cores
        assert of_a_node * (each.memory_gb + 2) + 1 <= memory + 1e-9
        assert 1 <= each.cores <= 5
        assert each.executors >= 1


@pytest.mark.parametrize(("nodes", "cores", "memory"), [(1, 1, 64), (1, 2, 64), (3, 8, 3), (3, 8, 0), (1, 6, 4)])
def test_what_holds_no_executor_is_said(nodes: int, cores: int, memory: float) -> None:
    with pytest.raises(SettingError, match=rf"^no executor fits in {nodes} nodes of {cores} cores and {memory} GB: "):
        shapes(nodes=nodes, cores=cores, memory_gb=memory)


def test_a_user_gets_a_table_and_a_line_to_run(place: Place) -> None:
    told = place.run("size", "--nodes", "2", "--cores", "24", "--memory", "64").stdout.splitlines()
    assert told[1].split() == ["7", "5", "13312", "3"]
    assert told[-1].split()[-2:] == ["--set", "profile.full.memory_mib=13312"]
    found = json.loads(place.run("size", "--nodes", "2", "--cores", "24", "--memory", "64", "--json").stdout)
    assert found[0] == {"cores": 5, "executors": 7, "memory_gb": 13, "idle_cores": 3}


def test_what_is_no_cluster_is_one_sentence(place: Place) -> None:
    assert_one_error(place.run("size", "--nodes", "1", "--cores", "1", "--memory", "8"), "no executor fits")
    refused = place.run("size", "--nodes", "0", "--cores", "1", "--memory", "8")
    assert refused.returncode == 2
    assert "--nodes" in refused.stderr
    assert place.run("size", "--nodes", "2", "--cores", "8", "--memory", "nan").returncode != 0
