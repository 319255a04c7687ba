"""Predictions: what is held out, how far they go, when they are refused, and the picture of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from scipy import stats

from models.spec import Network
from report.merge import records_table
from report.page import report_files
from report.predictions import LEAST, NOT_VALIDATED, Series, all_series, kind_of, predicted, reach
from report.scaling_model import Measured, Size
from report.trials import trials
from store.errors import SettingError
from tests.report.made import BASELINE, QUICK, RUN, SPEED, Made, mllib, outcomes, torch, torch_spark
from tests.report.test_page import opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LAYERS = (784, 64, 10)


def seconds_of(made: Made, *, fixed: float, slower: float = 1.5, sums: float = 0.0) -> float:
    """By the physics of the model: arithmetic at the machine's speed, a part for each doubling, and a fixed one."""
    total = made.threads or (made.executors or 1) * (made.cores or 1)
    flop = made.rows * (Network(sizes=made.sizes).flop_per_row() or 0)
    return slower * flop / (total * SPEED[made.precision]) + sums * math.log2(made.executors or 1) + fixed


def sweep(
    *, rows: Sequence[int] = (3_000, 15_000, 60_000), hidden: Sequence[int] = (64, 256, 1024), spark: bool = True
) -> list[Made]:
    """PyTorch is slow at each row, MLlib at each pass."""
    found = []
    for count in rows:
        for units in hidden:
            same = {"rows": count, "sizes": (784, units, 10), "data_fraction": count / 60_000}
            for threads in (1, 2):
                made = torch(threads, None, **same)
                found.append(replace(made, seconds=seconds_of(made, fixed=0.001, slower=9.0)))
            for executors in (1, 2, 4) if spark else ():
                made = mllib(executors, 1, None, **same)
                found.append(replace(made, seconds=seconds_of(made, fixed=0.4, sums=0.05)))
    return found


def series_of(made: Iterable[Made], *, noise: float = 0.0) -> list[Series]:
    return all_series(trials(pl.DataFrame(records_table(outcomes(made, noise=noise)))))


def of(platform: str, found: Sequence[Series]) -> Series:
    (one,) = [series for series in found if series.of["platform"] == platform]
    return one


@pytest.fixture(scope="module")
def exact() -> list[Series]:
    return series_of(sweep())


def test_a_model_for_each_platform_is_exact_where_there_is_no_noise(exact: list[Series]) -> None:
    assert [series.of["platform"] for series in exact] != []
    for series in exact:
        assert len(series.held_out) == len(series.points)
        assert series.error < 1e-6
        assert series.largest.error < 1e-6
        assert series.passes == 1
    spark = of("mllib", exact)
    made = mllib(8, 1, None, rows=200_000, sizes=(784, 2048, 10))
    found = predicted(spark, Size(rows=200_000, layers=(784, 2048, 10), executors=8, cores=1))
    assert found.seconds == pytest.approx(seconds_of(made, fixed=0.4, sums=0.05), rel=1e-6)
    assert found.is_validated
    assert set(found.extrapolated) == {"rows", "parameters", "executors", "cores in all"}
    assert sum(found.parts.values()) == pytest.approx(found.seconds)


def test_what_is_held_out_is_predicted_by_all_others_alone() -> None:
    series = of("mllib", series_of(sweep(), noise=0.05))
    for number in (0, 7, len(series.points) - 1):
        rest = [point for point in series.points if point is not series.points[number]]
        alone = Measured.of(rest, communication="tree").fitted()
        held = series.held_out[number]
        assert held.point is series.points[number]
        assert held.predicted == pytest.approx(alone.seconds(held.point.size), rel=1e-9)
    assert series.error == median(abs(each.predicted / each.point.seconds - 1) for each in series.held_out)
    assert series.largest.point.size == Size(rows=60_000, layers=(784, 1024, 10), executors=4, cores=1)
    assert 0 < series.error < 0.1


def test_a_configuration_that_is_not_what_physics_says_shows_in_the_error() -> None:
    made = sweep(spark=False)
    made[-1] = replace(made[-1], seconds=2 * (made[-1].seconds or 0))
    series = of("torch-cpu", series_of(made))
    assert series.largest.error == pytest.approx(0.5, abs=0.01)


def test_the_interval_is_that_of_the_held_out_errors(exact: list[Series]) -> None:
    series = of("torch-cpu", series_of(sweep(spark=False), noise=0.05))
    logs = [math.log(each.predicted / each.point.seconds) for each in series.held_out]
    factor = math.exp(stats.t.ppf(0.975, len(logs) - 1) * math.sqrt(np.mean(np.square(logs))))
    inside = predicted(series, Size(rows=15_000, layers=LAYERS, threads=2))
    assert inside.low == pytest.approx(inside.seconds / factor)
    assert inside.high == pytest.approx(inside.seconds * factor)
    assert not inside.extrapolated
    # What lies farther out than anything measured is no surer than the largest rows were without having been seen.
    beyond = predicted(series, Size(rows=240_000, layers=LAYERS, threads=2))
    assert (beyond.high or 0) / beyond.seconds >= factor * (1 - 1e-12)
    assert beyond.extrapolated == ("rows",)


@pytest.mark.parametrize(
    ("changes", "validated", "words"),
    [
        ({"rows": 240_000}, True, ""),
        ({"rows": 240_001}, False, "rows 240,001 is beyond 4 times the 60,000 that was measured"),
        ({"rows": 750}, True, ""),
        ({"rows": 749}, False, "rows 749 is below a quarter of the 3,000 that was measured"),
        ({"executors": 16}, True, ""),
        ({"executors": 17}, False, "executors 17 is beyond 4 times the 4 that was measured"),
        ({"cores": 2}, False, "cores 2 where only 1 was measured"),
        ({"layers": (784, 4096, 10)}, True, ""),
        ({"layers": (784, 9000, 10)}, False, "parameters 7,155,010 is beyond 4 times the 814,090"),
    ],
)
def test_up_to_four_times_what_was_measured_and_no_farther(
    exact: list[Series], changes: dict[str, object], validated: bool, words: str
) -> None:
    size = replace(Size(rows=15_000, layers=LAYERS, executors=2, cores=1), **changes)  # type: ignore[arg-type]
    found = predicted(of("mllib", exact), size)
    assert found.is_validated == validated
    assert found.extrapolated
    if validated:
        assert found.note is None
        assert found.low is not None
    else:
        assert (found.note or "").startswith(f"{NOT_VALIDATED}: ")
        assert words in (found.note or "")
        assert (found.low, found.high) == (None, None), "nothing was held out there"


def test_too_few_points_are_refused_with_their_number_and_an_axis_to_vary() -> None:
    series = of("mllib", series_of(QUICK))
    assert len(series.points) == 3 < LEAST
    assert series.refusal == (
        "Spark MLlib (gd, float64) was measured in 3 configurations of different size, and a model takes 5: "
        "vary rows (fractions) or hidden units (networks) too"
    )
    with pytest.raises(SettingError, match="no prediction: Spark MLlib"):
        predicted(series, Size(rows=15_000, layers=LAYERS, executors=2, cores=1))
    assert reach(series, "rows") is None
    assert reach(series, "executors") == (1.0, 2.0), "neither edge was held out"


def test_beyond_two_values_of_an_axis_nothing_was_held_out_and_nothing_is_validated() -> None:
    """Executors 1 and 2, as shipped profiles have them: a model of one of them knows nothing of the other."""
    made = [each for each in sweep() if each.executors != 4]
    series = of("mllib", series_of(made, noise=0.02))
    inside = predicted(series, Size(rows=15_000, layers=LAYERS, executors=2, cores=1))
    assert inside.is_validated
    assert inside.low is not None
    beyond = predicted(series, Size(rows=15_000, layers=LAYERS, executors=8, cores=1))
    assert (beyond.is_validated, beyond.low, beyond.high) == (False, None, None)
    assert beyond.note == f"{NOT_VALIDATED}: executors 8 is above the 2 that was measured, which was not held out"
    # Rows have three values, of which the largest, and the smallest, were held out.
    assert predicted(series, Size(rows=200_000, layers=LAYERS, executors=2, cores=1)).is_validated
    assert (reach(series, "executors"), reach(series, "rows")) == ((1.0, 2.0), (750.0, 240_000.0))


def test_the_error_at_an_edge_is_of_a_model_that_has_seen_nothing_of_it() -> None:
    series = of("mllib", series_of(sweep(), noise=0.05))
    for edge, rows in (("smallest", 3_000), ("largest", 60_000)):
        rest = [point for point in series.points if point.size.rows != rows]
        alone = Measured.of(rest, communication="tree").fitted()
        errors = [
            abs(alone.seconds(point.size) / point.seconds - 1) for point in series.points if point.size.rows == rows
        ]
        assert series.edges["rows", edge] == pytest.approx(median(errors), rel=1e-9)  # type: ignore[index]


def test_trainings_of_another_kind_have_a_model_of_their_own() -> None:
    made = [torch(1, 0.5), torch(1, 0.9, precision="float64"), torch(1, 0.2, solver="sgd", batch_size=100)]
    made += [torch(1, 0.5, dataset="csv:a.csv"), torch(1, 0.5, sizes=(784, 10)), torch(2, 0.3)]
    assert [len(series.points) for series in series_of(made)].count(2) == 1
    assert len(series_of(made)) == 5
    assert [kind_of(name) for name in ("mnist", "csv:a:b", "synthetic:9x9x2", "cifar10")] == [
        "images", "csv", "synthetic", "images"
    ]  # fmt: skip


def test_what_differs_only_in_memory_is_one_size() -> None:
    series = of("mllib", series_of([mllib(2, 1, 2.0, memory_mib=1024), mllib(2, 1, 3.0, memory_mib=2048)]))
    (point,) = series.points
    assert point.seconds == pytest.approx(2.5)


def test_a_network_whose_arithmetic_nobody_knows_has_rows_and_cores() -> None:
    own = [torch(threads, 1.0) for threads in (1, 2)]
    records = records_table(outcomes(own, noise=0.0))
    frame = pl.DataFrame(records).with_columns(network=pl.lit("torch:module:callable"))
    (series,) = all_series(trials(frame))
    assert {point.size.layers for point in series.points} == {()}


def test_the_figure_has_every_held_out_configuration_and_its_error() -> None:
    found = outcomes(sweep(rows=(3_000, 15_000)), noise=0.03, trials=2)
    files = report_files(records_table(found), run=RUN, baseline=BASELINE)
    assert {"figures/predicted.svg", "figures/predicted.png"} <= files.keys()
    page = files["report.html"].decode().replace('<span class="kept">', "").replace("</span>", "")
    assert "What it would be elsewhere" in page
    assert "Median error of what was held out: " in page
    assert "Spark MLlib (gd, float64), 18 configurations: " in page
    assert len(re.findall(r'<th scope="row">[^<]* rows of mnist, mlp:784-', page)) == 30


def test_no_figure_without_a_model() -> None:
    files = report_files(records_table(outcomes([*QUICK, torch_spark(2, 1, 0.3)])), run=RUN, baseline=BASELINE)
    assert not [name for name in files if "predicted" in name]
    assert "What it would be elsewhere" not in files["report.html"].decode()


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_with_predictions_fits_in_a_browser(browser: Browser, tmp_path: Path, width: int) -> None:
    made = sweep(rows=(15_000,), hidden=(64, 256, 1024))
    files = report_files(records_table(outcomes(made, noise=0.03, trials=1)), run=RUN, baseline=BASELINE)
    page, trouble = opened(browser, files, tmp_path, viewport={"width": width, "height": 900})
    assert trouble == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shown = page.locator("figure:has([aria-label^='Predictions of what was held out'])")
    assert shown.locator(".picture > div:visible").count() == 1
    shown.locator("summary").click()
    assert shown.locator("tbody tr").count() == 15
    assert "is predicted to overtake" in page.locator("main").inner_text()
    text = page.locator("main").inner_text().replace("“None did” is an answer", "")
    assert not re.search(r"\b(None|nan|NaN|inf|undefined|null)\b(?! noisy)", text)
