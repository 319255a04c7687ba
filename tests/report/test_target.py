"""Seconds until a test accuracy is reached, by hand: what counts, what is a bracket, and what is no number."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from models.outcome import Outcome
from models.target import Target
from report.facts import Terms
from report.merge import merged_files, records_table
from report.page import report_files, summary
from tests.report.made import BASELINE, RUN, Made, ended, mllib, outcome, outcomes, torch

ONE_OF_ONE = {"reached": 1, "of": 1}
TERMS = Terms(targets=(Target(dataset="mnist", network=None, accuracy=0.5),))


def learnt(made: Made, accuracies: Sequence[float | None], *, seconds: Sequence[float], trial: int = 1) -> Outcome:
    """A trial whose epochs took and reached these."""
    one = outcome(made, trial=trial, epochs=len(accuracies), position=trial)
    records = tuple(
        replace(record, test_accuracy=accuracy, seconds=each)
        for record, accuracy, each in zip(one.records, accuracies, seconds, strict=True)
    )
    return replace(one, records=records)


def rows(found: Sequence[Outcome], terms: Terms = TERMS) -> list[dict[str, str]]:
    text = merged_files(found, baseline=BASELINE, terms=terms)["comparison.csv"].decode()
    return list(csv.DictReader(io.StringIO(text)))


def only(found: Sequence[Outcome]) -> dict[str, str]:
    (row,) = rows(found)
    return row


def targets(found: Sequence[Outcome], terms: Terms = TERMS) -> list[dict[str, Any]]:
    told = summary(records_table(found), run=replace(RUN, terms=terms), baseline=BASELINE)["targets"]
    assert isinstance(told, list)
    return told


def test_it_is_the_sum_of_the_epochs_until_the_first_that_reached_it_warm_up_included() -> None:
    row = only([learnt(torch(1, 1.0), (0.2, 0.4, 0.55, 0.45, 0.6), seconds=(3.0, 1.0, 1.5, 1.0, 1.0))])
    assert float(row["seconds_to_target"]) == 5.5
    assert float(row["seconds_to_target_low"]) == 5.5, "the epoch before it is known not to have"
    assert row["status"] == "ok"


def test_a_target_that_is_met_exactly_is_reached() -> None:
    assert float(only([learnt(torch(1, 1.0), (0.2, 0.5), seconds=(1.0, 1.0))])["seconds_to_target"]) == 2.0


def test_accuracies_at_1_2_4_and_8_iterations_give_a_bracket() -> None:
    known = (0.1, 0.2, None, 0.3, None, None, None, 0.7, None, 0.8)
    row = only([learnt(mllib(1, 1, 1.0), known, seconds=(2.0,) + (1.0,) * 9)])
    assert (float(row["seconds_to_target_low"]), float(row["seconds_to_target"])) == (5.0, 9.0)


def test_accuracy_that_is_known_at_the_end_only_has_been_reached_some_time() -> None:
    row = only([learnt(mllib(1, 1, 1.0), (None, None, 0.7), seconds=(2.0, 1.0, 1.0))])
    assert (float(row["seconds_to_target_low"]), float(row["seconds_to_target"])) == (0.0, 4.0)


def of_epochs(numbers: Sequence[int]) -> list[Outcome]:
    """A trial of which only these epochs are told, as a CSV of theirs may; the last of them reached 90 %."""
    one = learnt(torch(1, 1.0), [0.2] * (len(numbers) - 1) + [0.9], seconds=[1.0] * len(numbers))
    return [replace(one, records=tuple(replace(each, epoch=n) for each, n in zip(one.records, numbers, strict=True)))]


@pytest.mark.parametrize("numbers", [(10, 20), (1, 3), (2, 3), (1, 1, 2)])
def test_epochs_that_are_not_there_hide_how_long_it_took(numbers: tuple[int, ...]) -> None:
    said = "when 1 of 1 trial reached 50 % is not known: an epoch before that is missing, or has no seconds"
    row = only(of_epochs(numbers))
    assert (row["seconds_to_target"], row["seconds_to_target_low"], row["status"]) == ("", "", f"ok ({said})")
    (told,) = targets(of_epochs(numbers))
    assert (told["fastest"], told["platforms"]["torch-cpu"]["reason"]) == (None, said)
    assert told["reached"] == [{"configuration": "torch-cpu, 1 thread, full-batch gradient descent"} | ONE_OF_ONE]


def test_epochs_that_are_missing_after_it_was_reached_hide_nothing() -> None:
    one = learnt(torch(1, 1.0), (0.2, 0.6, 0.9), seconds=(1.0, 1.0, 1.0))
    later = replace(one, records=(*one.records[:2], replace(one.records[2], epoch=9)))
    assert float(only([later])["seconds_to_target"]) == 2.0


def test_a_learning_curve_ends_where_an_epoch_is_missing() -> None:
    found = [*of_epochs((1, 2, 5)), learnt(mllib(1, 1, 1.0), (0.2, 0.3, 0.6), seconds=(1.0, 1.0, 1.0))]
    figure = report_files(records_table(found), run=RUN, baseline=BASELINE)["figures/learning.svg"].decode()
    assert "torch-cpu, epoch 2, 2.00 s" in figure
    assert "torch-cpu, epoch 5" not in figure


def test_a_whole_training_has_reached_it_some_time_too() -> None:
    one = learnt(torch(1, 1.0), (0.7,), seconds=(40.0,))
    whole = replace(one.records[0], unit="training", epoch=None, warmup=False, epochs_requested=10)
    row = only([replace(one, records=(whole,))])
    assert (float(row["seconds_to_target_low"]), float(row["seconds_to_target"])) == (0.0, 40.0)


def test_the_figure_of_a_configuration_is_the_mean_over_its_trials() -> None:
    found = [learnt(torch(1, 1.0), (0.2, 0.6), seconds=(1.0, each), trial=n) for n, each in enumerate((1.0, 2.0), 1)]
    assert float(only(found)["seconds_to_target"]) == 2.5


def test_where_one_trial_did_not_get_there_is_no_number_and_it_is_said() -> None:
    found = [
        learnt(torch(1, 1.0), (0.2, 0.6), seconds=(1.0, 1.0), trial=1),
        learnt(torch(1, 1.0), (0.2, 0.4), seconds=(1.0, 1.0), trial=2),
    ]
    row = only(found)
    assert (row["seconds_to_target"], row["status"]) == ("", "ok (1 of 2 trials reached 50 %)")
    (told,) = targets(found)
    assert told["baseline"] is None
    assert told["platforms"]["torch-cpu"]["reason"] == "1 of 2 trials reached 50 %, at best 60 %"


def test_a_trial_that_diverged_did_not_get_there() -> None:
    good = learnt(torch(1, 1.0), (0.2, 0.6), seconds=(1.0, 1.0), trial=1)
    lost = ended(
        learnt(torch(1, 1.0), (0.2, 0.3), seconds=(1.0, 1.0), trial=2), "diverged", reason="diverged", epochs=2
    )
    assert "1 of 2 trials reached 50 %" in only([good, lost])["status"]


def test_nor_did_one_that_had_it_before_it_diverged() -> None:
    lost = [
        ended(
            learnt(torch(2, 1.0), (0.6, 0.2), seconds=(0.1, 0.1), trial=trial), "diverged", reason="diverged", epochs=2
        )
        for trial in (1, 2)
    ]
    good = learnt(torch(1, 1.0), (0.2, 0.6), seconds=(1.0, 1.0))
    by_threads = {row["threads"]: row["seconds_to_target"] for row in rows([*lost, good])}
    assert by_threads == {"1": "2.0", "2": ""}
    (told,) = targets([*lost, good])
    assert told["platforms"]["torch-cpu"]["seconds"] == 2.0
    (alone,) = targets(lost)
    assert alone["platforms"]["torch-cpu"]["reason"] == "diverged"
    slow = learnt(torch(2, 1.0), (0.2, 0.4), seconds=(1.0, 1.0), trial=3)
    (mixed,) = targets([*lost, slow])
    assert mixed["platforms"]["torch-cpu"]["reason"] == "0 of 3 trials reached 50 %, at best 40 %"


def test_no_accuracy_is_not_the_same_as_too_little() -> None:
    row = only([learnt(torch(1, 1.0), (None, None), seconds=(1.0, 1.0))])
    assert "no test accuracy recorded" in row["status"]


def test_accuracy_that_is_not_a_number_reaches_nothing() -> None:
    row = only([learnt(torch(1, 1.0), (float("nan"), 0.4), seconds=(1.0, 1.0))])
    assert row["seconds_to_target"] == ""


def test_an_epoch_without_seconds_hides_how_long_it_took() -> None:
    one = learnt(torch(1, 1.0), (0.2, 0.3, 0.6), seconds=(1.0, 1.0, 1.0))
    records = (one.records[0], replace(one.records[1], seconds=None), one.records[2])
    assert only([replace(one, records=records)])["seconds_to_target"] == ""


def test_without_a_target_nothing_is_said_of_one() -> None:
    found = outcomes(trials=2)
    assert {row["seconds_to_target"] for row in rows(found, Terms())} == {""}
    assert {row["status"] for row in rows(found, Terms()) if row["trials"] != "0"} == {"ok"}
    assert targets(found, Terms()) == []


def test_what_is_said_of_a_network_counts_before_what_is_said_of_its_dataset() -> None:
    own = Target(dataset="mnist", network="mlp:*-1024-*", accuracy=0.3)
    found = [learnt(torch(1, 1.0), (0.2, 0.4, 0.6), seconds=(1.0, 1.0, 1.0))]
    assert float(rows(found, Terms(targets=(*TERMS.targets, own)))[0]["seconds_to_target"]) == 2.0
    elsewhere = Target(dataset="cifar10", network=None, accuracy=0.3)
    assert rows(found, Terms(targets=(elsewhere,)))[0]["seconds_to_target"] == ""


def small_batches() -> list[Outcome]:
    """Full batches on Spark and on a thread, and the same network in small batches, which gets there first."""
    found = []
    for trial in (1, 2, 3):
        wobble = 1 + 0.01 * trial
        found += [
            learnt(torch(1, 1.0), (0.2, 0.3, 0.4, 0.6), seconds=[wobble] * 4, trial=trial),
            learnt(mllib(1, 1, 1.0), (0.2, 0.3, None, 0.6), seconds=[3 * wobble] * 4, trial=trial),
            learnt(torch(1, 1.0, solver="sgd", batch_size=100), (0.6,), seconds=[1.5 * wobble], trial=trial),
        ]
    return [replace(each, position=place) for place, each in enumerate(found)]


def test_unequal_work_is_one_comparison_by_time_to_the_target() -> None:
    (told,) = targets(small_batches())
    assert (told["dataset"], told["network"], told["target"]) == ("mnist", "mlp:784-1024-10", 0.5)
    assert told["fastest"] == "torch-cpu"
    best = told["platforms"]["torch-cpu"]
    assert (best["solver"], best["batch_size"]) == ("sgd", 100)
    assert best["seconds"] == pytest.approx(1.5 * 1.02)
    assert told["baseline"]["seconds"] == best["seconds"], "the fastest of the baseline's kind is the hardest to beat"
    spark = told["platforms"]["mllib"]
    assert (spark["seconds_low"], spark["seconds"]) == pytest.approx((6 * 1.02, 12 * 1.02))
    assert (spark["is_bracket"], spark["cost_cores"]) == (True, None)


def test_the_sentences_say_what_was_done_to_get_there() -> None:
    first, second = targets(small_batches())[0]["sentences"]
    assert first == (
        "To get 50 % of the test rows of mnist with mlp:784-1024-10 right, torch-cpu takes 1.5 s of training "
        "(1 thread, stochastic gradient descent, batches of 100, 3 trials); Spark MLlib 6.1 s to 12 s "
        "(1 executor x 1 core, full-batch gradient descent, 3 trials)."
    )
    assert "known only after some epochs" in second


@pytest.mark.parametrize(("seconds", "decided"), [(1.0, "does not"), (6.0, "beats")])
def test_of_a_bracket_only_the_earlier_end_is_beaten_for_sure(seconds: float, decided: str) -> None:
    """torch-cpu is there after 4 s; MLlib between 2 and 4 epochs, the later one far behind either way."""
    found = []
    for trial, wobble in enumerate((0.99, 1.0, 1.01), 1):
        found.append(learnt(torch(1, 1.0), (0.2, 0.6), seconds=[2.0 * wobble] * 2, trial=trial))
        spark = (0.2, 0.3, None, 0.6)
        found.append(learnt(mllib(1, 1, 1.0), spark, seconds=[seconds * wobble] * 3 + [9.0], trial=trial))
    found = [replace(each, position=place) for place, each in enumerate(found)]
    (told,) = targets(found)
    assert (told["fastest"], told["decided"]) == ("torch-cpu", decided)
    table, run = records_table(found), replace(RUN, terms=TERMS)
    text = report_files(table, run=run, baseline=BASELINE)["tests.csv"].decode()
    (line,) = [
        line
        for line in csv.DictReader(io.StringIO(text))
        if (line["metric"], line["against"]) == ("seconds_to_target", "runner-up")
    ]
    assert line["call"] == decided
    assert float(line["mean_right"]) == pytest.approx(2 * seconds), "what it was tested against"


def test_nobody_got_there() -> None:
    (told,) = targets([learnt(torch(1, 1.0), (0.2, 0.3), seconds=(1.0, 1.0))])
    assert told["fastest"] is None
    assert told["sentences"][0].startswith("No platform got 50 % of the test rows of mnist")
    assert "at best 30 %" in told["sentences"][0]


def test_the_page_has_it_only_where_there_is_a_target() -> None:
    pages = [
        report_files(records_table(small_batches()), run=replace(RUN, terms=terms), baseline=BASELINE)["report.html"]
        for terms in (TERMS, Terms())
    ]
    assert ["<h3>Time to accuracy</h3>" in page.decode() for page in pages] == [True, False]
    assert "unbounded: the best it reached" in pages[0].decode()


def test_the_learning_curves_show_the_target_and_where_it_is_reached() -> None:
    files = report_files(records_table(small_batches()), run=replace(RUN, terms=TERMS), baseline=BASELINE)
    plain = report_files(records_table(small_batches()), run=RUN, baseline=BASELINE)
    said = "The dashed line is the target, 50 %; a ring is where a line first reaches it."
    assert said in files["report.html"].decode().replace('<span class="kept">', "").replace("</span>", "")
    assert "a ring is where a line" not in plain["report.html"].decode()
    assert files["figures/learning.svg"] != plain["figures/learning.svg"]


def test_the_report_of_a_run_with_a_target_is_the_same_bytes_again() -> None:
    table, run = records_table(small_batches()), replace(RUN, terms=TERMS)
    once, again = (report_files(table, run=run, baseline=BASELINE) for _ in range(2))
    assert once == again
    assert json.loads(once["verdict.json"])["targets"][0]["target"] == 0.5
