"""Prices worked by hand: of an hour, a training and the way to a target; of renting; and of a start-up."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.outcome import Outcome
from report.facts import Prices, Terms
from report.merge import all_records, merged_files, records_table
from report.page import report_files, summary
from report.price import frontier, price_per_hour, total_cores_with_driver
from report.trainings import UNEQUAL_PASSES
from tests.report.made import BASELINE, RUN, Made, ended, mllib, outcomes, torch, torch_spark, with_records
from tests.report.test_cost import GPU, fixed
from tests.report.test_imported import imported
from tests.report.test_target import TERMS, learnt

PRICES = Prices(core_hour=0.05, memory_gb_hour=0.01, gpu_hour=2.5, currency="EUR")
EMPTY: dict[str, Any] = dict.fromkeys(
    ("executors", "cores", "memory_mib", "threads", "workers", "device", "machine_memory_gb")
)


def hour(prices: Prices = PRICES, **row: object) -> float | None:
    return price_per_hour(EMPTY | row, prices)


def test_executors_are_charged_with_the_drivers_core_and_their_memory() -> None:
    # 4 x 2 + 1 = 9 cores at 0.05, and 4 x 2 GB at 0.01.
    assert hour(executors=4, cores=2, memory_mib=2048) == pytest.approx(0.45 + 0.08)
    assert hour(executors=4, cores=2, memory_mib=2048, device="cuda") == pytest.approx(0.45 + 0.08 + 4 * 2.5)
    assert total_cores_with_driver(EMPTY | {"executors": 4, "cores": 2}) == 9


def test_a_process_is_charged_its_threads_and_the_memory_of_its_machine() -> None:
    assert hour(threads=2, machine_memory_gb=24.0) == pytest.approx(0.1 + 0.24)


def test_a_gpu_is_let_with_what_is_around_it() -> None:
    assert hour(device="cuda", machine_memory_gb=24.0) == 2.5
    assert hour(Prices(gpu_hour=2.5), device="cuda") == 2.5


def test_without_memorys_price_it_is_in_the_cores() -> None:
    assert hour(Prices(core_hour=0.05), executors=1, cores=1) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("prices", "row"),
    [
        (Prices(), {"threads": 1, "machine_memory_gb": 24.0}),
        (PRICES, {"threads": 1}),
        (PRICES, {"executors": 2, "cores": 1}),
        (PRICES, {"executors": 2, "memory_mib": 1024}),
        (Prices(core_hour=0.05), {"device": "cuda"}),
        (Prices(core_hour=0.05), {"executors": 2, "cores": 1, "device": "cuda"}),
    ],
)
def test_what_is_not_known_is_no_zero(prices: Prices, row: dict[str, object]) -> None:
    assert hour(prices, **row) is None


def rows(found: Sequence[Outcome], terms: Terms) -> list[dict[str, str]]:
    text = merged_files(found, baseline=BASELINE, terms=terms)["comparison.csv"].decode()
    return list(csv.DictReader(io.StringIO(text)))


CORES = Terms(prices=Prices(core_hour=0.36))  # 0.0001 a second


def test_an_epoch_a_training_and_the_way_to_a_target() -> None:
    found = fixed(
        [learnt(torch(2, 1.0), (0.2, 0.3, 0.6, 0.7), seconds=(5.0, 2.0, 2.0, 2.0))], {"torch-cpu": (1.0, 3.0)}
    )
    (row,) = rows(found, replace(TERMS, prices=CORES.prices))
    assert float(row["price_per_hour"]) == pytest.approx(0.72)
    assert float(row["price"]) == pytest.approx(2 * 0.0002)
    assert float(row["price_per_training"]) == pytest.approx((1 + 3 + 5 + 3 * 2) * 0.0002)
    assert float(row["price_to_target"]) == pytest.approx((5 + 2 + 2) * 0.0002)


def test_the_way_to_a_target_has_its_price_in_the_verdict() -> None:
    found = [learnt(torch(2, 1.0), (0.2, 0.6, 0.7), seconds=(5.0, 2.0, 2.0))]
    terms = replace(TERMS, prices=CORES.prices)
    (told,) = summary(records_table(found), run=replace(RUN, terms=terms), baseline=BASELINE)["targets"]
    assert told["platforms"]["torch-cpu"]["price_to_target"] == pytest.approx(7 * 0.0002)


def test_a_price_that_a_record_brought_along_is_its_own() -> None:
    found = [with_records(each, price_per_hour=7.2) for each in outcomes([torch(2, 1.0)], noise=0.0)]
    for terms in (CORES, Terms()):
        (row,) = rows(found, terms)
        assert (float(row["price_per_hour"]), float(row["price"])) == (7.2, pytest.approx(0.002))


def test_without_prices_there_are_none() -> None:
    assert {row["price"] + row["price_per_hour"] for row in rows(outcomes(), Terms())} == {""}


def comparison(made: Sequence[Made], of: dict[str, tuple[float, float]], terms: Terms = CORES) -> dict[str, Any]:
    found = fixed(outcomes(made, noise=0.0), of)
    (one,) = summary(records_table(found), run=replace(RUN, terms=terms), baseline=BASELINE)["comparisons"]
    assert isinstance(one, dict)
    return one


FIXED = {"torch-cpu": (0.0, 1.0), "torch-cuda": (2.0, 1.0), "torch-spark": (8.0, 2.0), "mllib": (8.0, 2.0)}


def test_renting_pays_below_as_many_of_the_clusters_hours_as_it_saves() -> None:
    """By hand, the first epoch 1.6 times as long: 8 + 2 + 5.6 x 2 = 21.2 s on 5 cores with the driver's; a GPU 2 + 1 +
    5.6 x 0.2 = 4.12 s."""
    made = [torch(1, 3.0), torch(4, 1.0), replace(GPU, seconds=0.2), torch_spark(4, 1, 2.0)]
    machine, gpu = comparison(made, FIXED)["price"]["break_even"]
    assert (gpu["platform"], gpu["against"]) == ("torch-spark", "one GPU")
    assert (gpu["hours_of_the_cluster"], gpu["core_hours"]) == pytest.approx((21.2 / 4.12, 21.2 / 4.12 * 5))
    assert gpu["price"] == pytest.approx(21.2 / 4.12 * 5 * 0.36)
    assert gpu["seconds_saved"] == pytest.approx(17.08)
    # The machine takes 1 + 5.6 x 1 = 6.6 s.
    assert machine["core_hours"] == pytest.approx(21.2 / 6.6 * 5)
    without = comparison(made, FIXED, Terms())["price"]["break_even"][1]
    assert (without["core_hours"], without["price"]) == (pytest.approx(21.2 / 4.12 * 5), None)


def test_a_start_up_is_paid_back_by_shorter_epochs() -> None:
    """By hand: 10 + 1.2 s against 1 + 1.8 s, as the first epoch takes 0.6 epochs longer: 8.4 s at 3 - 2 s an epoch are
    9 epochs; 10 + 0.72 - 2.8 s at 3 - 1.2 s are five."""
    made = [torch(1, 3.0), torch_spark(4, 1, 2.0), mllib(4, 1, 3.5)]
    assert comparison(made, FIXED)["price"]["epochs_to_pay_back_start_up"] == {"torch-spark": 9, "mllib": None}
    faster = [torch(1, 3.0), torch_spark(4, 1, 1.2)]
    assert comparison(faster, FIXED)["price"]["epochs_to_pay_back_start_up"] == {"torch-spark": 5}


def test_who_starts_no_later_has_nothing_to_pay_back_however_long_its_epochs() -> None:
    made = [torch(1, 3.0), torch_spark(4, 1, 2.0), mllib(4, 1, 3.0)]
    early = {"torch-cpu": (9.0, 9.0), "torch-spark": (1.0, 1.0), "mllib": (9.0, 9.0)}
    found = fixed(outcomes(made, noise=0.0), early)
    (one,) = summary(records_table(found), run=RUN, baseline=BASELINE)["comparisons"]
    assert one["price"]["epochs_to_pay_back_start_up"] == {"torch-spark": 0, "mllib": 0}
    text = said(found, Prices())
    assert (
        "torch-spark, 4 executors x 1 core, float32 and Spark MLlib, 4 executors x 1 core, float64 have no start-up to "
        "make up for, being ready no later than the baseline." in text
    )
    assert "makes up for the start-up" not in text
    assert "has made up for" not in text


def test_a_slow_first_epoch_has_to_be_paid_back_too() -> None:
    """By hand: start-up as long, and a first epoch of 6 s where the thread's takes 3: 4 s at 1 s an epoch are 4."""
    found = [
        *(learnt(torch(1, 3.0), [None] * 3, seconds=(3.0, 3.0, 3.0), trial=trial) for trial in (1, 2)),
        *(learnt(torch_spark(2, 1, 2.0), [None] * 3, seconds=(6.0, 2.0, 2.0), trial=trial) for trial in (1, 2)),
    ]
    found = fixed(found, {"torch-cpu": (1.0, 1.0), "torch-spark": (1.0, 1.0)})
    (one,) = summary(records_table(found), run=RUN, baseline=BASELINE)["comparisons"]
    assert one["price"]["epochs_to_pay_back_start_up"] == {"torch-spark": 4}


def test_where_epochs_are_unequal_passes_trainings_are_not_weighed() -> None:
    made = [
        torch(1, 3.0, solver="l-bfgs", passes=3), torch(4, 1.0, solver="l-bfgs", passes=3),
        torch_spark(4, 1, 2.0, solver="l-bfgs", passes=5),
    ]  # fmt: skip
    found = comparison(made, FIXED)["price"]
    assert (found["break_even"], found["epochs_to_pay_back_start_up"], found["price_time_frontier"]) == ([], {}, [])
    assert found["not_compared"] == [UNEQUAL_PASSES]
    # What each cost by itself stays known: 10 + 5.6 x 2 s on 5 cores.
    assert found["platforms"]["torch-spark"]["price_per_training"] == pytest.approx(21.2 * 5 * 0.0001)


def test_a_training_of_fewer_epochs_is_not_the_cheaper_one() -> None:
    short = [
        with_records(each, epochs_requested=5, stopped_early=True) for each in outcomes([torch(4, 1.0)], epochs=3)
    ]  # fmt: skip
    found = fixed([*outcomes([torch(1, 3.0)], noise=0.0), *short], FIXED)
    (one,) = summary(records_table(found), run=replace(RUN, terms=CORES), baseline=BASELINE)["comparisons"]
    assert one["price"]["price_time_frontier"] == ["torch-cpu, 1 thread"]
    assert one["price"]["not_compared"] == ["a training of torch-cpu had 3 epochs, and one of torch-cpu 5"]


def test_the_frontier_of_price_and_time() -> None:
    """1 thread: 17.8 s, 0.00178; 4 threads: 6.6 s, 0.00264; Spark's 5 cores: 21.2 s, 0.01, beaten in both."""
    found = comparison([torch(1, 3.0), torch(4, 1.0), torch_spark(4, 1, 2.0)], FIXED)["price"]["price_time_frontier"]
    assert found == ["torch-cpu, 4 threads", "torch-cpu, 1 thread"]


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), max_size=30))
def test_no_point_of_the_frontier_is_beaten_and_every_other_is(points: list[tuple[float, float]]) -> None:
    kept = frontier(points)
    for place, (x, y) in enumerate(points):
        beaten = [n for n, (a, b) in enumerate(points) if a <= x and b <= y and (a, b) != (x, y)]
        if place in kept:
            assert not beaten
        else:
            assert any(points[n][0] <= x and points[n][1] <= y for n in kept)


def test_the_page_says_what_it_costs() -> None:
    made = [torch(1, 3.0), torch(4, 1.0), replace(GPU, seconds=0.2), torch_spark(4, 1, 2.0)]
    terms = Terms(prices=Prices(core_hour=0.36, gpu_hour=3.6, currency="EUR"))
    found = fixed(outcomes(made, noise=0.0), FIXED)
    files = report_files(records_table(found), run=replace(RUN, terms=terms), baseline=BASELINE)
    page = files["report.html"].decode().replace('<span class="kept">', "").replace("</span>", "")
    assert "The cheapest training is that of torch-cpu, 1 thread: 0.00178 EUR and 18 s" in page
    assert "The fastest training is that of torch-cuda: 0.00412 EUR and 4.1 s" in page
    assert "as long as its hour costs less than 25.7 core-hours of the cluster (9.26 EUR)" in page
    assert "it saves no money but saves 17 s of each training" in page
    assert "has made up for its start-up against the baseline after 9 epochs" in page
    assert {"figures/price.svg", "figures/price.png"} <= files.keys()
    assert files == report_files(records_table(found), run=replace(RUN, terms=terms), baseline=BASELINE)


def said(found: Sequence[Outcome], prices: Prices, *, brought: Sequence[pa.Table] = ()) -> str:
    files = report_files(
        all_records(found, list(brought)), run=replace(RUN, terms=Terms(prices=prices)), baseline=BASELINE
    )
    return files["report.html"].decode().replace('<span class="kept">', "").replace("</span>", "")


def test_the_price_of_core_hours_says_what_is_in_it_beside_cores() -> None:
    """5 cores at 0.36 and 4 x 2 GB at 0.01 are 1.88 an hour; 21.2 s over a GPU's 4.12 s of it are 9.67."""
    made = [torch(1, 3.0), replace(GPU, seconds=0.2), torch_spark(4, 1, 2.0, memory_mib=2048)]
    text = said(fixed(outcomes(made, noise=0.0), FIXED), Prices(core_hour=0.36, memory_gb_hour=0.01, currency="EUR"))
    assert "less than 25.7 core-hours of the cluster (9.67 EUR with their memory)" in text


THEIR_GPU = """
platform,dataset,network,solver,precision,rows,seconds,epoch,epochs
torch-cuda,mnist,mlp:784-1024-10,gd,float32,15000,0.25,1,5
torch-cuda,mnist,mlp:784-1024-10,gd,float32,15000,0.15,2,5
"""


def test_an_imported_gpu_is_weighed_by_the_epoch_in_plain_numbers() -> None:
    """By hand: an epoch of 2 s on 5 cores against one of 0.2 s: 10 hours, or 50 core-hours."""
    found, theirs = fixed(outcomes([torch(1, 3.0), torch_spark(4, 1, 2.0)], noise=0.0), FIXED), imported(THEIR_GPU)
    told = summary(all_records(found, [theirs]), run=RUN, baseline=BASELINE)["comparisons"][0]
    (each,) = told["price"]["break_even"]
    assert (each["against"], each["of"], each["imported"]) == ("one GPU", "epoch", True)
    assert (each["hours_of_the_cluster"], each["core_hours"], each["seconds_saved"]) == pytest.approx((10, 50, 1.8))
    text = said(found, Prices(), brought=[theirs])
    assert (
        "it saves no money but saves 1.8 s of each epoch (in plain numbers: torch-cuda is imported from theirs.csv, so "
        "start-up and loading are left out)" in text
    )
    (question,) = [each for each in told["cost"] if each["against"] == "one GPU" and not each["with_startup"]]
    assert question["no_baseline"] == "only imported timings are of one, and COST is not counted across machines"


def test_without_prices_hours_are_weighed_against_hours() -> None:
    files = report_files(
        records_table(outcomes([torch(1, 3.0), GPU, torch_spark(4, 1, 2.0)])), run=RUN, baseline=BASELINE
    )
    page = files["report.html"].decode()
    assert "luigi.cfg has no prices" in page
    assert "core-hours of the cluster;" in page.replace('<span class="kept">', "").replace("</span>", "")
    assert "figures/price.svg" not in files


def test_each_further_executor_has_its_price() -> None:
    """1 + 1 cores for 10 + 5.6 x 4 = 32.4 s, then 2 + 1 for 10 + 5.6 x 2 = 21.2 s."""
    steps = comparison([torch(1, 3.0), torch_spark(1, 1, 4.0), torch_spark(2, 1, 2.0)], FIXED)["marginal"][0]["steps"]
    assert steps[0]["price_added"] == pytest.approx(0.00636 - 0.00648)
    assert steps[0]["seconds_saved"] == pytest.approx(2.0)


@pytest.mark.parametrize("how", ["failed", "diverged", "unavailable", "nothing", "free of charge", "start-up unknown"])
def test_a_run_of_which_little_is_known_has_a_report(how: str) -> None:
    found = [] if how == "nothing" else outcomes([torch(1, 0.5), GPU, torch_spark(2, 1, 0.4)], trials=2)
    if how in ("failed", "diverged", "unavailable"):
        found = [ended(each, how, reason="boom") for each in found]
    if how == "start-up unknown":
        found = [with_records(each, startup_seconds=None) for each in found]
    terms = replace(TERMS, prices=Prices(core_hour=0.0, gpu_hour=0.0) if how == "free of charge" else PRICES)
    merged_files(found, baseline=BASELINE, terms=terms)
    files = report_files(records_table(found), run=replace(RUN, terms=terms), baseline=BASELINE)
    assert files["report.html"].endswith(b"</html>")
