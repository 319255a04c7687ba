"""Communication as a measured number: its share of an epoch, and what scaling it leaves to be expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from report import communication
from report.merge import records_table
from report.page import report_files
from tests.report.made import BASELINE, BOTH_ON_SPARK, QUICK, RUN, Made, mllib, outcomes, torch_spark
from tests.report.test_breakdown import comparison


def points(made: Sequence[Made], platform: str) -> list[communication.Point]:
    ran = comparison(outcomes(made, noise=0.0)).ran
    return communication.points(row for row in ran if row["platform"] == platform and row["precision"] != "float64")


def test_arithmetic_of_the_smallest_is_shared_and_the_measured_exchange_comes_on_top() -> None:
    one, *both = points(BOTH_ON_SPARK, "torch-spark")
    assert (one.row["executors"], one.row["cores"], one.exchange) == (1, 1, 0.0)
    assert one.compute == pytest.approx(0.98 * 0.53)
    assert {(point.row["executors"], point.row["cores"]) for point in both} == {(2, 1), (1, 2)}
    for point in both:
        assert point.compute == pytest.approx(0.98 * 0.53 / 2)
        assert point.predicted == pytest.approx(point.compute + (0.003 if point.row["executors"] == 2 else 0.0))


def test_an_epoch_has_an_exchange_for_each_batch_and_for_each_pass() -> None:
    batches = torch_spark(2, 1, 1.0, solver="sgd", batch_size=150)
    (row,) = comparison(outcomes([batches], noise=0.0)).ran
    assert communication.exchange_seconds(row) == pytest.approx(100 * 0.003)
    ahead = replace(batches, platform="torch-spark-async", staleness=2)
    (row,) = comparison(outcomes([replace(ahead, updates=1)], noise=0.0)).ran
    twice = row | {"updates_per_epoch": 200}
    assert communication.exchange_seconds(twice) == pytest.approx(100 * 0.003), "two executors' parts go out at once"
    fits = [replace(mllib(2, 1, 6.0, exchange_seconds=0.2), passes=passes) for passes in (2, 3)]
    rows = comparison(outcomes([fits[0], replace(fits[1], cores=2)], noise=0.0)).ran
    assert {row["by_pass"] for row in rows} == {True}
    for row in rows:
        assert communication.exchange_seconds(row) == pytest.approx(0.2), "of a pass, as the seconds are"
        assert communication.share(row) == pytest.approx(0.2 / row["rank_by"])


@pytest.mark.parametrize(
    ("exchanges", "said"),
    [
        ((0.01, 0.02), "it is not the limit."),
        ((0.9, 0.02), "it is the limit of torch-spark alone."),
        ((0.9, 0.9), "it is the limit."),
    ],
)
def test_the_limit_is_what_takes_most_of_an_epoch(exchanges: tuple[float, float], said: str) -> None:
    made = [replace(torch_spark(2, 1, 1.0), exchange_seconds=exchanges[0]), mllib(2, 1, 1.01)]
    whole = comparison(outcomes([made[0], replace(made[1], exchange_seconds=exchanges[1])], noise=0.0))
    assert communication.limit(whole.ran).endswith(said)


def test_the_figure_has_the_points_the_lines_and_a_table() -> None:
    files = report_files(records_table(outcomes(BOTH_ON_SPARK, noise=0.0)), run=RUN, baseline=BASELINE)
    assert {"figures/scaling.svg", "figures/scaling.png"} <= files.keys()
    page = files["report.html"].decode().replace('<span class="kept">', "").replace("</span>", "")
    assert "Is communication the limit?" in page
    assert (
        "With 2 executors x 1 core 0.88 % of torch-spark&#39;s epoch is communication (3.0 ms), which is not the "
        "limit: it takes 0.34 s, 1.29x of shared arithmetic and exchange (0.26 s); with 2 executors x 1 core 10 % of "
        "Spark MLlib&#39;s epoch is communication (0.22 s)" in page
    )
    cells = ("torch-spark, 2 executors x 1 core", "0.340 s", "0.260 s", "3.00 ms", "0.263 s", "0.88 %")
    assert all(f">{cell}</t" in page for cell in cells)


@pytest.mark.parametrize(
    "made",
    [
        [torch_spark(2, 1, 0.3), mllib(2, 1, 2.0, exchange_seconds=0.2)],  # one size each
        [replace(each, ledger=False) for each in BOTH_ON_SPARK],
        [replace(each, executors=each.executors and 2 * each.executors, exchange_seconds=None) for each in QUICK],
    ],
)
def test_no_figure_where_nothing_can_be_expected(made: Sequence[Made]) -> None:
    files = report_files(records_table(outcomes(made)), run=RUN, baseline=BASELINE)
    assert not [name for name in files if "scaling" in name]
    assert "Is communication the limit?" not in files["report.html"].decode()
