"""What is ranked, what is not, and what is said of it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from scipy import stats

from models.outcome import Outcome
from models.record import COLUMNS, IDENTITY, schema
from report.comparison import COLUMNS as COMPARISON
from report.comparison import compared
from report.merge import merged_files, records_table
from report.page import report_files
from tests.report.made import (
    BASELINE,
    QUICK,
    RUN,
    Made,
    ended,
    mllib,
    outcome,
    outcomes,
    torch,
    torch_spark,
    with_records,
)


def rows(found: Sequence[Outcome]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(merged_files(found, baseline=BASELINE)["comparison.csv"].decode())))


def row(found: Sequence[Outcome], **identity: object) -> dict[str, str]:
    same = [each for each in rows(found) if all(each[name] == str(value) for name, value in identity.items())]
    assert len(same) == 1, same
    return same[0]


def times(found: Sequence[Outcome], platform: str, **resources: int) -> list[float]:
    """By hand: the mean of each trial's epochs without the first."""
    return [
        float(np.mean([record.seconds for record in each.records[1:]]))
        for each in found
        if each.spec.platform == platform
        and all(getattr(each.spec.resources, name) == value for name, value in resources.items())
    ]


def test_the_columns_are_the_contracts() -> None:
    expected = [name for name in IDENTITY if name != "unit"] + [
        "total_cores", "total_cores_with_driver", "trials", "unit", "mean_seconds", "ci_low", "ci_high",
        "seconds_per_pass", "relative_to_one_thread", "relative_to_one_machine", "updates_per_epoch", "loss",
        "final_accuracy", "seconds_to_target", "startup_seconds", "price_per_hour", "price", "status",
    ]  # fmt: skip
    ours = ["floor_seconds", "compute", "comm", "scheduling", "gc", "serialization", "driver", "other"]
    ours += ["exchange_seconds", "peak_memory_mib", "whole_epochs"]
    ours += ["price_per_training", "price_to_target", "seconds_to_target_low"]
    assert list(COMPARISON) == expected + ours
    assert list(rows(outcomes())[0]) == expected + ours
    assert {"trial", "attempt", "seed", "epoch"}.isdisjoint(expected)


def test_the_ledger_of_a_configuration_sums_to_its_mean_seconds() -> None:
    mine = row(outcomes(), platform="mllib", executors=2, cores=1)
    ledger = ("compute", "comm", "scheduling", "gc", "serialization", "driver", "other")
    assert sum(float(mine[name]) for name in ledger) == pytest.approx(float(mine["mean_seconds"]))
    assert row(outcomes(), platform="torch-cpu", threads=1)["compute"] == ""


def test_a_ledger_that_one_epoch_lacks_is_none() -> None:
    """A mean over other epochs than the seconds' would not sum to them."""
    found = outcomes([mllib(1, 1, 2.0)])
    records = list(found[1].records)
    records[3] = replace(records[3], compute=None)
    found[1] = replace(found[1], records=tuple(records))
    mine = row(found, platform="mllib")
    assert (mine["compute"], mine["gc"] != "") == ("", True)


def test_every_record_of_every_attempt_is_kept() -> None:
    found = outcomes()
    files = merged_files(found, baseline=BASELINE)
    table = pq.read_table(io.BytesIO(files["epochs.parquet"]))
    assert table.schema.equals(schema())
    assert table.num_rows == sum(len(each.records) for each in found)
    lines = list(csv.DictReader(io.StringIO(files["epochs.csv"].decode())))
    assert list(lines[0]) == list(COLUMNS)
    assert len(lines) == table.num_rows
    read = [float(line["seconds"]) if line["seconds"] else None for line in lines]
    assert read == table["seconds"].to_pylist()


def test_a_mean_is_over_trials_without_warmup() -> None:
    found = outcomes()
    mine, values = (
        row(found, platform="mllib", executors=2, cores=1, trials=3),
        times(found, "mllib", executors=2, cores=1),
    )
    assert float(mine["mean_seconds"]) == pytest.approx(np.mean(values))
    expected = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    assert (float(mine["ci_low"]), float(mine["ci_high"])) == pytest.approx(expected)
    assert mine["total_cores"] == "2"
    assert float(mine["final_accuracy"]) == pytest.approx(0.124 + 0.6 * (1 - 0.9**5))


def test_relative_is_over_the_baselines_mean() -> None:
    found = outcomes()
    spark = row(found, platform="mllib", executors=1, cores=1)
    one, two = (row(found, platform="torch-cpu", threads=n) for n in (1, 2))
    assert float(spark["relative_to_one_thread"]) == pytest.approx(
        float(spark["mean_seconds"]) / float(one["mean_seconds"])
    )
    assert float(spark["relative_to_one_machine"]) == pytest.approx(
        float(spark["mean_seconds"]) / float(two["mean_seconds"])
    )
    assert float(one["relative_to_one_thread"]) == 1.0


@pytest.mark.parametrize(("threads", "head"), [(1, "x one thread"), (2, "x 2 threads"), (8, "x the baseline")])
def test_the_table_for_reading_says_what_the_baseline_is(threads: int, head: str) -> None:
    text = merged_files(outcomes(), baseline=replace(BASELINE, threads=threads))["comparison.md"].decode()
    assert f"| trials | {head} | x one machine |" in text


def test_what_did_not_run_is_a_row_with_its_reason() -> None:
    cuda = row(outcomes(), platform="torch-cuda")
    assert cuda["status"] == "not run: no CUDA device"
    assert (cuda["mean_seconds"], cuda["trials"], cuda["relative_to_one_thread"]) == ("", "0", "")
    assert "exceed the 2 of this machine" in row(outcomes(), platform="mllib", executors=2, cores=2)["status"]


def test_a_reason_that_says_not_run_says_it_once() -> None:
    made = Made(platform="torch-cuda", unavailable="not run: no CUDA device.")
    assert row(outcomes([made]), platform="torch-cuda")["status"] == "not run: no CUDA device"


def test_one_trial_has_no_interval() -> None:
    one = row(outcomes(trials=1), platform="torch-cpu", threads=1)
    assert one["mean_seconds"]
    assert (one["ci_low"], one["ci_high"]) == ("", "")


def test_zero_variance_is_an_interval_of_width_zero() -> None:
    still = row(outcomes(noise=0.0), platform="torch-cpu", threads=1)
    assert float(still["ci_low"]) == pytest.approx(0.52) == pytest.approx(float(still["ci_high"]))


def test_one_epoch_keeps_its_warmup_and_says_so() -> None:
    only = row(outcomes(epochs=1), platform="torch-cpu", threads=1)
    assert float(only["mean_seconds"]) == pytest.approx(0.52 * 1.6, rel=0.1)
    assert only["status"] == "ok (one epoch a trial: its warm-up is kept)"


def test_the_last_attempt_counts() -> None:
    first, again = outcome(torch(1, 9.0)), outcome(torch(1, 0.5), attempt=2, position=1)
    noisy = replace(first, noisy=True)
    assert float(row([noisy, again], platform="torch-cpu")["mean_seconds"]) == pytest.approx(0.5)
    tainted = ended(first, "tainted", reason="an executor was lost", epochs=3)
    mine = row([tainted, again], platform="torch-cpu")
    assert (mine["status"], mine["trials"]) == ("ok", "1")
    assert row([again, ended(first, "failed", reason="x")], platform="torch-cpu")["status"] == "ok"


def test_a_tainted_trial_is_never_ranked() -> None:
    tainted = ended(outcome(torch(1, 0.5)), "tainted", reason="an executor was lost", epochs=3)
    mine = row([tainted], platform="torch-cpu")
    assert (mine["mean_seconds"], mine["status"]) == ("", "tainted: an executor was lost")


def test_a_failed_trial_is_counted_and_left_out() -> None:
    found = outcomes([torch(1, 0.5)])
    found[1] = ended(found[1], "failed", reason="executor out of memory", epochs=2)
    mine = row(found, platform="torch-cpu")
    assert mine["status"] == "ok (1 of 3 trials failed: executor out of memory)"
    assert mine["trials"] == "2"
    assert float(mine["mean_seconds"]) == pytest.approx(
        np.mean([times([each], "torch-cpu")[0] for each in (found[0], found[2])])
    )


def test_a_trial_that_failed_before_its_first_epoch_belongs_to_its_configuration() -> None:
    found = outcomes([torch(1, 0.5), torch(2, 0.3)])
    found[1] = ended(found[1], "failed", reason="boom")
    assert found[1].records[0].rows is None
    assert len(rows(found)) == 2


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_never_ranks(loss: float) -> None:
    found = outcomes([torch(1, 0.5), torch(2, 0.1)])
    broken = [
        replace(each, records=tuple(replace(r, loss=loss if (r.epoch or 0) >= 2 else r.loss) for r in each.records))
        if each.spec.resources.threads == 2
        else each
        for each in found
    ]
    mine = row(broken, platform="torch-cpu", threads=2)
    assert (mine["status"], mine["mean_seconds"], mine["loss"]) == ("diverged at epoch 2", "", "")
    assert rows(broken)[0]["threads"] == "1"


def test_a_diverged_outcome_says_its_epoch() -> None:
    """JSON has no NaN: the loss of a stored outcome is null, and the reason says it."""
    lost = ended(outcome(torch(1, 0.5)), "diverged", reason="diverged at epoch 2: loss is nan", epochs=2)
    lost = replace(lost, records=tuple(replace(record, loss=None) for record in lost.records))
    assert row([lost], platform="torch-cpu")["status"].startswith("diverged at epoch 2")


def test_noise_is_a_label() -> None:
    found = [replace(each, noisy=each.spec.trial == 2) for each in outcomes([torch(1, 0.5)])]
    mine = row(found, platform="torch-cpu")
    assert (mine["status"], mine["trials"]) == ("ok (1 of 3 trials noisy)", "3")


def test_a_negative_log_likelihood_below_zero_is_refused() -> None:
    """A loss of outputs that are no logarithms of chances; what rounding leaves below zero is none."""
    run = outcomes([torch(1, 0.5), torch(2, 0.3)])
    wrong = [with_records(each, loss=-13.14159) if each.spec.resources.threads == 2 else each for each in run]
    mine = row(wrong, platform="torch-cpu", threads=2)
    said = "failed: its loss is -13.1, and a negative log-likelihood is never below 0"
    assert (mine["mean_seconds"], mine["final_accuracy"], mine["status"]) == ("", "", said)
    assert row(wrong, platform="torch-cpu", threads=1)["status"] == "ok"
    rounded = [with_records(each, loss=-1e-7) for each in run]
    assert row(rounded, platform="torch-cpu", threads=2)["status"] == "ok"
    diverged = [with_records(each, loss=-math.inf) for each in run]
    assert row(diverged, platform="torch-cpu", threads=2)["status"].startswith("diverged")


def test_an_outlier_is_kept_and_counted() -> None:
    found = outcomes([torch(1, 0.5)], trials=6, noise=0.001)
    found[5] = with_records(found[5], seconds=5.0)
    mine = row(found, platform="torch-cpu")
    assert mine["status"] == "ok (1 outlier kept)"
    assert float(mine["mean_seconds"]) == pytest.approx((5 * 0.5 + 5.0) / 6, rel=0.01)


def test_unequal_work_is_never_in_one_class() -> None:
    made = [
        torch(1, 0.5),
        torch(1, 0.1, solver="sgd", batch_size=128),
        torch(1, 0.2, solver="sgd", batch_size=64),
        torch(1, 0.3, data_fraction=0.1, rows=6_000),
        torch(1, 0.4, sizes=(784, 100, 10)),
    ]
    _, found = compared(pl.DataFrame(records_table(outcomes(made))), baseline=BASELINE)
    assert found["class"].n_unique() == len(made)
    other = outcomes([torch(1, 0.5)]) + [with_records(each, updates=2) for each in outcomes([torch(2, 0.5)])]
    assert compared(pl.DataFrame(records_table(other)), baseline=BASELINE)[1]["class"].n_unique() == 2


def test_as_many_updates_by_stale_gradients_are_other_work() -> None:
    """Of batches of one row each is one update, however far ranks run ahead; one executor runs ahead of nobody."""
    ahead = {"platform": "torch-spark-async", "solver": "sgd", "batch_size": 1}
    made = [
        torch(1, 0.5, solver="sgd", batch_size=1),
        torch_spark(2, 1, 0.4, staleness=0, **ahead),
        torch_spark(1, 1, 0.6, staleness=4, **ahead),
        torch_spark(2, 1, 0.3, staleness=4, **ahead),
    ]
    _, found = compared(pl.DataFrame(records_table(outcomes(made))), baseline=BASELINE)
    assert found["updates_per_epoch"].n_unique() == 1
    one, other = found.partition_by("class", maintain_order=True)
    assert (len(one), other["mean_seconds"].to_list()) == (3, pytest.approx([0.3], rel=0.1))
    said = merged_files(outcomes(made), baseline=BASELINE)["comparison.md"].decode()
    assert said.count("batches of 1, gradients of earlier weights") == 1
    refused = [*made[:3], replace(made[3], seconds=None, unavailable="too few")]
    _, found = compared(pl.DataFrame(records_table(outcomes(refused))), baseline=BASELINE)
    assert found["class"].n_unique() == 1, "what did not run joins what did"


def test_precision_is_a_factor_and_not_other_work() -> None:
    made = [torch(1, 0.5), torch(1, 0.9, precision="float64"), mllib(1, 1, 2.0)]
    _, found = compared(pl.DataFrame(records_table(outcomes(made))), baseline=BASELINE)
    assert found["class"].n_unique() == 1


def test_passes_that_differ_are_ranked_by_the_pass() -> None:
    made = [torch(1, 1.0, solver="l-bfgs", passes=1), replace(mllib(1, 1, 1.5), solver="l-bfgs", passes=3)]
    _, found = compared(pl.DataFrame(records_table(outcomes(made, noise=0.0))), baseline=BASELINE)
    assert found["by_pass"].all()
    assert found["platform"].to_list() == ["mllib", "torch-cpu"]
    assert found["seconds_per_pass"].to_list() == pytest.approx([0.5, 1.0])


def test_one_trial_without_passes_leaves_its_configuration_unranked_where_others_passes_differ() -> None:
    spark = [mllib(1, 1, 1.5, solver="l-bfgs", passes=3), mllib(2, 1, 1.0, solver="l-bfgs")]
    found = [
        with_records(each, passes=None) if (each.spec.resources.executors, each.spec.trial) == (2, 2) else each
        for each in outcomes([torch(1, 1.0, solver="l-bfgs"), *spark])
    ]
    status = {(row["platform"], row["executors"]): row["status"] for row in rows(found)}
    assert status["mllib", "2"] == (
        "not ranked: its passes over the rows are not known of every trial, and others' differ"
    )
    assert status["mllib", "1"] == status["torch-cpu", ""] == "ok"
    assert report_files(records_table(found), run=RUN, baseline=BASELINE)["report.html"].endswith(b"</html>")


def test_people_read_intervals_and_ratios_of_what_is_ranked() -> None:
    """1.5 s of three passes, so 0.5 s of a pass against 1.0 s: half as long, though its epoch takes longer."""
    made = [torch(1, 1.0, solver="l-bfgs", passes=1), replace(mllib(1, 1, 1.5), solver="l-bfgs", passes=3)]
    found = outcomes(made, noise=0.0)
    text = merged_files(found, baseline=BASELINE)["comparison.md"].decode()
    line = next(line for line in text.splitlines() if line.startswith("| Spark MLlib"))
    assert line.split(" | ")[1:6] == ["0.500 s", "0.500 to 0.500 s", "3", "0.50x", "0.50x"]
    mine = row(found, platform="mllib")
    assert float(mine["relative_to_one_thread"]) == pytest.approx(1.5), "that column is of epochs"


def test_cores_are_counted_with_the_drivers_too() -> None:
    found = outcomes([torch(2, 0.5), mllib(2, 3, 1.5), Made(platform="torch-cuda", device="cuda", seconds=0.1)])
    counts = {each["platform"]: (each["total_cores"], each["total_cores_with_driver"]) for each in rows(found)}
    assert counts == {"torch-cpu": ("2", "2"), "mllib": ("6", "7"), "torch-cuda": ("", "")}


def test_names_are_no_formulas() -> None:
    evil = [replace(torch(1, 0.5), platform="=cmd()"), replace(torch(2, 0.5), dataset="@x"), torch(4, 0.5)]
    found = [with_records(each, machine="-1+1", host="+x") for each in outcomes(evil)]
    for name in ("epochs.csv", "comparison.csv"):
        for line in csv.DictReader(io.StringIO(merged_files(found, baseline=BASELINE)[name].decode())):
            text = {key: value for key, value in line.items() if value and not _is_number(value)}
            assert not [value for value in text.values() if value[0] in "=+-@"]
    lines = rows(found)
    assert "'=cmd()" in {line["platform"] for line in lines}
    assert {line["machine"] for line in lines} == {"'-1+1"}


def test_a_negative_number_stays_a_number() -> None:
    found = [with_records(each, learning_rate=-0.5) for each in outcomes([torch(1, 0.5)])]
    assert row(found, platform="torch-cpu")["learning_rate"] == "-0.5"


def test_markdown_is_not_broken_by_a_name() -> None:
    evil = outcomes([replace(torch(1, 0.5), platform="a|b<script>`")])
    text = merged_files(evil, baseline=BASELINE)["comparison.md"].decode()
    assert "<script>" not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1


def test_the_same_outcomes_give_the_same_bytes() -> None:
    found = outcomes()
    assert merged_files(found, baseline=BASELINE) == merged_files(list(reversed(found)), baseline=BASELINE)


def test_no_outcome_at_all() -> None:
    files = merged_files([], baseline=BASELINE)
    assert files["comparison.csv"].decode().strip() == ",".join(COMPARISON)


def test_quick_is_what_its_name_says() -> None:
    assert len(rows(outcomes())) == len(QUICK)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
