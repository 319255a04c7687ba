"""tests.csv says what the verdict tested, how large each difference is, and the same of accuracy."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from models.outcome import Outcome
from report import planned
from report.axes import swept
from report.comparison import compared
from report.merge import records_table
from report.page import report_files, summary
from report.statistics import Sample, ratio
from report.verdict import comparisons
from tests.report.made import BASELINE, QUICK, RUN, Made, mllib, outcomes, torch
from tests.report.test_comparison import times

CONTRACT = (
    "metric", "dataset", "network", "solver", "batch_size", "data_fraction", "unit", "test", "left", "right",
    "statistic", "degrees_of_freedom", "p", "p_holm", "effect", "call",
)  # fmt: skip


def table(run: Sequence[Outcome]) -> bytes:
    _, configurations = compared(pl.DataFrame(records_table(run)), baseline=BASELINE)
    return planned.csv(comparisons(configurations, baseline=BASELINE), swept(configurations))


def lines(run: Sequence[Outcome], metric: str, test: str = "welch") -> list[dict[str, str]]:
    found = csv.DictReader(io.StringIO(table(run).decode()))
    return [line for line in found if line["metric"] == metric and line["test"] == test]


def learnt(run: Sequence[Outcome], accuracies: dict[tuple[str, int | None], list[float]]) -> list[Outcome]:
    """The same trials, which end at these accuracies."""
    return [
        replace(
            each,
            records=tuple(
                replace(
                    record,
                    test_accuracy=accuracies[each.spec.platform, each.spec.resources.threads][each.spec.trial - 1],
                )
                for record in each.records
            ),
        )
        for each in run
    ]


def test_the_columns_begin_with_the_contracts() -> None:
    assert tuple(planned.COLUMNS)[: len(CONTRACT)] == CONTRACT
    empty = table([]).decode()
    assert empty.splitlines() == [",".join(planned.COLUMNS)]


def test_seconds_are_the_verdicts_own_tests() -> None:
    run = outcomes(QUICK, noise=0.05)
    (comparison,) = summary(records_table(run), run=RUN, baseline=BASELINE)["comparisons"]
    mine = lines(run, "seconds")
    assert len(mine) == len(comparison["tests"]) == 4
    for line, test in zip(mine, comparison["tests"], strict=True):
        assert line["call"] == test["call"]
        for name, key in (
            ("statistic", "t"),
            ("degrees_of_freedom", "degrees_of_freedom"),
            ("p", "p"),
            ("p_holm", "p_holm"),
        ):
            assert float(line[name]) == pytest.approx(test[key])


def test_a_line_by_scipy() -> None:
    run = outcomes([torch(1, 0.5), mllib(1, 1, 0.45)], trials=5, noise=0.05)
    spark, one = times(run, "mllib"), times(run, "torch-cpu")
    line = lines(run, "seconds")[0]
    expected = stats.ttest_ind(spark, one, equal_var=False, alternative="less")
    assert float(line["statistic"]) == pytest.approx(expected.statistic)
    assert float(line["degrees_of_freedom"]) == pytest.approx(expected.df)
    assert float(line["p"]) == pytest.approx(expected.pvalue)
    assert float(line["difference"]) == pytest.approx(100 * (np.mean(spark) / np.mean(one) - 1))
    whole = ratio(Sample.of(spark), Sample.of(one))
    assert whole.low is not None
    assert float(line["difference_low"]) == pytest.approx(100 * (whole.low - 1))
    d = stats.ttest_ind(spark, one).statistic * np.sqrt(2 / 5)
    assert float(line["effect"]) == pytest.approx(d * (1 - 3 / 31), rel=2e-3)
    assert (line["trials_left"], line["trials_right"], line["alternative"]) == ("5", "5", "less")


def test_accuracy_is_tested_for_the_same_pairs_in_both_directions() -> None:
    accuracies = {
        ("torch-cpu", 1): [0.90, 0.91, 0.92, 0.90], ("torch-cpu", 2): [0.91, 0.92, 0.90, 0.91],
        ("mllib", None): [0.95, 0.96, 0.97, 0.95],
    }  # fmt: skip
    run = learnt(outcomes([torch(1, 0.5), torch(2, 0.3), mllib(1, 1, 2.0)], trials=4), accuracies)
    first, second = lines(run, "accuracy")
    p = [
        stats.ttest_ind(accuracies["mllib", None], accuracies["torch-cpu", 1], equal_var=False),
        stats.ttest_ind(accuracies["torch-cpu", 2], accuracies["mllib", None], equal_var=False),
    ]
    assert (float(first["p"]), float(second["p"])) == pytest.approx([each.pvalue for each in p])
    low, high = sorted(each.pvalue for each in p)
    holm = {low: 2 * low, high: max(2 * low, high)}
    assert (float(first["p_holm"]), float(second["p_holm"])) == pytest.approx([holm[each.pvalue] for each in p])
    assert (first["call"], second["call"]) == ("higher", "lower")
    assert float(first["difference"]) == pytest.approx(5.0)
    assert (first["difference_unit"], first["alternative"]) == ("points", "two-sided")


def test_a_pair_that_is_planned_twice_is_tested_once_for_accuracy() -> None:
    run = outcomes([torch(1, 0.5), mllib(1, 1, 0.3)])
    assert (len(lines(run, "seconds")), len(lines(run, "accuracy"))) == (2, 1)


def test_one_trial_is_no_test() -> None:
    run = outcomes(trials=1)
    assert {(line["p"], line["effect"], line["call"]) for line in lines(run, "accuracy")} == {("", "", "no test")}
    assert {line["p"] for line in lines(run, "seconds")} == {""}
    assert {line["difference_low"] for line in lines(run, "seconds")} == {""}


def test_zero_variance_is_defined() -> None:
    run = outcomes([torch(1, 0.5), mllib(1, 1, 2.0)], noise=0.0)
    line = lines(run, "seconds")[0]
    assert line["p"] == "1.0"
    assert float(line["difference"]) == pytest.approx(300)
    assert line["effect"] == ""
    assert lines(run, "accuracy")[0]["call"] == "higher"


def test_unequal_numbers_of_trials() -> None:
    run = [each for each in outcomes(trials=4) if not (each.spec.platform == "mllib" and each.spec.trial > 2)]
    assert {(line["trials_left"], line["trials_right"]) for line in lines(run, "seconds")} == {("2", "4"), ("4", "2")}


def test_without_accuracy_there_is_none_to_test() -> None:
    run = outcomes([replace(made, loss=False) for made in QUICK])
    assert lines(run, "accuracy") == []
    assert lines(run, "seconds") != []


def test_axes_stand_below() -> None:
    run = outcomes([torch(n, 0.5) for n in (1, 2, 4)], trials=4, noise=0.05, seed=1)
    (line,) = lines(run, "seconds", "anova")
    groups = [times(run, "torch-cpu", threads=n) for n in (1, 2, 4)]
    expected = stats.f_oneway(*groups)
    assert (float(line["statistic"]), float(line["p"])) == pytest.approx((expected.statistic, expected.pvalue))
    assert (line["left"], line["right"]) == ("torch-cpu", "threads: 1, 2, 4")
    assert (line["platform"], line["axis"], line["effect_kind"]) == ("torch-cpu", "threads", "omega_squared")
    assert (float(line["degrees_between"]), float(line["degrees_of_freedom"])) == (2, 9)
    assert float(line["spread_p"]) == pytest.approx(stats.levene(*groups, center="median").pvalue)


def test_the_column_that_is_swept_is_empty() -> None:
    made = [torch(1, 0.1, solver="sgd", batch_size=size) for size in (64, 128)]
    (line,) = lines(outcomes(made), "seconds", "anova")
    assert (line["batch_size"], line["solver"], line["right"]) == ("", "sgd", "batch_size: 64, 128")


def test_names_are_no_formulas_to_a_spreadsheet() -> None:
    run = outcomes(
        [
            torch(1, 0.5),
            Made(platform="=cmd()", threads=1, seconds=0.3),
            Made(platform="=cmd()", threads=2, seconds=0.2),
        ]
    )
    cells = [cell for line in csv.reader(io.StringIO(table(run).decode())) for cell in line]
    assert "'=cmd()" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+"))]


def test_unequal_work_is_compared_by_the_seconds_to_a_target() -> None:
    """Here seconds stand for those to a target: what differs is the solver."""
    run = outcomes([torch(1, 0.5), mllib(1, 1, 0.4, solver="l-bfgs")], trials=5, noise=0.05)
    _, configurations = compared(pl.DataFrame(records_table(run)), baseline=BASELINE)
    one = configurations.with_columns(pl.lit(0).alias("class"), is_baseline=pl.col("platform") == "torch-cpu")
    data = planned.csv([], [], to_target=comparisons(one, baseline=BASELINE))
    line = next(csv.DictReader(io.StringIO(data.decode())))
    expected = stats.ttest_ind(times(run, "mllib"), times(run, "torch-cpu"), equal_var=False, alternative="less")
    assert float(line["p"]) == pytest.approx(expected.pvalue)
    assert (line["metric"], line["dataset"], line["solver"], line["unit"]) == ("seconds_to_target", "mnist", "", "")
    assert line["left"] == "Spark MLlib, 1 executor x 1 core, float64, L-BFGS"
    assert line["right"] == "torch-cpu, 1 thread, float32, full-batch gradient descent"


def test_the_report_publishes_it_and_the_same_records_give_the_same_bytes() -> None:
    first, second = (report_files(records_table(outcomes()), run=RUN, baseline=BASELINE) for _ in range(2))
    assert first["tests.csv"] == second["tests.csv"] == table(outcomes())
    page = first["report.html"].decode()
    assert "4 planned comparisons" in page
    assert "6 analyses of variance, over each axis that was swept" in page
