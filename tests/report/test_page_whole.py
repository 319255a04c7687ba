"""The page with all that it can hold, in a real browser: prices, targets, predictions, imports, many comparisons."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from models.target import Target
from report.facts import Prices, Terms
from report.merge import all_records, records_table
from report.page import LARGEST, report_files
from tests.report.made import BASELINE, BOTH_ON_SPARK, RUN, mllib, outcomes, timelines, torch, torch_spark
from tests.report.test_imported import BESIDE, imported
from tests.report.test_page import opened, serious
from tests.report.test_predictions import sweep

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TERMS = Terms(
    targets=(Target(dataset="mnist", network=None, accuracy=0.3),),
    prices=Prices(core_hour=0.05, gpu_hour=1.5, currency="EUR"),
)


@pytest.fixture(scope="module")
def whole() -> dict[str, bytes]:
    made = [*BOTH_ON_SPARK, *sweep(rows=(3_000,)), torch(1, 0.9, solver="sgd", batch_size=128)]
    table = all_records(outcomes(made, trials=2), [imported(BESIDE)])
    return report_files(table, run=replace(RUN, terms=TERMS), baseline=BASELINE, timelines=timelines())


def test_it_holds_all_of_it(whole: dict[str, bytes]) -> None:
    page = whole["report.html"].decode()
    for text in ("Time to accuracy", "What it would be elsewhere", "EUR", "imported from theirs.csv", "comparisons of"):
        assert text in page
    assert {"figures/price.svg", "figures/predicted.svg", "figures/scaling.svg"} <= whole.keys()
    assert len(whole["report.html"]) < LARGEST


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (768, "light"), (1280, "dark")])
def test_axe_finds_nothing_serious_in_it(
    browser: Browser, whole: dict[str, bytes], width: int, scheme: str, tmp_path: Path
) -> None:
    page, trouble = opened(browser, whole, tmp_path, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for details in page.query_selector_all("summary"):
        details.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious(page) == []
    assert trouble == []


@pytest.mark.browser
def test_what_scrolls_is_reached_by_the_keyboard_and_has_a_name(
    browser: Browser, whole: dict[str, bytes], tmp_path: Path
) -> None:
    page, _ = opened(browser, whole, tmp_path, viewport={"width": 400, "height": 900})
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Each platform at its best"
    for details in page.query_selector_all("summary"):
        details.click()
    regions = page.locator(".scroll")
    assert regions.count() > 10
    for region in regions.all():
        assert region.get_attribute("role") == "region"
        assert region.get_attribute("aria-label")
        assert region.get_attribute("tabindex") == "0"


@pytest.mark.browser
def test_on_paper_everything_is_open_and_black_on_white(
    browser: Browser, whole: dict[str, bytes], tmp_path: Path
) -> None:
    page, _ = opened(browser, whole, tmp_path, viewport={"width": 794, "height": 1123}, color_scheme="dark")
    page.emulate_media(media="print")
    colours = page.evaluate("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
    assert [re.findall(r"\d+", colour)[:3] for colour in colours] == [["0"] * 3, ["255"] * 3]
    tables = page.locator("details table")
    assert tables.count() > 10
    assert [table for table in tables.all() if not table.is_visible()] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 794
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type/Page") + printed.count(b"/Type /Page ") > 3


def test_the_largest_page_stays_below_its_bound() -> None:
    made = [torch(n, 1 / n) for n in range(1, 33)]
    made += [mllib(n, c, 9 / n / c) for n in range(1, 25) for c in (1, 2)]
    made += [torch_spark(n, c, 3 / n / c) for n in range(1, 25) for c in (1, 2)]
    every = [replace(each, data_fraction=n / 4, rows=15_000 * n) for n in (1, 2, 3, 4) for each in made]
    spans = timelines([each for each in made if each.executors and each.executors > 16], epochs=60)
    found = records_table(outcomes(every, trials=8, epochs=2))
    files = report_files(found, run=replace(RUN, terms=TERMS), baseline=BASELINE, timelines=spans)
    page = files["report.html"].decode()
    assert len(files["report.html"]) < LARGEST
    shown = re.search(r"This run holds 4 comparisons of equal work; (\d) of 4 are shown with figures", page)
    assert shown
    assert 1 <= int(shown[1]) < 4
    assert "figures/seconds_4.svg" in files, "what the page has no room for lies beside it"
    assert page.count("<li>On this machine, ") == 3, "each of the others is a line"
