"""The page of a history in a real browser: it asks nothing of the network, fits every width, draws what it tells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from report.history import History
from report.history_page import MOST_FIGURES, page
from report.history_words import in_table, lines
from tests.report.test_history import entry, measured, noisy, told
from tests.report.test_page import opened, serious

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def step(runs: int = 30, configurations: int = 10) -> History:
    """The first configuration becomes slower in the middle; a run in between had no time."""
    return told(
        [
            entry(
                n,
                *(
                    measured(() if n == 5 else noisy(50 * n + k, 1.2 if k == 1 and n >= runs // 2 else 1.0), threads=k)
                    for k in range(1, configurations + 1)
                ),
                commit="a" * 40 if n < runs // 2 else "b" * 40,
            )
            for n in range(runs)
        ]
    )


@pytest.fixture(scope="module")
def drawn() -> bytes:
    return page(step())


def test_what_is_left_out_is_said(drawn: bytes) -> None:
    text = drawn.decode()
    assert text.count("<figure>") == MOST_FIGURES
    assert f"{MOST_FIGURES} of 10 configurations are drawn" in text
    assert text.index("<h3>torch-cpu, 1 thread</h3>") < text.index("<h3>torch-cpu, 2 threads</h3>"), (
        "what changed first"
    )
    assert re.search(r"\+(19|20|21)\.\d %", text), "the size of the change, in the figure"
    assert "commit aaaaaaaaaa to bbbbbbbbbb" in text
    assert len(drawn) < 2_000_000


def test_500_runs_stay_small() -> None:
    found = page(step(runs=500, configurations=2))
    assert len(found) < 2_000_000
    assert "the last 100 drawn" in found.decode()


def test_the_terminal_leaves_out_what_is_long_gone() -> None:
    gone = [entry(n, *(measured(noisy(20 * n + k, 1.0), threads=k) for k in range(1, 21))) for n in range(3)]
    found = told([*gone, entry(3, measured(noisy(3, 1.0)))])
    shown, more = in_table(found)
    assert len(shown) == 9
    assert more == "11 configurations of earlier runs more; the page has all."
    assert more in lines(found, table=())


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (768, "light"), (400, "dark")])
def test_the_history_in_a_browser(browser: Browser, drawn: bytes, tmp_path: Path, width: int, scheme: str) -> None:
    context = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    shown, trouble = opened(browser, {"report.html": drawn}, tmp_path, **context)
    for details in shown.query_selector_all("summary"):
        details.click()
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    pictures = shown.locator(".picture > div:visible")
    assert pictures.count() == MOST_FIGURES
    assert {box.get_attribute("class") for box in pictures.all()} == {"narrow" if width == 400 else "wide"}
    edges = shown.evaluate(
        "[...document.querySelectorAll('.picture > div')].filter(d => d.offsetParent).flatMap(d => {"
        "const whole = d.getBoundingClientRect(); return [...d.querySelectorAll('text')].map(t => {"
        "const box = t.getBoundingClientRect(); return [box.left - whole.left, whole.right - box.right]})})"
    )
    assert min(min(pair) for pair in edges) > -2, "no label leaves its figure"
    assert serious(shown) == []
    assert trouble == []
