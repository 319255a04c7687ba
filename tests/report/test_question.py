"""What `yarnstick predict` is asked: which model answers, of what size, and one sentence where none can."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from report.merge import records_table
from report.predictions import Series, all_series
from report.question import Question, answer
from report.trials import trials
from store.errors import SettingError
from tests.report.made import BASELINE, QUICK, mllib, outcomes, torch
from tests.report.test_predictions import seconds_of, series_of, sweep

ASKED = Question(run_id="R", platform="mllib", dataset="mnist", executors=2, cores=1)


@pytest.fixture(scope="module")
def found() -> list[Series]:
    """The sweep, its PyTorch in two precisions."""
    fine = [replace(each, precision="float64", seconds=2 * (each.seconds or 0)) for each in sweep(spark=False)]
    return series_of([*fine, *sweep()])


def asked(found: list[Series], **changes: Any) -> dict[str, Any]:
    return answer(replace(ASKED, **changes), found, baseline=BASELINE)


def test_the_answer_is_seconds_of_an_epoch_with_what_is_known_of_their_error(found: list[Series]) -> None:
    said = asked(found, executors=4, rows=30_000, hidden=(128,))
    made = mllib(4, 1, None, rows=30_000, sizes=(784, 128, 10))
    assert said["seconds"] == pytest.approx(seconds_of(made, fixed=0.4, sums=0.05), rel=1e-6)
    assert said["ci_low"] <= said["seconds"] <= said["ci_high"]
    assert said["interval"] == [said["ci_low"], said["ci_high"]]
    assert said["held_out_error"] < 1e-6
    assert (said["extrapolated"], said["validated"], said["note"]) == (False, True, None)
    assert (said["network"], said["rows"], said["total_cores"]) == ("mlp:784-128-10", 30_000, 4)
    assert said["configurations"] == 27
    assert said["measured"]["rows"] == [3_000, 60_000]
    assert sum(said["parts"].values()) == pytest.approx(said["seconds"])


def test_what_is_left_out_is_as_it_was_measured(found: list[Series]) -> None:
    said = asked(found)
    assert (said["rows"], said["network"]) == (60_000, "mlp:784-1024-10"), "the most rows, the largest of equals"
    on_threads = asked(found, platform="torch-cpu", executors=1, cores=2)
    assert (on_threads["threads"], on_threads["executors"], on_threads["total_cores"]) == (2, None, 2)
    assert on_threads["precision"] == "float32", "the baseline's"
    assert asked(found, platform="torch-cpu", executors=None, precision="float64")["precision"] == "float64"


def test_beyond_four_times_it_says_so(found: list[Series]) -> None:
    said = asked(found, rows=1_000_000)
    assert said["extrapolated"]
    assert not said["validated"]
    assert said["note"].startswith("physics model, not validated: rows 1,000,000 is beyond 4 times the 60,000")
    assert (said["ci_low"], said["interval"]) == (None, None)
    assert said["held_out_error"] < 1e-6


def test_a_deeper_network_than_any_that_was_measured_is_physics_alone(found: list[Series]) -> None:
    said = asked(found, hidden=(100, 50))
    assert said["network"] == "mlp:784-100-50-10"
    assert said["note"] == "physics model, not validated: hidden layers 2 where only 1 was measured"


def test_passes_of_an_epoch_are_those_that_were_measured() -> None:
    made = [replace(each, solver="l-bfgs", passes=2) for each in sweep(spark=False)]
    said = asked(series_of(made), platform="torch-cpu", executors=None, cores=1)
    assert said["passes_per_epoch"] == 2
    assert said["seconds"] == pytest.approx(2 * said["seconds_per_pass"])
    expected = torch(1, None, rows=60_000, sizes=(784, 1024, 10))
    assert said["seconds"] == pytest.approx(seconds_of(expected, fixed=0.001, slower=9.0), rel=1e-6)


def test_any_synthetic_dataset_is_answered_by_those_that_were_measured() -> None:
    made = [
        replace(each, dataset=f"synthetic:{each.rows}x784x10", data_fraction=1.0)
        for each in sweep(spark=False)
    ]  # fmt: skip
    asks = {"platform": "torch-cpu", "executors": None, "cores": 2}
    said = asked(series_of(made), dataset="synthetic:50000x400x7", **asks)
    assert (said["rows"], said["network"]) == (50_000, "mlp:400-1024-7")
    assert said["note"] == "physics model, not validated: columns 400 where only 784 was measured"
    assert asked(series_of(made), dataset="synthetic:50000x784x10", **asks)["validated"]
    with pytest.raises(SettingError, match="dataset mnist was not trained on by torch-cpu in run R; known are synth"):
        asked(series_of(made), **asks)
    with pytest.raises(SettingError, match="solver sgd of torch-cpu was not measured on synthetic data in run R; kno"):
        asked(series_of(made), dataset="synthetic:50000x400x7", solver="sgd", **asks)


def test_a_series_answers_for_its_own_datasets_only() -> None:
    """gd has a model, of mnist; l-bfgs ran on cifar10, once."""
    other = torch(1, 0.9, dataset="cifar10", sizes=(3072, 1024, 10), solver="l-bfgs", rows=5_000, data_fraction=0.1)
    found = series_of([*sweep(spark=False), other])
    asks: dict[str, Any] = {"platform": "torch-cpu", "executors": None, "cores": 1, "dataset": "cifar10"}
    for rows in (None, 10_000):
        with pytest.raises(
            SettingError, match=r"no prediction: torch-cpu \(l-bfgs, .* was measured in 1 configuration"
        ):
            asked(found, rows=rows, **asks)
    with pytest.raises(SettingError, match="solver gd of torch-cpu was not measured on cifar10 in run R; known are l-"):
        asked(found, solver="gd", **asks)
    with pytest.raises(SettingError, match="precision float64 of torch-cpu was not measured on cifar10 in run R; kno"):
        asked(found, precision="float64", **asks)
    both = series_of([*sweep(spark=False), replace(other, solver="gd")])
    said = asked(both, **asks)
    assert (said["solver"], said["rows"], said["network"]) == ("gd", 5_000, "mlp:3072-1024-10")


def test_datasets_of_one_size_are_each_known() -> None:
    alike = [replace(each, dataset="fashion-mnist") for each in sweep(spark=False)]
    found = series_of([*sweep(spark=False), *alike])
    assert {tuple(sorted(point.datasets)) for point in found[0].points} == {("fashion-mnist", "mnist")}
    asks: dict[str, Any] = {"platform": "torch-cpu", "executors": None, "cores": 1}
    assert {asked(found, dataset=name, **asks)["rows"] for name in ("mnist", "fashion-mnist")} == {60_000}


def test_partitions_are_at_least_the_cores() -> None:
    frame = pl.DataFrame(records_table(outcomes(sweep()))).with_columns(
        partitions=pl.when(pl.col("executors").is_not_null()).then(4)
    )
    found = all_series(trials(frame))
    assert asked(found)["partitions"] == 4
    assert asked(found, executors=8)["partitions"] == 8
    assert asked(found, platform="torch-cpu", executors=None)["partitions"] is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"platform": "keras"}, "platform keras has no epochs in run R; known are mllib, torch-cpu"),
        ({"platform": "a\nb"}, r"platform 'a\nb' has no epochs"),
        ({"dataset": "cifar10"}, "dataset cifar10 was not trained on by mllib in run R; known are mnist"),
        ({"dataset": "csv:a.csv"}, "dataset csv:a.csv was not trained on"),
        ({"solver": "adam"}, "solver adam of mllib was not measured on mnist in run R; known are gd"),
        (
            {"precision": "bfloat16"},
            "precision bfloat16 of mllib was not measured on mnist in run R; known are float64",
        ),
        ({"cores": None}, "mllib runs on executors: say --cores"),
        ({"executors": None, "cores": None}, "say --executors and --cores"),
        ({"platform": "torch-cpu"}, "--executors 2: torch-cpu has no executors; leave it out, or give 1"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(found: list[Series], changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError) as refused:
        asked(found, **changes)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_too_few_configurations_are_refused() -> None:
    with pytest.raises(SettingError, match=r"no prediction: .* in 3 configurations .*, and a model takes 5: vary rows"):
        asked(series_of(QUICK))
