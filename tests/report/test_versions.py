"""Versions of libraries over the records of a run."""

from __future__ import annotations

import json

import polars as pl

from report.versions import versions_of


def records(*versions: dict[str, str] | None) -> pl.DataFrame:
    texts = [None if each is None else json.dumps(each) for each in versions]
    return pl.DataFrame({"versions": texts}, schema={"versions": pl.String})


def test_all_that_a_run_had_are_told() -> None:
    """As of an edge node and a cluster: the last one would hide that the run is of both."""
    found = versions_of(records({"torch": "2.15.0", "java": "17"}, {"torch": "2.9.0"}, {"torch": "2.15.0"}, None))
    assert found == {"java": "17", "torch": "2.15.0 and 2.9.0"}


def test_none_are_told_of_no_record() -> None:
    assert versions_of(records()) == {}
