"""MLlib is told apart from the cluster only where both ran on the very same executors, and as far as they did."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from report import apart
from report.merge import records_table
from report.page import report_files, summary
from tests.report.made import BASELINE, BOTH_ON_SPARK, QUICK, RUN, Made, mllib, outcome, outcomes, torch, torch_spark
from tests.report.test_breakdown import comparison


def verdict(made: Sequence[Made], **how: Any) -> dict[str, Any]:
    found = outcomes(made, noise=how.pop("noise", 0.0), **how)
    return dict(summary(records_table(found), run=RUN, baseline=BASELINE)["comparisons"][0])


def test_the_first_sentence_tells_mllib_from_the_cluster_and_precision_from_runtime() -> None:
    said = verdict(BOTH_ON_SPARK)["sentences"]
    assert said[:2] == [
        "Spark MLlib takes 6.2x (6.2 to 6.2) as long as torch-spark, PyTorch on the very same 2 executors x 1 core: "
        "that is MLlib, 2.1x (2.1 to 2.1) by precision and 3.0x (3.0 to 3.0) by runtime, with the same algorithm; "
        "torch-spark takes 1.03x (1.03 to 1.03) as long as torch-cpu with 2 threads: that is the cluster.",
        "On this machine, mnist with mlp:784-1024-10 (15,000 of 60,000 rows, full-batch gradient descent) trains "
        "fastest on torch-cpu: 0.33 s an epoch with 2 threads.",
    ]
    assert "the algorithm is the same, full-batch gradient descent, and both end at a loss of 1.6." in said[2]
    assert said[3].startswith("Against one thread of torch-cpu (0.52 s an epoch) torch-spark is 1.53x")
    assert said[4] == (
        "With 2 executors x 1 core, by a probe of these, communication is 0.88 % of torch-spark's epoch (3.0 ms of "
        "0.34 s) and 10 % of Spark MLlib's epoch (0.22 s of 2.1 s): it is not the limit."
    )
    assert not [text for text in said if text.startswith("torch-cpu with 2 threads needs")]


def test_the_verdict_has_the_numbers() -> None:
    found = verdict(BOTH_ON_SPARK)["apart"]
    assert (found["library"], found["executors"], found["cores"], found["total_cores"]) == ("mllib", 2, 1, 2)
    ratios = {name: each["ratio"] for name, each in found.items() if isinstance(each, dict) and "ratio" in each}
    assert ratios == {
        "library_over_torch_spark": pytest.approx(2.1 / 0.34),
        "of_that_precision": pytest.approx(0.70 / 0.34),
        "of_that_runtime": pytest.approx(2.1 / 0.70),
        "torch_spark_over_as_many_threads": pytest.approx(0.34 / 0.33),
        "torch_spark_faster_than_one_thread": pytest.approx(0.52 / 0.34),
    }
    assert found["communication"]["torch-spark"] == {
        "exchange_seconds": pytest.approx(0.003), "share_of_epoch": pytest.approx(0.003 / 0.34),
    }  # fmt: skip


@pytest.mark.parametrize(
    "made",
    [
        QUICK,
        [torch(1, 0.5), torch_spark(2, 1, 0.3)],
        [mllib(2, 1, 2.1), torch_spark(1, 1, 0.5)],  # not the same executors
        [mllib(2, 1, 2.1, memory_mib=1024), torch_spark(2, 1, 0.5, memory_mib=2048)],
        [mllib(2, 1, 2.1), torch_spark(2, 1, None, unavailable="no")],
        [mllib(2, 1, 2.1), torch_spark(2, 1, 0.3, batch_size=128, solver="sgd")],  # not equal work
    ],
)
def test_nothing_is_said_where_a_side_is_missing(made: Sequence[Made]) -> None:
    found = verdict(made)
    assert found["apart"] is None
    assert not [text for text in found["sentences"] if "very same" in text]


def test_what_did_not_run_is_left_out() -> None:
    found = verdict([mllib(2, 1, 2.1), replace(torch_spark(2, 1, 0.35), exchange_seconds=None)])
    said = " ".join(found["sentences"])
    assert found["sentences"][0].endswith("on the very same 2 executors x 1 core: that is MLlib.")
    assert (
        "precision and runtime are not told apart on these executors (precisions = float32 float64 would do that); the "
        "algorithm is the same"
    ) in said
    for absent in ("that is the cluster", "is precision", "Against one thread", "communication is", "None", "nan"):
        assert absent not in said
    assert {found["apart"][name] for name in ("of_that_precision", "of_that_runtime")} == {None}


def test_without_float64_there_torch_on_threads_still_tells_precision() -> None:
    made = [each for each in BOTH_ON_SPARK if (each.platform, each.precision) != ("torch-spark", "float64")]
    said = verdict([*made, torch(2, 0.66, precision="float64")])["sentences"]
    assert "that is MLlib; torch-spark takes" in said[0]
    assert [text for text in said if "(precisions = float32 float64 would do that)" in text]
    assert [text for text in said if text.startswith("torch-cpu with 2 threads needs")]


def test_equal_precision_leaves_runtime_alone() -> None:
    said = verdict([mllib(2, 1, 2.1), torch_spark(2, 1, 0.7, precision="float64")])["sentences"]
    assert said[0].endswith("that is MLlib, all of it runtime, with the same precision and algorithm.")
    assert "precisions =" not in said[0]
    assert "is runtime alone: both compute in float64; the algorithm is the same" in said[2]


@pytest.mark.parametrize(
    ("threads", "there", "said"),
    [
        ((0.98, 1.00, 1.02), (1.04, 1.06, 1.08), "torch-spark takes 1.06x (1.01 to 1.11) as long as torch-cpu"),
        (
            (0.90, 1.00, 1.10),
            (0.96, 1.06, 1.16),
            "no difference was found between torch-spark and torch-cpu with 2 threads (1.06x, 0.849 to 1.33): the "
            "cluster costs nothing that was seen.",
        ),
        (
            (0.50, 1.00, 1.50),
            (0.70, 1.50, 2.30),
            "these trials cannot tell torch-spark from torch-cpu with 2 threads (1.50x, 0.21 to 8.2): what the "
            "cluster costs is not known.",
        ),
        ((1.00,), (1.06,), "torch-spark takes 1.06x as long as torch-cpu with 2 threads in plain numbers: that is the"),
    ],
)
def test_no_more_is_said_of_the_cluster_than_was_found(
    threads: Sequence[float], there: Sequence[float], said: str
) -> None:
    made = ((torch(2, 1.0), threads), (torch_spark(2, 1, 1.0), there), (mllib(2, 1, 1.0), (8.0, 8.1, 8.2)))
    found = [
        outcome(each, trial=trial, factor=factor, position=10 * trial)
        for each, factors in made
        for trial, factor in enumerate(factors, 1)
    ]
    comparison = summary(records_table(found), run=RUN, baseline=BASELINE)["comparisons"][0]
    assert said in comparison["sentences"][0]
    differs = comparison["apart"]["cluster_differs"]
    assert differs == (None if len(there) == 1 else "takes" in said)


def test_a_test_that_finds_nothing_counts_before_an_interval() -> None:
    """The two fastest, tested in both directions with three other tests beside: Holm leaves nothing of p = 0.03."""
    made = [torch(2, 1.0), torch_spark(2, 1, 1.0), torch(1, 2.0), mllib(2, 1, 8.0), mllib(1, 1, 16.0)]
    sizes = {("torch-cpu", 2): (0.97, 1.0, 1.03), ("torch-spark", 2): (1.05, 1.08, 1.11)}
    found = [
        outcome(each, trial=trial, factor=factor, position=10 * trial)
        for each in made
        for trial, factor in enumerate(sizes.get((each.platform, each.threads or each.executors), (0.99, 1, 1.01)), 1)
    ]
    comparison = summary(records_table(found), run=RUN, baseline=BASELINE)["comparisons"][0]
    between = comparison["apart"]["torch_spark_over_as_many_threads"]
    assert (comparison["decided"], between["low"] > 1) == ("does not", True)
    assert "no difference was found between torch-spark" in comparison["sentences"][0]


def test_losses_that_part_are_said() -> None:
    made = [mllib(2, 1, 2.1), torch_spark(2, 1, 0.7, precision="float64", first_loss=4.6)]
    assert "though their losses end at" in " ".join(verdict(made)["sentences"])


def test_the_fastest_of_mllib_that_has_a_partner_is_taken() -> None:
    made = [mllib(4, 1, 1.0), mllib(2, 1, 2.1), mllib(1, 1, 4.0), torch_spark(2, 1, 0.3), torch_spark(1, 1, 0.6)]
    each = apart.apart(comparison(outcomes(made, noise=0.0)))
    assert each is not None
    assert (each.library["executors"], each.there["executors"]) == (2, 2)


def test_compressed_sums_are_a_factor_and_never_the_one_that_is_compared() -> None:
    made = [*BOTH_ON_SPARK, torch_spark(2, 1, 0.2, compression="bfloat16")]
    found = verdict(made)
    assert found["apart"]["torch_spark_seconds"] == pytest.approx(0.34)
    assert found["platforms"]["torch-spark"]["seconds"] == pytest.approx(0.34)
    (factor,) = [each for each in found["factors"] if each["what"] == "compression"]
    assert factor["ratio"] == pytest.approx(0.2 / 0.34)
    page = report_files(records_table(outcomes(made)), run=RUN, baseline=BASELINE)["report.html"].decode()
    assert "ending gradients in bfloat16 takes" in page
    assert "of the test rows right instead of" in page


def test_other_comparisons_are_listed_by_what_they_trained() -> None:
    made = [*BOTH_ON_SPARK, *(replace(each, dataset="other") for each in BOTH_ON_SPARK[:-1])]
    page = report_files(records_table(outcomes(made, trials=1)), run=RUN, baseline=BASELINE)["report.html"].decode()
    text = page.replace('<span class="kept">', "").replace("</span>", "")
    assert re.search("<li>On this machine, [^<]*other with mlp:784-1024-10", text)
