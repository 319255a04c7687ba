"""How often the whole way from records to the verdict errs, in simulated runs whose truth is known: fixed seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from pipeline.config import read_settings
from pipeline.plan import Limits, Subject, plan
from report.axes import swept
from report.comparison import compared
from report.merge import records_table
from report.page import summary
from report.planned import csv
from report.verdict import comparisons
from tests.report.made import BASELINE, RUN, Made, mllib, outcomes, torch

RUNS = 200
MOST_FALSE = 21  # of 200 at 5 %, with 99.9 %
ONE_OF_A_TRIAL = ("platform", "executors", "cores", "threads", "precision", "gradient", "trial")


def simulated(made: Sequence[Made], *, trials: int, noise: float, seed: int) -> Iterator[pl.DataFrame]:
    """Records of many runs: each trial is as slow as chance makes it, about its configuration's true seconds."""
    base = pl.DataFrame(records_table(outcomes(made, trials=trials, epochs=2, noise=0.0)))
    trial = base.select(pl.struct(ONE_OF_A_TRIAL).rank("dense") - 1).to_series().to_numpy()
    generator = np.random.default_rng(seed)
    for _ in range(RUNS):
        chance = generator.normal(1, noise, int(trial.max()) + 1)[trial]
        accuracy = 0.9 + generator.normal(0, 0.01, int(trial.max()) + 1)[trial]
        yield base.with_columns(seconds=pl.col("seconds") * chance, test_accuracy=pl.Series(accuracy))


def verdict(records: pl.DataFrame) -> dict[str, Any]:
    (found,) = summary(records.to_arrow(), run=RUN, baseline=BASELINE)["comparisons"]
    assert isinstance(found, dict)
    return found


def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Made], int]:
    """What the full profile plans of one dataset and solver, which is the family of Holm's correction; its trials."""
    monkeypatch.chdir(tmp_path)
    settings = read_settings("full", overrides=["profile.full.datasets=mnist", "profile.full.solvers=gd"])
    subject = Subject(name="mnist", slug="mnist-1", columns=784, classes=10)
    planned = plan(settings, [subject], Limits(cores=64, memory_mib=1 << 20))
    specs = [each.spec for each in planned if each.spec.trial == 1 and each.impossible is None]
    made = [
        Made(
            platform=spec.platform,
            seconds=1.0,
            executors=spec.resources.executors,
            cores=spec.resources.cores,
            threads=spec.resources.threads,
            device=spec.resources.device,
            memory_mib=spec.resources.memory_mib,
            precision=spec.hyperparameters.precision,
            gradient=spec.hyperparameters.gradient,
            compression=spec.hyperparameters.compression,
        )
        for spec in specs
    ]
    assert len({replace(each, seconds=None) for each in made}) == len(made) == len(specs)
    return made, settings.profile.trials


def test_the_bound_is_that_of_chance() -> None:
    assert stats.binom.ppf(0.999, RUNS, 0.05) == MOST_FALSE


@pytest.mark.parametrize("trials", [3, 7])
def test_the_same_platform_under_two_names_is_called_different_no_more_often_than_stated(trials: int) -> None:
    """Two and four threads of each are a true difference, which is among the comparisons and must not be counted."""
    mine = [torch(1, 0.52), torch(2, 0.33)]
    again = [replace(each, platform="torch-again") for each in mine]
    claims = 0
    for records in simulated([*mine, *again], trials=trials, noise=0.03, seed=trials):
        tests = verdict(records)["tests"]
        same = [each for each in tests if each["left"].partition(", ")[2] == each["right"].partition(", ")[2]]
        assert len(same) == 2
        assert len(tests) == 3
        claims += any(each["p_holm"] < 0.05 for each in same)
    assert claims <= MOST_FALSE


def test_where_all_of_the_full_profile_is_equal_nothing_is_called_different_more_often_than_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two fastest are picked by their means, which is chance here: that must not make them differ."""
    made, trials = full(tmp_path, monkeypatch)
    claims = 0
    for records in simulated(made, trials=trials, noise=0.03, seed=2):
        claims += any(test["p_holm"] < 0.05 for test in verdict(records)["tests"])
    assert claims <= MOST_FALSE


def test_a_true_difference_of_a_tenth_is_found_among_all_that_the_full_profile_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything else takes as long as the baseline, so that each other comparison weighs in the correction."""
    made, trials = full(tmp_path, monkeypatch)
    assert trials == 7
    true = next(each for each in made if (each.platform, each.executors, each.cores) == ("mllib", 2, 1))
    run = [replace(each, seconds=0.9) if each is true else each for each in made]
    found, counts = 0, set()
    for records in simulated(run, trials=trials, noise=0.03, seed=0):
        answer = verdict(records)
        mine = [
            test
            for test in answer["tests"]
            if test["against"] == "baseline" and test["left"].startswith("Spark MLlib, 2 executors x 1 core")
        ]
        found += [test["call"] for test in mine] == ["beats"]
        counts.add(len(answer["tests"]))
    # torch-cuda, two threads of numpy, four of MLlib and four of torch-spark; the two fastest.
    assert counts == {12}
    assert found >= 0.95 * RUNS


@pytest.mark.parametrize(
    ("metric", "told"),
    [("accuracy", lambda test: test in ("higher", "lower")), ("axis", lambda test: test == "differs")],
)
def test_what_stands_in_the_table_errs_no_more_often_than_stated(metric: str, told: Callable[[str], bool]) -> None:
    """Accuracy of equals, and axes over which nothing changes."""
    made = [torch(n, 0.5) for n in (1, 2, 4)] + [mllib(n, 1, 0.5) for n in (1, 2, 4)]
    claims = 0
    for records in simulated(made, trials=5, noise=0.03, seed=1):
        _, configurations = compared(records, baseline=BASELINE)
        if metric == "axis":
            claims += any(told(each.call) for each in swept(configurations) if each.metric == "seconds")
        else:
            lines = pl.read_csv(csv(comparisons(configurations, baseline=BASELINE), []))
            claims += any(map(told, lines.filter(pl.col("metric") == "accuracy")["call"]))
    assert claims <= MOST_FALSE
