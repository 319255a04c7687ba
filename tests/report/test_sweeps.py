"""Every swept axis is a file of its own, and no two of them have one name."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from models.outcome import Outcome
from report import sweeps
from report.comparison import compared
from report.merge import records_table
from tests.report.made import BASELINE, mllib, outcomes, torch, with_records


def swept(found: Sequence[Outcome]) -> dict[str, list[dict[str, str]]]:
    _, configurations = compared(pl.DataFrame(records_table(found)), baseline=BASELINE)
    made = sweeps.files(configurations)
    return {name: list(csv.DictReader(io.StringIO(data.decode()))) for name, data in made.items()}


def test_platforms_and_datasets_whose_names_meet_have_files_of_their_own() -> None:
    """`a_b` on `c` and `a` on `b_c` would both be sweep_threads_a_b_c.csv."""
    pairs = (("a_b", "c", 1.0), ("a", "b_c", 2.0))
    made = [
        replace(torch(n, seconds / n), platform=platform, dataset=dataset)
        for platform, dataset, seconds in pairs
        for n in (1, 2)
    ]
    found = swept(outcomes(made, noise=0.0))
    assert len(found) == 2
    assert {rows[0]["mean_seconds"][:3] for rows in found.values()} == {"1.0", "2.0"}
    assert "sweep_threads_torch-cpu_mnist.csv" in swept(outcomes([torch(1, 1.0), torch(2, 0.5)]))


def test_partitions_are_an_axis() -> None:
    few = outcomes([mllib(2, 1, 2.1)], noise=0.0)
    many = [with_records(each, partitions=8) for each in outcomes([mllib(2, 1, 2.6)], noise=0.0)]
    found = swept([*(with_records(each, partitions=2) for each in few), *many])
    rows = found["sweep_partitions_mllib_mnist.csv"]
    assert next(iter(rows[0])) == "partitions"
    assert [(row["partitions"], row["executors"], round(float(row["mean_seconds"]), 1)) for row in rows] == [
        ("2", "2", 2.1), ("8", "2", 2.6),
    ]  # fmt: skip
