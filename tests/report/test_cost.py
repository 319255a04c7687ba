"""COST by hand: of made timings, of which the answer is known beforehand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from models.outcome import Outcome
from report.facts import BaselineSpec
from report.merge import records_table
from report.page import report_files, summary
from tests.report.made import BASELINE, QUICK, RUN, Made, mllib, outcomes, torch, torch_spark, with_records
from tests.report.test_target import TERMS, learnt


def costs(found: Sequence[Outcome], against: str, *, with_startup: bool = False) -> dict[str, Any]:
    (comparison,) = summary(records_table(found), run=RUN, baseline=BASELINE)["comparisons"]
    return asked(comparison["cost"], against, with_startup=with_startup)


def asked(questions: list[dict[str, Any]], against: str, *, with_startup: bool) -> dict[str, Any]:
    (one,) = [each for each in questions if (each["against"], each["with_startup"]) == (against, with_startup)]
    return one


def fixed(found: Sequence[Outcome], of: dict[str, tuple[float, float]]) -> list[Outcome]:
    """The same with start-up and load of each platform."""
    return [
        with_records(each, startup_seconds=of[each.spec.platform][0], load_seconds=of[each.spec.platform][1])
        for each in found
    ]


GPU = Made(platform="torch-cuda", device="cuda", seconds=0.05)
# A thread takes 1 s, the machine's four 0.3, a GPU 0.05; Spark halves its time with each doubling of the cores.
MADE = (
    torch(1, 1.0), torch(4, 0.3), GPU,
    *(torch_spark(n, 1, 1.6 / n) for n in (1, 2, 4, 8)),
    *(mllib(n, 1, 8.0 / n) for n in (1, 2, 4)),
)  # fmt: skip


def test_against_one_thread_one_machine_and_one_gpu() -> None:
    found = outcomes(MADE)
    thread, machine, gpu = (costs(found, name) for name in ("one thread", "one machine", "one GPU"))
    # 1.6 / 2 < 1.0; 1.6 / 8 < 0.3; 1.6 / 8 > 0.05.
    assert [each["platforms"]["torch-spark"]["cores"] for each in (thread, machine, gpu)] == [2, 8, None]
    assert [each["platforms"]["mllib"]["cores"] for each in (thread, machine, gpu)] == [None] * 3
    assert (machine["baseline"]["threads"], gpu["baseline"]["platform"]) == (4, "torch-cuda")
    assert gpu["platforms"]["torch-spark"]["unbounded"]


def test_unbounded_is_said_with_the_best_that_was_reached() -> None:
    spark = costs(outcomes(MADE, noise=0.0), "one thread")["platforms"]["mllib"]
    assert spark["unbounded"]
    assert spark["reason"] == (
        "unbounded: the best it reached, 2.0 s with 4 executors x 1 core, is 2.0x one thread's 1.0 s"
    )
    assert (spark["best"]["executors"], spark["at"]) == (4, None)


def test_a_machine_says_how_much_of_it_was_used() -> None:
    found = outcomes(MADE, noise=0.0)
    machine = costs(found, "one machine")["platforms"]["torch-spark"]
    assert machine["reason"] == "0.20 s against one machine's 0.30 s with 4 threads"
    part, whole = (
        report_files(records_table(found), run=replace(RUN, cores=cores), baseline=BASELINE)["report.html"].decode()
        for cores in (64, 4)
    )
    assert "4 of this machine&#39;s 64 cores (torch-cpu)" in part
    assert "one machine (torch-cpu)" not in part
    assert "Renting 4 of this machine&#39;s 64 cores is cheaper than" in part.replace('<span class="kept">', "")
    assert "one machine (torch-cpu)" in whole
    assert "of this machine&#39;s 4 cores" not in whole


def test_against_one_thread_it_is_the_verdicts_own() -> None:
    for seed in range(20):  # with noise at which some tests go one way and some the other
        found = outcomes([torch(1, 1.0), mllib(1, 1, 1.02), mllib(2, 1, 0.96)], noise=0.02, seed=seed)
        (comparison,) = summary(records_table(found), run=RUN, baseline=BASELINE)["comparisons"]
        mine = asked(comparison["cost"], "one thread", with_startup=False)["platforms"]["mllib"]
        assert mine["cores"] == comparison["platforms"]["mllib"]["cost_cores"]


def test_with_start_up_a_training_of_five_epochs_is_compared() -> None:
    """By hand, the first epoch 1.6 times as long: 0.2 + 0.3 + 5.6 x 1.0 = 6.1 s for a thread; 4 + 1 + 5.6 x 0.4 = 7.24
    s, and 5 + 5.6 x 0.05 = 5.28 s."""
    made = [torch(1, 1.0), torch_spark(2, 1, 0.4), torch_spark(8, 1, 0.05)]
    found = fixed(outcomes(made, noise=0.0), {"torch-cpu": (0.2, 0.3), "torch-spark": (4.0, 1.0)})
    without, with_it = (costs(found, "one thread", with_startup=each) for each in (False, True))
    assert without["platforms"]["torch-spark"]["cores"] == 2
    assert with_it["baseline"]["seconds"] == pytest.approx(6.1)
    spark = with_it["platforms"]["torch-spark"]
    assert (spark["cores"], spark["at"]["seconds"]) == (8, pytest.approx(5.28))


L_BFGS = {"solver": "l-bfgs", "passes": 3}
START = {"torch-cpu": (0.5, 0.5), "mllib": (4.0, 1.0)}


def trained(made: Made, seconds: Sequence[float], **changes: object) -> list[Outcome]:
    """Three trials whose epochs took these."""
    return [
        with_records(learnt(made, [None] * len(seconds), seconds=seconds, trial=trial), **changes)
        for trial in (1, 2, 3)
    ]


def test_an_epoch_of_three_passes_counts_with_all_of_them_and_a_slow_first_one_as_it_was() -> None:
    """By hand: 1 + 9 + 3 + 3 = 16 s for a thread; 4 + 1 + 6 + 1 + 1 = 13 s, though an epoch's mean is 1 s."""
    found = [
        *trained(torch(1, 3.0, **L_BFGS), (9.0, 3.0, 3.0)),
        *trained(mllib(2, 1, 1.0, **L_BFGS), (6.0, 1.0, 1.0)),
    ]
    told = costs(fixed(found, START), "one thread", with_startup=True)
    assert told["baseline"]["seconds"] == pytest.approx(16)
    spark = told["platforms"]["mllib"]
    assert (spark["cores"], spark["best"]["seconds"]) == (2, pytest.approx(13))


def test_trainings_of_unequal_passes_are_not_compared_and_that_is_said() -> None:
    found = [
        *trained(torch(1, 3.0, **L_BFGS), (9.0, 3.0, 3.0)),
        *trained(mllib(2, 1, 1.0, solver="l-bfgs", passes=5), (6.0, 1.0, 1.0)),
    ]
    found = fixed(found, START)
    told = costs(found, "one thread", with_startup=True)
    assert (told["baseline"], told["platforms"]) == (None, {})
    assert told["no_baseline"].startswith("an epoch is not the same number of passes over the rows for all")
    assert costs(found, "one thread")["platforms"]["mllib"]["best"]["seconds"] == pytest.approx(1 / 5), "by the pass"
    assert "so trainings are not equal work" in page_of(found)


def page_of(found: Sequence[Outcome]) -> str:
    page = report_files(records_table(found), run=RUN, baseline=BASELINE)["report.html"].decode()
    return page.replace('<span class="kept">', "").replace("</span>", "")


def test_a_training_that_stopped_early_is_no_equal_of_one_that_did_not() -> None:
    found = [
        *trained(torch(1, 3.0), (3.0, 3.0, 3.0)),
        *trained(mllib(2, 1, 1.0), (1.0, 1.0), epochs_requested=3, stopped_early=True),
    ]
    told = costs(fixed(found, START), "one thread", with_startup=True)
    assert told["platforms"] == {}
    assert told["left_out"] == {"mllib": "a training of Spark MLlib had 2 epochs, and one of torch-cpu 3"}
    assert "a training of Spark MLlib had 2 epochs, and one of torch-cpu 3" in page_of(fixed(found, START))


def test_of_epochs_that_are_not_all_there_no_training_is_made() -> None:
    found = [*trained(torch(1, 3.0), (3.0, 3.0)), *trained(mllib(2, 1, 1.0), (1.0, 1.0), epochs_requested=9)]
    told = costs(fixed(found, START), "one thread", with_startup=True)
    assert told["left_out"]["mllib"].startswith("not all trainings of Spark MLlib are known to have had as many epochs")


def test_a_start_up_that_was_not_recorded_is_no_zero() -> None:
    found = [with_records(each, startup_seconds=None) for each in outcomes([torch(1, 1.0), mllib(4, 1, 0.2)])]
    told = costs(found, "one thread", with_startup=True)
    assert (told["baseline"], told["platforms"]) == (None, {})
    assert told["no_baseline"] == "the start-up of torch-cpu was not recorded"


def test_the_tests_against_a_machine_are_corrected_together() -> None:
    found = outcomes(
        [torch(1, 1.0), torch(2, 0.6), mllib(1, 1, 0.60), mllib(2, 1, 0.57), mllib(4, 1, 0.55)], noise=0.03
    )

    def seconds(platform: str, **resources: int) -> list[float]:
        return [
            float(np.mean([record.seconds for record in each.records[1:]]))
            for each in found
            if each.spec.platform == platform
            and all(getattr(each.spec.resources, name) == value for name, value in resources.items())
        ]

    machine = seconds("torch-cpu", threads=2)
    sizes = [n for n in (1, 2, 4) if np.mean(seconds("mllib", executors=n)) <= 0.98 * np.mean(machine)]
    p = {
        n: stats.ttest_ind(seconds("mllib", executors=n), machine, equal_var=False, alternative="less").pvalue
        for n in (1, 2, 4)
    }
    order = sorted(p, key=lambda n: p[n])
    corrected = dict(zip(order, np.maximum.accumulate([p[n] * (3 - k) for k, n in enumerate(order)]), strict=True))
    beaten = [n for n in sizes if corrected[n] < 0.05]
    assert costs(found, "one machine")["platforms"]["mllib"]["cores"] == (min(beaten) if beaten else None)


def test_a_machine_with_one_thread_is_no_second_baseline() -> None:
    told = costs(outcomes([torch(1, 1.0), mllib(1, 1, 2.0)]), "one machine")
    assert told["no_baseline"] == "torch-cpu ran with one number of threads only"


TWO_THREADS = replace(BASELINE, threads=2)


def told_of(made: Sequence[Made], baseline: BaselineSpec) -> tuple[dict[str, Any], str]:
    """What COST says first, and the page with its figures."""
    files = report_files(records_table(outcomes(made, noise=0.0)), run=RUN, baseline=baseline)
    (comparison,) = json.loads(files["verdict.json"])["comparisons"]
    page = files["report.html"].decode().replace('<span class="kept">', "").replace("</span>", "")
    return asked(comparison["cost"], "one thread", with_startup=False), page


def test_a_baseline_of_two_threads_is_called_that() -> None:
    told, page = told_of([torch(1, 0.52), torch(2, 0.33), torch_spark(1, 1, 0.6), torch_spark(2, 1, 0.25)], TWO_THREADS)
    assert told["platforms"]["torch-spark"]["reason"] == "0.25 s against the baseline's 0.33 s with 2 threads"
    assert "<td>2 threads (torch-cpu)</td>" in page
    assert ">2 threads</tspan>" in page or ">2 threads</text>" in page, "in the figure, a line across"
    assert "one thread" not in page.partition("<dl")[0]
    assert "<td>torch-cpu ran with no more than 2 threads</td>" in page
    told, _ = told_of([torch(2, 0.33), mllib(1, 1, 2.0)], TWO_THREADS)
    assert told["platforms"]["mllib"]["reason"].endswith("is 6.1x the baseline's 0.33 s with 2 threads")
    told, page = told_of([torch(1, 0.52), mllib(1, 1, 2.0), mllib(2, 1, 1.0)], TWO_THREADS)
    assert (told["baseline"], "one thread" in page.partition("<dl")[0]) == (None, False)


def test_a_bracket_beside_a_baseline_of_two_threads_is_not_known_against_these() -> None:
    found = []
    for trial in (1, 2, 3):
        wobble = 1 + 0.001 * trial
        found += [
            learnt(torch(2, 1.0), (0.2, 0.3, 0.6, 0.7), seconds=[wobble] * 4, trial=trial),
            learnt(mllib(2, 1, 1.0), (0.1, 0.2, None, 0.6), seconds=[wobble] * 4, trial=trial),
        ]
    (told,) = summary(records_table(found), run=replace(RUN, terms=TERMS), baseline=TWO_THREADS)["targets"]
    spark = asked(told["cost"], "one thread", with_startup=False)["platforms"]["mllib"]
    assert spark["reason"] == "not known: reached at 2.0 s to 4.0 s, by 2 threads at 3.0 s"


def test_a_gpu_that_is_not_there_is_the_reason() -> None:
    assert costs(outcomes(QUICK), "one GPU")["no_baseline"] == "not run: no CUDA device"
    assert costs(outcomes([torch(1, 1.0)]), "one GPU")["no_baseline"] == "nothing was to run on a GPU"


def test_without_repeats_numbers_are_plain() -> None:
    spark = costs(outcomes(MADE, trials=1), "one machine")["platforms"]["torch-spark"]
    assert (spark["cores"], spark["reason"].endswith("(plain numbers: one trial)")) == (8, True)


def test_executors_without_cores_are_the_unit() -> None:
    spark = [replace(mllib(n, 1, seconds), cores=None) for n, seconds in ((1, 0.9), (3, 0.3))]
    told = costs(outcomes([torch(1, 1.0), torch(2, 0.5), *spark]), "one machine")["platforms"]["mllib"]
    assert (told["cores"], told["unit"]) == (3, "executors")


def to_target(spark: Sequence[float | None], *, spark_seconds: float = 1.0, startup: bool = False) -> dict[str, Any]:
    """A thread gets there after 3 epochs of 1 s; MLlib's accuracy is known where it is given."""
    found = []
    for trial in (1, 2, 3):
        wobble = 1 + 0.001 * trial
        found += [
            learnt(torch(1, 1.0), (0.2, 0.3, 0.6, 0.7), seconds=[wobble] * 4, trial=trial),
            learnt(mllib(2, 1, 1.0), spark, seconds=[spark_seconds * wobble] * len(spark), trial=trial),
        ]
    found = fixed(found, {"torch-cpu": (0.5, 0.5), "mllib": (4.0, 1.0)})
    told = summary(records_table(found), run=replace(RUN, terms=TERMS), baseline=BASELINE)["targets"]
    return asked(told[0]["cost"], "one thread", with_startup=startup)


def test_unequal_work_is_compared_by_time_to_target() -> None:
    """By hand: the thread takes 3 s; MLlib 4 x 0.5 = 2 s at most; with start-up 1 + 3 = 4 s and 5 + 2 = 7 s."""
    told = to_target((0.1, 0.2, None, 0.6), spark_seconds=0.5)
    assert (told["platforms"]["mllib"]["cores"], told["platforms"]["mllib"]["unbounded"]) == (2, False)
    whole = to_target((0.1, 0.2, None, 0.6), spark_seconds=0.5, startup=True)
    assert whole["baseline"]["seconds"] == pytest.approx(1 + 3 * 1.002)
    assert whole["platforms"]["mllib"]["best"]["seconds"] == pytest.approx(5 + 2 * 1.002)
    assert whole["platforms"]["mllib"]["unbounded"]


def test_a_bracket_around_the_baseline_decides_nothing() -> None:
    """MLlib got there between 2 and 4 s, the thread at 3."""
    told = to_target((0.1, 0.2, None, 0.6))["platforms"]["mllib"]
    assert (told["cores"], told["undecided"], told["unbounded"]) == (None, True, False)
    assert told["reason"] == "not known: reached at 2.0 s to 4.0 s, by one thread at 3.0 s"


def test_where_fewer_cores_may_have_been_enough_cost_is_at_most_that_of_those_that_were() -> None:
    """The thread gets there at 3 s, MLlib with two executors between 2 and 4 s, with four at 2 s."""
    found = []
    for trial in (1, 2, 3):
        wobble = 1 + 0.001 * trial
        found += [
            learnt(torch(1, 1.0), (0.2, 0.3, 0.6, 0.7), seconds=[wobble] * 4, trial=trial),
            learnt(mllib(2, 1, 1.0), (0.1, 0.2, None, 0.6), seconds=[wobble] * 4, trial=trial),
            learnt(mllib(4, 1, 1.0), (0.1, 0.2, None, 0.6), seconds=[wobble / 2] * 4, trial=trial),
        ]
    run = replace(RUN, terms=TERMS)
    (told,) = summary(records_table(found), run=run, baseline=BASELINE)["targets"]
    spark = asked(told["cost"], "one thread", with_startup=False)["platforms"]["mllib"]
    assert (spark["cores"], spark["upper_bound"]) == (4, True)
    assert spark["reason"] == (
        "2.0 s against one thread's 3.0 s; with 2 executors x 1 core it is not known (2.0 s to 4.0 s)"
    )
    page = report_files(records_table(found), run=run, baseline=BASELINE)["report.html"].decode()
    assert "from at most 4 cores on: " in page
    assert {name: told["platforms"]["mllib"][name] for name in ("cost_cores", "reason")} == {
        "cost_cores": 4, "reason": spark["reason"]
    }  # fmt: skip
    sure = to_target((0.1, 0.2, None, 0.6), spark_seconds=0.5)["platforms"]["mllib"]
    assert (sure["cores"], sure["upper_bound"]) == (2, False)


def test_a_bracket_beyond_the_baseline_is_unbounded() -> None:
    told = to_target((0.1, 0.2, None, 0.6), spark_seconds=2.0)["platforms"]["mllib"]
    assert (told["undecided"], told["unbounded"]) == (False, True)


def baseline_in_a_bracket(spark_seconds: float) -> dict[str, Any]:
    """The thread's accuracy is known after 1, 2 and 4 epochs of a second, MLlib's after each of its two."""
    found = []
    for trial in (1, 2, 3):
        wobble = 1 + 0.001 * trial
        found += [
            learnt(torch(1, 1.0), (0.2, 0.3, None, 0.6), seconds=[wobble] * 4, trial=trial),
            learnt(mllib(2, 1, 1.0), (0.3, 0.6), seconds=[spark_seconds * wobble / 2] * 2, trial=trial),
        ]
    told = summary(records_table(found), run=replace(RUN, terms=TERMS), baseline=BASELINE)["targets"]
    spark = asked(told[0]["cost"], "one thread", with_startup=False)["platforms"]["mllib"]
    assert isinstance(spark, dict)
    assert told[0]["platforms"]["mllib"]["cost_cores"] == spark["cores"], "a verdict that knew more would contradict it"
    return spark


def test_of_a_baseline_in_a_bracket_only_the_earlier_end_is_beaten_for_sure() -> None:
    """The thread got there between 2 and 4 s: 1.5 s is before that, 3 s may be, 5 s is not."""
    answers = [baseline_in_a_bracket(seconds) for seconds in (1.5, 3.0, 5.0)]
    assert [each["cores"] for each in answers] == [2, None, None]
    assert [each["undecided"] for each in answers] == [False, True, False]
    assert [each["unbounded"] for each in answers] == [False, False, True]


def test_who_did_not_get_there_in_all_trials_has_no_cost() -> None:
    assert to_target((0.1, 0.2, 0.3, 0.4))["platforms"] == {}
