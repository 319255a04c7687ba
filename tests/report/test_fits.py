"""Straight lines against scipy called directly, both resources together against residuals of residuals."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from models.outcome import Outcome
from report import fits
from report.comparison import compared
from report.merge import records_table
from report.page import report_files
from tests.report.made import BASELINE, QUICK, RUN, mllib, outcomes, torch, with_records
from tests.report.test_comparison import times

# Machines by their cores: memory in GB, and seconds.
MACHINES = {1: (4.0, 9.1), 2: (16.0, 5.2), 4: (8.0, 3.4), 8: (32.0, 1.9), 16: (16.0, 1.6)}


def on_machines(
    machines: Mapping[int, tuple[float, float]] = MACHINES, *, trials: int = 1, noise: float = 0.01, unit: str = "epoch"
) -> list[Outcome]:
    """Each number of cores on a machine of its own."""
    run = outcomes([torch(n, seconds) for n, (_, seconds) in machines.items()], trials=trials, noise=noise, epochs=2)
    return [
        with_records(
            each,
            machine=f"m{each.spec.resources.threads}",
            machine_memory_gb=machines[each.spec.resources.threads or 0][0],
            unit=unit,
        )
        for each in run
    ]


def lines(found: Sequence[Outcome]) -> list[dict[str, str]]:
    _, configurations = compared(pl.DataFrame(records_table(found)), baseline=BASELINE)
    return list(csv.DictReader(io.StringIO(fits.csv(fits.fits(configurations)).decode())))


def numbers(found: Sequence[Outcome]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cores, memory and seconds of each trial, by hand."""
    cores = [float(each.spec.resources.threads or 0) for each in found]
    memory = [each.records[0].machine_memory_gb or 0 for each in found]
    return np.array(cores), np.array(memory), np.array([each.records[1].seconds for each in found], float)


def means(found: Sequence[Outcome]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of each machine, over its trials."""
    cores, memory, seconds = numbers(found)
    every = np.unique(cores)
    return every, *(np.array([column[cores == n].mean() for n in every]) for column in (memory, seconds))


def said(found: Sequence[Outcome]) -> str:
    _, configurations = compared(pl.DataFrame(records_table(found)), baseline=BASELINE)
    return " ".join(fits.sentences(fits.fits(configurations)))


def test_the_columns_begin_with_the_contracts() -> None:
    names = ["platform", "dataset", "resource", "n", "slope", "intercept", "r_squared"]
    assert list(fits.COLUMNS)[:7] == names
    assert fits.csv([]).decode().splitlines() == [",".join(fits.COLUMNS)]


@pytest.mark.parametrize("trials", [1, 3])
def test_each_line_is_scipys_over_machines_however_often_they_were_timed(trials: int) -> None:
    run = on_machines(trials=trials)
    cores, memory, seconds = means(run)
    found = lines(run)
    assert [(each["platform"], each["dataset"], each["resource"]) for each in found] == [
        ("torch-cpu", "mnist", "cores"),
        ("torch-cpu", "mnist", "memory_gb"),
        ("torch-cpu", "mnist", "cores and memory_gb"),
    ]
    for line, x in zip(found[:2], (cores, memory), strict=True):
        expected = stats.linregress(x, seconds)
        assert line["n"] == "5"
        mine = [float(line[name]) for name in ("slope", "intercept", "r_squared", "p")]
        assert mine == pytest.approx([expected.slope, expected.intercept, expected.rvalue**2, expected.pvalue])


def test_a_partial_r_squared_is_the_squared_correlation_of_what_the_other_leaves() -> None:
    run = on_machines(trials=2)
    cores, memory, seconds = means(run)
    joint = lines(run)[2]

    def left(y: np.ndarray, x: np.ndarray) -> np.ndarray:
        line = stats.linregress(x, y)
        return np.asarray(y - line.slope * x - line.intercept)

    for name, x, other in (("cores", cores, memory), ("memory_gb", memory, cores)):
        line = stats.linregress(left(x, other), left(seconds, other))
        assert float(joint[f"{name}_partial_r_squared"]) == pytest.approx(line.rvalue**2)
        assert float(joint[f"{name}_slope"]) == pytest.approx(line.slope)
    between = stats.linregress(cores, memory).rvalue ** 2
    assert float(joint["variance_inflation"]) == pytest.approx(1 / (1 - between))
    rest = float(((seconds - np.column_stack([np.ones(5), cores, memory]) @ _plane(joint)) ** 2).sum())
    explained = 1 - rest / float(((seconds - seconds.mean()) ** 2).sum())
    assert float(joint["r_squared"]) == pytest.approx(explained)
    assert float(joint["p"]) == pytest.approx(stats.f.sf(explained / 2 / ((1 - explained) / 2), 2, 2))
    assert (joint["slope"], joint["n"]) == ("", "5")
    assert "vary apart" in joint["note"]


def _plane(joint: Mapping[str, str]) -> list[float]:
    return [float(joint[name]) for name in ("intercept", "cores_slope", "memory_gb_slope")]


def test_an_exact_plane_is_found_again() -> None:
    """Seconds are 10 - 0.5 cores - 0.1 GB: what one leaves the other explains wholly."""
    exact = {n: (memory, 10 - 0.5 * n - 0.1 * memory) for n, (memory, _) in MACHINES.items()}
    joint = lines(on_machines(exact, noise=0.0))[2]
    assert _plane(joint) == pytest.approx([10, -0.5, -0.1])
    shares = [float(joint[name]) for name in ("r_squared", "cores_partial_r_squared", "memory_gb_partial_r_squared")]
    assert shares == pytest.approx([1, 1, 1])


def test_what_rises_in_step_cannot_be_told_apart() -> None:
    step = {n: (4.0 * n, seconds) for n, (_, seconds) in MACHINES.items()}
    joint = lines(on_machines(step))[2]
    assert joint["note"] == "cores and memory_gb rise in step: nothing tells which of them it is"
    assert (joint["cores_partial_r_squared"], joint["r_squared"], joint["cores_slope"]) == ("", "", "")
    assert "nothing tells which of them it is" in said(on_machines(step))


def test_what_rises_in_step_but_for_rounding_is_told_apart_no_better() -> None:
    """Memory as it is told on machines of equal make, a few bytes apart: their correlation is 1 in all its digits."""
    step = {n: (4.0 * n * (1 + 1e-9 * n), seconds) for n, (_, seconds) in MACHINES.items()}
    joint = lines(on_machines(step))[2]
    assert joint["note"] == "cores and memory_gb rise in step: nothing tells which of them it is"
    assert (joint["variance_inflation"], joint["condition_number"]) == ("", "")


@pytest.mark.parametrize(
    ("odd", "word"), [(5.0, "their shares can't be told apart"), (22.0, "their shares are uncertain")]
)
def test_what_rises_nearly_in_step_is_said(odd: float, word: str) -> None:
    nearly = {n: (4.0 * n + (odd if n == 2 else 0), seconds) for n, (_, seconds) in MACHINES.items()}
    joint = lines(on_machines(nearly))[2]
    inflation = float(joint["variance_inflation"])
    assert (inflation >= 10) == ("told apart" in word)
    assert inflation >= 2.5
    assert word in joint["note"]


def test_three_points_are_too_few_for_both_and_two_have_no_chance() -> None:
    three = {n: MACHINES[n] for n in (1, 2, 4)}
    assert lines(on_machines(three))[2]["note"] == "3 points are too few for two resources: it takes 4"
    two = lines(on_machines({n: MACHINES[n] for n in (1, 2)}))
    assert (float(two[0]["r_squared"]), two[0]["p"]) == (pytest.approx(1.0), "")


def test_a_resource_that_does_not_vary_has_no_line() -> None:
    found = lines(outcomes(QUICK))
    assert {each["resource"] for each in found} == {"cores"}
    assert lines(outcomes([torch(1, 0.5)])) == []


def test_only_rows_with_at_most_one_executor_are_fitted() -> None:
    run = outcomes([mllib(1, 1, 3.9), mllib(1, 2, 2.3), mllib(1, 4, 1.4), mllib(2, 2, 9.0), mllib(4, 1, 9.0)])
    (line,) = lines(run)
    y = [times(run, "mllib", executors=1, cores=n) for n in (1, 2, 4)]
    expected = stats.linregress([1, 2, 4], np.mean(y, axis=1))
    assert float(line["slope"]) == pytest.approx(expected.slope)
    assert line["n"] == "3"


def test_whole_trainings_are_fitted_where_there_are_some_else_epochs() -> None:
    epochs = on_machines()
    trainings = [
        replace(each, records=tuple(replace(record, seconds=9 * (record.seconds or 0)) for record in each.records))
        for each in on_machines(unit="training")
    ]
    assert {each["unit"] for each in lines(epochs)} == {"epoch"}
    assert {each["unit"] for each in lines([*epochs, *trainings])} == {"training"}


def test_unequal_work_is_another_line() -> None:
    run = [*on_machines(), *outcomes([torch(n, 0.1 / n, batch_size=64, solver="sgd") for n in (1, 2)])]
    found = [(each["solver"], each["batch_size"]) for each in lines(run) if each["resource"] == "cores"]
    assert found == [("gd", ""), ("sgd", "64")]


def test_the_page_says_it_and_the_same_records_give_the_same_bytes() -> None:
    first, second = (report_files(records_table(on_machines(trials=3)), run=RUN, baseline=BASELINE) for _ in range(2))
    assert first["fits.csv"] == second["fits.csv"]
    assert first["report.html"] == second["report.html"]
    assert "Cores or memory?" in first["report.html"].decode()
    assert "a straight line of cores and memory together has an R squared of" in said(on_machines(trials=3))
