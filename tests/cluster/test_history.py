"""The history of many runs on a real HDFS: a line of the index each, and all of them are answered."""

from __future__ import annotations

import json
from collections.abc import Callable

from bench.answers import CONFIGURATIONS, noted
from pipeline.config import read_settings
from pipeline.opening import open_store
from tests.pipeline.place import Place

RUNS = 40


def test_the_history_of_many_runs_is_answered(edge_node: Callable[..., Place]) -> None:
    place = edge_node()
    store = open_store(read_settings("tiny"))
    try:
        noted(store, runs=RUNS)
        done = place.run("history", "--profile", "quick", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (len(found["runs"]), len(found["series"])) == (RUNS, CONFIGURATIONS)
    finally:
        store.remove("history")
