"""The verdict says what the statistics say, in the contract's keys and in words."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from models.outcome import Outcome
from report.facts import BaselineSpec, RunFacts
from report.merge import records_table
from report.page import report_files, summary
from tests.report.made import BASELINE, QUICK, RUN, Made, ended, mllib, outcome, outcomes, torch
from tests.report.test_comparison import times


def verdict(found: Sequence[Outcome]) -> dict[str, Any]:
    return summary(records_table(found), run=RUN, baseline=BASELINE)


def first_lines(records: pa.Table, *, run: RunFacts, baseline: BaselineSpec) -> list[str]:
    lines = summary(records, run=run, baseline=baseline)["first_lines"]
    assert isinstance(lines, list)
    return lines


def only(found: Sequence[Outcome]) -> dict[str, Any]:
    (comparison,) = verdict(found)["comparisons"]
    assert isinstance(comparison, dict)
    return comparison


def said(found: Sequence[Outcome]) -> str:
    return " ".join(only(found)["sentences"])


def test_the_keys_are_the_contracts() -> None:
    found = only(outcomes())
    keys = [
        "dataset",
        "network",
        "solver",
        "batch_size",
        "data_fraction",
        "unit",
        "baseline",
        "platforms",
        "fastest",
        "flips",
    ]
    assert list(found)[: len(keys)] == keys
    assert found["flips"] == []
    assert found["baseline"].keys() >= {"platform", "total_cores", "seconds"}
    assert found["platforms"].keys() == {"torch-cpu", "mllib", "torch-cuda"}
    for platform in found["platforms"].values():
        assert platform.keys() >= {"cost_cores", "cost_unit", "reason", "seconds", "total_cores", "factors"}


def test_the_file_holds_the_summary() -> None:
    records = records_table(outcomes(trials=2))
    parsed = json.loads(report_files(records, run=RUN, baseline=BASELINE)["verdict.json"])
    assert parsed == json.loads(json.dumps(summary(records, run=RUN, baseline=BASELINE)))


def test_the_verdict_of_a_quick_run() -> None:
    run = outcomes()
    found = only(run)
    assert found["fastest"] == "torch-cpu"
    assert found["baseline"]["seconds"] == pytest.approx(np.mean(times(run, "torch-cpu", threads=1)))
    spark = found["platforms"]["mllib"]
    assert (spark["total_cores"], spark["cost_cores"], spark["reason"]) == (2, None, "none of 1, 2 cores did")
    assert spark["seconds"] == pytest.approx(np.mean(times(run, "mllib", executors=2, cores=1)))
    cuda = found["platforms"]["torch-cuda"]
    assert (cuda["seconds"], cuda["cost_cores"], cuda["reason"]) == (None, None, "not run: no CUDA device")


def test_the_first_sentences() -> None:
    text = said(outcomes())
    assert text.startswith(
        "On this machine, mnist with mlp:784-1024-10 (15,000 of 60,000 rows, full-batch gradient descent) "
        "trains fastest on torch-cpu: 0.33 s an epoch with 2 threads. "
        "Spark MLlib at its best (2 executors x 1 core, float64) needs 2.1 s with as many cores: 6."
    )
    assert "beyond doubt" in text
    assert "Spark MLlib with 1 or 2 cores did not beat the baseline, torch-cpu with 1 thread (0.52 s)." in text


def test_the_planned_comparisons_are_corrected_together() -> None:
    """Three configurations of MLlib against the baseline one-sidedly, and the two fastest in both directions."""
    run = outcomes([torch(1, 0.52), torch(2, 0.33), mllib(2, 1, 0.5), mllib(1, 1, 0.51), mllib(1, 2, 0.45)], noise=0.03)
    one, two = times(run, "torch-cpu", threads=1), times(run, "torch-cpu", threads=2)
    spark = [times(run, "mllib", executors=e, cores=c) for e, c in ((1, 2), (2, 1), (1, 1))]
    spark.sort(key=np.mean)
    plain = [stats.ttest_ind(each, one, equal_var=False, alternative="less").pvalue for each in spark]
    plain.append(stats.ttest_ind(two, spark[0], equal_var=False).pvalue)
    tests = only(run)["tests"]
    assert [test["p"] for test in tests] == pytest.approx(plain)
    order = np.argsort(plain)
    expected = np.empty(4)
    expected[order] = np.minimum(1, np.maximum.accumulate(np.array(plain)[order] * [4, 3, 2, 1]))
    assert [test["p_holm"] for test in tests] == pytest.approx(list(expected))


def test_cost_is_the_fewest_cores_that_beat_the_baseline() -> None:
    found = only(outcomes([torch(1, 0.52), mllib(1, 1, 0.9), mllib(2, 1, 0.4), mllib(2, 2, 0.3)]))
    spark = found["platforms"]["mllib"]
    assert (spark["cost_cores"], spark["cost_unit"], spark["total_cores"]) == (2, "cores", 4)
    assert "beaten by Spark MLlib from 2 cores on" in " ".join(found["sentences"])


def test_a_difference_below_two_percent_beats_nothing() -> None:
    found = only(outcomes([torch(1, 0.5), mllib(1, 1, 0.495)], noise=0.0001, trials=5))
    assert found["platforms"]["mllib"]["cost_cores"] is None
    assert found["decided"] == "too little"
    assert "too little to matter" in " ".join(found["sentences"])
    assert found["sentences"][0].startswith("On this machine, the two fastest differ by less than 2 %, too little to ")
    assert "trains fastest" not in found["sentences"][0]


def test_no_difference_found_is_a_sentence() -> None:
    found = only(outcomes([torch(1, 0.5), mllib(1, 1, 0.501)], noise=0.05))
    assert found["decided"] == "does not"
    assert "no difference was found" in found["sentences"][0]
    assert "trains fastest" not in found["sentences"][0]
    assert "cannot tell" in " ".join(found["sentences"])


def test_one_trial_is_plain_numbers_and_that_is_said() -> None:
    found = only(outcomes(trials=1))
    assert all(test["p"] is None for test in found["tests"])
    text = " ".join(found["sentences"])
    assert "Each configuration ran once: these are plain numbers" in text
    assert "doubt" not in text
    assert "(plain numbers: one trial)" in found["platforms"]["mllib"]["reason"]
    assert "trains fastest on torch-cpu in plain numbers: 0.33 s an epoch" in found["sentences"][0]
    near = only(outcomes([torch(1, 0.5), mllib(2, 1, 0.496)], trials=1, noise=0.0))
    assert near["decided"] == "plain slower"
    assert "in plain numbers the two fastest differ by less than 2 % for mnist" in near["sentences"][0]
    assert "trains fastest" not in near["sentences"][0]
    cheap = only(outcomes([torch(1, 0.5), mllib(2, 1, 0.3)], trials=1))
    assert cheap["platforms"]["mllib"]["cost_cores"] == 2


def test_zero_variance_is_defined() -> None:
    found = only(outcomes(noise=0.0))
    spark = found["platforms"]["mllib"]
    assert spark["ci_low"] == pytest.approx(spark["seconds"]) == pytest.approx(spark["ci_high"])
    assert spark["over_fastest"]["low"] == pytest.approx(2.1 / 0.33) == pytest.approx(spark["over_fastest"]["high"])


def test_unequal_numbers_of_trials() -> None:
    found = outcomes([torch(1, 0.5), mllib(1, 1, 2.0)], trials=4)
    found = [each for each in found if not (each.spec.platform == "mllib" and each.spec.trial > 2)]
    expected = stats.ttest_ind(times(found, "mllib"), times(found, "torch-cpu"), equal_var=False, alternative="less")
    assert only(found)["tests"][0]["p"] == pytest.approx(expected.pvalue)


def test_other_precisions_are_factors() -> None:
    made = [torch(1, 0.5), torch(1, 0.2, precision="bfloat16"), torch(1, 0.9, precision="float64"), mllib(1, 1, 2.0)]
    found = only(outcomes(made))
    torch_cpu = found["platforms"]["torch-cpu"]
    assert torch_cpu["precision"] == "float32"
    assert torch_cpu["seconds"] == pytest.approx(0.5, rel=0.05)
    assert {factor["precision"] for factor in torch_cpu["factors"]} == {"bfloat16", "float64"}
    assert found["platforms"]["mllib"]["precision"] == "float64"


def test_unequal_work_is_another_comparison() -> None:
    run = outcomes([*QUICK, torch(2, 0.01, solver="sgd", batch_size=128)])
    found = verdict(run)["comparisons"]
    assert [each["solver"] for each in found] == ["gd", "sgd"]
    assert found[0]["platforms"]["torch-cpu"]["seconds"] > 0.3
    assert found[1]["batch_size"] == 128
    assert found[1]["baseline"] is None
    assert found[1]["no_baseline"]


def test_without_the_baseline_there_is_no_cost_and_a_reason() -> None:
    found = only(outcomes([torch(2, 0.3), mllib(1, 1, 2.0)]))
    assert found["baseline"] is None
    assert found["platforms"]["mllib"]["cost_cores"] is None
    assert "torch-cpu in float32 with 1 thread" in found["platforms"]["mllib"]["reason"]
    assert "No baseline" in " ".join(found["sentences"])


def test_a_baseline_that_failed_is_the_reason() -> None:
    run = [ended(each, "failed", reason="boom") if each.spec.platform == "torch-cpu" else each for each in outcomes()]
    found = only(run)
    assert found["baseline"] is None
    assert "failed: boom" in found["no_baseline"]
    assert found["fastest"] == "mllib"


def test_nothing_ran() -> None:
    found = only(outcomes([made for made in QUICK if made.unavailable]))
    assert found["fastest"] is None
    assert "was trained on no platform" in found["sentences"][0]


def test_only_one_platform_claims_no_race() -> None:
    assert "was trained only on torch-cpu" in said(outcomes([torch(1, 0.5), torch(2, 0.3)]))
    assert "was trained only on torch-cpu" in said(outcomes([torch(1, 0.5)]))


def test_executors_without_cores_are_the_unit() -> None:
    spark = [replace(mllib(n, 1, seconds), cores=None) for n, seconds in ((1, 0.9), (3, 0.3))]
    found = only(outcomes([torch(1, 0.5), *spark]))["platforms"]["mllib"]
    assert (found["cost_cores"], found["cost_unit"], found["total_cores"]) == (3, "executors", None)


def test_a_platform_without_cores_can_beat_the_baseline() -> None:
    found = only(outcomes([torch(1, 0.5), Made(platform="torch-cuda", device="cuda", seconds=0.02)]))
    cuda = found["platforms"]["torch-cuda"]
    assert cuda["cost_cores"] is None
    assert cuda["reason"].startswith("it beats the baseline")


def test_passes_that_differ_are_said() -> None:
    made = [torch(1, 1.0, solver="l-bfgs"), replace(mllib(1, 1, 1.5), solver="l-bfgs", passes=3)]
    found = only(outcomes(made))
    assert found["ranked_by"] == "seconds_per_pass"
    assert found["fastest"] == "mllib"
    assert "a pass over the rows" in found["sentences"][0]


def test_where_passes_are_ranked_the_interval_is_of_a_pass() -> None:
    """Of two trials of 1.4 and 1.6 s an epoch, 3 passes each: 0.5 s, and 12.706 x 0.0333 s on either side."""
    spark = replace(mllib(1, 1, 1.0), solver="l-bfgs", passes=3)
    made = [outcome(spark, trial=n, factor=factor) for n, factor in enumerate((1.4, 1.6), 1)]
    table = records_table([*outcomes([torch(1, 1.0, solver="l-bfgs")], trials=2), *made])
    line = next(line for line in first_lines(table, run=RUN, baseline=BASELINE) if line.startswith("Spark MLlib  "))
    assert "0.500 s  76.5 ms to 0.924 s" in line
    page = report_files(table, run=RUN, baseline=BASELINE)["report.html"].decode()
    assert "<td>76.5 ms to 0.924 s</td>" in page
    assert "a pass over the rows, with its 95 % interval</caption>" in page


def test_the_terminal_shows_the_same_sentences_and_a_table() -> None:
    run = outcomes()
    lines = first_lines(records_table(run), run=RUN, baseline=BASELINE)
    assert lines[: len(only(run)["sentences"])] == only(run)["sentences"]
    assert any(line.startswith("Spark MLlib  2 executors x 1 core, float64  2.1") for line in lines)
    assert "3 trials each, 15 in all. None noisy. Not run: " in lines[-1]
    assert "torch-cuda (no CUDA device)" in lines[-1]
    assert "15,000 of 60,000 rows. Profile quick." in lines[-1]


def test_noise_failures_and_unfinished_runs_are_said() -> None:
    run = outcomes()
    run[0] = replace(run[0], noisy=True) if run[0].outcome == "ok" else run[0]
    run = [replace(each, noisy=each.spec.trial == 1 and each.outcome == "ok") for each in run]
    lost = next(n for n, each in enumerate(run) if each.outcome == "ok" and each.spec.trial == 3)
    run[lost] = ended(run[lost], "failed", reason="boom")
    facts = replace(RUN, trials_planned=40)
    lines = first_lines(records_table(run), run=facts, baseline=BASELINE)
    assert "5 of 14 noisy. 1 trial failed." in lines[-2]
    assert lines[-1] == "The run is not finished: 21 of 40 trials so far."


def test_trials_that_others_on_the_nodes_disturbed_are_told_apart_from_those_on_a_busy_machine() -> None:
    def loud(noise: str, **more: int) -> str:
        run = outcomes([torch(1, 0.52), mllib(2, 1, 2.1)])
        mine = [n for n, each in enumerate(run) if each.spec.platform == "mllib"]
        for n in mine[: more.get("of", 3)]:
            run[n] = replace(run[n], noisy=True, noise=noise)
        return first_lines(records_table(run), run=RUN, baseline=BASELINE)[-1]

    assert "6 in all. 3 of 6 noisy. " in loud("load")
    assert "6 in all. 3 of 6 noisy (all because others had part of the nodes). " in loud("cluster")
    assert "6 in all. 1 of 6 noisy (all because others had part of the nodes). " in loud("load and cluster", of=1)
    run = outcomes([torch(1, 0.52), mllib(2, 1, 2.1)])
    run = [replace(each, noisy=True, noise="cluster" if each.spec.platform == "mllib" else "load") for each in run]
    assert (
        "6 of 6 noisy (3 because others had part of the nodes). "
        in first_lines(records_table(run), run=RUN, baseline=BASELINE)[-1]
    )


def test_repeated_attempts_are_counted_too() -> None:
    run = outcomes([mllib(2, 1, 2.1)])
    again = [outcome(mllib(2, 1, 2.1), trial=n, attempt=2, position=10 + n) for n in (1, 2)]
    run = [replace(each, noisy=True, noise="cluster" if each.spec.trial == 1 else "load") for each in run[:3]]
    said = first_lines(records_table([*run, *again]), run=RUN, baseline=BASELINE)[-1]
    assert "1 of 3 noisy" in said
    assert "2 noisy attempts repeated (1 because others had part of the nodes)" in said


def test_nothing_is_false_more_often_than_stated() -> None:
    """Of two equal platforms one may be said to be faster in 5 % of the runs: in 21 of 200 at most."""
    import polars as pl

    from report.comparison import compared
    from report.verdict import comparisons

    claims = 0
    for seed in range(200):
        run = outcomes([torch(1, 0.5), mllib(1, 1, 0.5)], noise=0.04, seed=seed)
        _, configurations = compared(pl.DataFrame(records_table(run)), baseline=BASELINE)
        (comparison,) = comparisons(configurations, baseline=BASELINE)
        claims += any(test.beats for test in comparison.tests)
    assert claims <= 21


def test_far_apart_and_not_certain_is_not_called_no_difference() -> None:
    """As of two trials each, whose test needs to see far more than a factor of ten."""
    slow = [outcome(mllib(1, 1, 2.0), trial=trial, factor=factor) for trial, factor in ((1, 0.3), (2, 1.7))]
    found = only([*outcomes([torch(1, 0.13)], trials=2), *slow])
    assert found["decided"] == "does not"
    assert "these trials cannot tell which is fastest for" in found["sentences"][0]
    assert "no difference" not in found["sentences"][0]
    assert re.search(r"torch-cpu \(.*\) or Spark MLlib \(", found["sentences"][0])
