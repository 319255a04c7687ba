"""The page in a real browser: it asks nothing of the network, fits every width, and no name can break it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from models.outcome import Outcome
from report.merge import merged_files, records_table
from report.page import report_files
from tests.report.made import (
    BASELINE,
    BOTH_ON_SPARK,
    QUICK,
    RUN,
    Made,
    ended,
    mllib,
    outcome,
    outcomes,
    timelines,
    torch,
    torch_spark,
    with_records,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def files(found: list[Outcome], **facts: Any) -> dict[str, bytes]:
    return report_files(records_table(found), run=replace(RUN, **facts), baseline=BASELINE, timelines=timelines())


@pytest.fixture(scope="module")
def quick() -> dict[str, bytes]:
    return files(outcomes())


@pytest.fixture(scope="module")
def both() -> dict[str, bytes]:
    """MLlib and PyTorch on the same executors."""
    return files(outcomes(BOTH_ON_SPARK))


@pytest.fixture(scope="module")
def ahead() -> dict[str, bytes]:
    """A parameter server in step, and one whose ranks run ahead: as many rows an epoch, more updates."""
    return files(
        outcomes(
            (
                torch(1, 0.52),
                torch_spark(2, 1, 0.34),
                torch_spark(2, 1, 0.36, platform="torch-spark-async", staleness=0),
                torch_spark(2, 1, 0.31, platform="torch-spark-async", staleness=4, updates=2),
            )
        )
    )


def opened(browser: Browser, found: dict[str, bytes], folder: Path, **context: Any) -> tuple[Page, list[str]]:
    """The page, and everything it complained of or asked for."""
    for name, data in found.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    page = browser.new_context(**context).new_page()
    trouble: list[str] = []
    address = (folder / "report.html").as_uri()
    page.on("request", lambda request: trouble.append(request.url) if request.url != address else None)
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
    page.goto(address)
    return page, trouble


def serious(page: Page) -> list[str]:
    """What axe-core finds that would keep somebody out."""
    from axe_playwright_python.sync_playwright import Axe

    said = Axe().run(page).response
    assert len(said["passes"]) > 10
    return [
        f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]} ({len(each['nodes'])} times)"
        for each in said["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def test_the_files(quick: dict[str, bytes]) -> None:
    assert quick.keys() == {
        "environment.json", "figures/accuracy.png", "figures/accuracy.svg", "figures/boxes.png", "figures/boxes.svg",
        "figures/cores.png", "figures/cores.svg", "figures/learning.png", "figures/learning.svg",
        "figures/ledger.png", "figures/ledger.svg", "figures/order.png", "figures/order.svg",
        "figures/seconds.png", "figures/seconds.svg", "figures/timeline.png", "figures/timeline.svg", "fits.csv",
        "report.html", "sweep_executors_mllib_mnist.csv", "sweep_threads_torch-cpu_mnist.csv", "tests.csv",
        "timeline.csv", "verdict.json",
    }  # fmt: skip
    assert len(quick["report.html"]) < 2_000_000
    assert quick["figures/seconds.png"].startswith(b"\x89PNG")
    sweep = quick["sweep_executors_mllib_mnist.csv"].decode().splitlines()
    assert sweep[0].startswith("executors,cores,")
    assert [line.split(",")[:2] for line in sweep[1:]] == [["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"]]


def test_the_same_records_give_the_same_bytes(quick: dict[str, bytes]) -> None:
    assert files(outcomes()) == quick


def test_without_event_logs_there_is_no_timeline() -> None:
    found = report_files(records_table(outcomes()), run=RUN, baseline=BASELINE)
    assert not [name for name in found if "timeline" in name]
    assert "What each executor did" not in found["report.html"].decode()


def test_figures_stand_alone(quick: dict[str, bytes], both: dict[str, bytes]) -> None:
    for name in ("seconds", "ledger", "timeline", "cores", "learning", "order", "scaling", "boxes"):
        text = (both if name == "scaling" else quick)[f"figures/{name}.svg"].decode()
        assert "var(" not in text
        assert "#010203" not in text
        assert "http" not in text.replace("http://www.w3.org/", "")


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (768, "light"), (400, "light"), (400, "dark")]
)
def test_the_page_in_a_browser(
    browser: Browser, quick: dict[str, bytes], tmp_path: Path, width: int, scheme: str
) -> None:
    page, trouble = opened(browser, quick, tmp_path, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert trouble == []
    for details in page.query_selector_all("summary"):
        details.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shown = page.locator(".picture > div:visible")
    assert shown.count() == 8
    assert {box.get_attribute("class") for box in shown.all()} == {"narrow" if width == 400 else "wide"}
    ink = page.evaluate("getComputedStyle(document.body).color")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (_light(paper) > _light(ink)) == (scheme == "light")
    fills = page.evaluate("[...document.querySelectorAll('.picture > div text')].map(t => getComputedStyle(t).fill)")
    assert ink in fills
    assert trouble == []


@pytest.mark.browser
@pytest.mark.parametrize("case", ["quick", "both"])
def test_no_label_leaves_its_figure(
    browser: Browser, case: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for width in (400, 768, 1280):
        page, _ = opened(browser, request.getfixturevalue(case), tmp_path, viewport={"width": width, "height": 900})
        outside = page.evaluate(
            """[...document.querySelectorAll('.picture > div text')].filter(t => {
                const box = t.getBoundingClientRect();
                return box.width && (box.left < 0 || box.right > document.documentElement.clientWidth);
            }).map(t => t.textContent)"""
        )
        assert outside == []


@pytest.mark.browser
def test_headings_are_in_order_and_tables_have_scopes(
    browser: Browser, quick: dict[str, bytes], tmp_path: Path
) -> None:
    page, _ = opened(browser, quick, tmp_path)
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator("html").get_attribute("lang") == "en"
    for figure in page.locator("[role=img]").all():
        sentence = figure.locator("xpath=../figcaption").inner_text()
        assert sentence in (figure.get_attribute("aria-label") or "")


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
@pytest.mark.parametrize("case", ["quick", "both", "ahead"])
def test_axe_finds_nothing_serious(
    browser: Browser, case: str, width: int, scheme: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = request.getfixturevalue(case)
    page, _ = opened(browser, found, tmp_path, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for details in page.query_selector_all("summary"):
        details.click()
    assert serious(page) == []


@pytest.mark.browser
def test_every_link_leads_to_a_file(browser: Browser, quick: dict[str, bytes], tmp_path: Path) -> None:
    whole = quick | merged_files(outcomes(), baseline=BASELINE)
    page, _ = opened(browser, whole, tmp_path)
    links = page.evaluate("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    assert set(links) == whole.keys() - {"report.html"}


@pytest.mark.browser
def test_the_first_screen_says_it_all(browser: Browser, quick: dict[str, bytes], tmp_path: Path) -> None:
    page, _ = opened(browser, quick, tmp_path)
    assert "trains fastest on torch-cpu: 0.33 s an epoch with 2 threads." in page.locator("h1").inner_text()
    header = page.locator("header").inner_text()
    for text in (
        "6.4x",
        "beyond doubt",
        "3 trials each, 15 in all",
        "None noisy",
        "no CUDA device",
        "15,000 of 60,000",
        "quick",
    ):
        assert text in header


@pytest.mark.browser
def test_hostile_names(browser: Browser, tmp_path: Path) -> None:
    script = "<script>alert(1)</script>"
    made = [
        torch(1, 0.5),
        replace(torch(2, 0.3), platform=script),
        replace(torch(4, 0.3), platform="=cmd()"),
        replace(
            torch(8, None), platform='"><img src=x onerror=alert(2)>', unavailable="</style><script>alert(3)</script>"
        ),
    ]
    found = [with_records(each, dataset=f"csv:../{script}") for each in outcomes(made)]
    evil = files(
        found, run_id=script, profile="</title>" + script, cpu=script, versions={script: script},
        settings={script: [script]}, notes=(script,), commit="javascript:alert(4)",
    )  # fmt: skip
    page, trouble = opened(browser, evil | merged_files(found, baseline=BASELINE), tmp_path)
    assert trouble == []
    assert page.locator("script").count() == 0
    assert page.locator("img").count() == 0
    assert script in page.locator("h1").inner_text()
    assert "<script" not in evil["report.html"].decode()
    assert all(re.fullmatch(r"[a-z0-9._/-]+", name) and ".." not in name for name in evil)


CASES: dict[str, list[Outcome]] = {
    "one trial": outcomes(trials=1),
    "both on Spark": outcomes(BOTH_ON_SPARK, trials=1),
    "one epoch": outcomes(epochs=1),
    "zero variance": outcomes(noise=0.0),
    "one configuration": outcomes([torch(1, 0.5)]),
    "nothing available": outcomes([made for made in QUICK if made.unavailable]),
    "no losses": outcomes([replace(made, loss=False) for made in QUICK]),
    "all failed": [ended(each, "failed", reason="boom") for each in outcomes()],
    "one diverged": [ended(each, "diverged", epochs=2) if each.position == 4 else each for each in outcomes()],
    "no cores": outcomes([Made(platform="torch-cuda", device="cuda", seconds=0.01)]),
    "hours": outcomes([torch(1, 9000.0), mllib(1, 1, 86_000.0)]),
    "microseconds": outcomes([torch(1, 3e-5), mllib(1, 1, 2e-3)]),
    "two comparisons": outcomes([*QUICK, torch(2, 0.1, solver="sgd", batch_size=128)]),
    "no outcome": [],
}


@pytest.mark.browser
@pytest.mark.parametrize("case", CASES)
def test_every_run_has_a_page(browser: Browser, tmp_path: Path, case: str) -> None:
    page, trouble = opened(browser, files(CASES[case]), tmp_path, viewport={"width": 400, "height": 900})
    assert trouble == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.locator("h1").count() == 1
    text = page.locator("body").inner_text().replace("“None did” is an answer", "")
    assert not re.search(r"\b(None|nan|NaN|inf|undefined|null)\b(?! noisy)", text)


def test_comparisons_of_other_rows_have_other_headings() -> None:
    made = [torch(1, 1.0), mllib(1, 1, 3.0)]
    some = [replace(each, data_fraction=0.5, rows=30_000) for each in made]
    page = files(outcomes([*(replace(each, data_fraction=1.0, rows=60_000) for each in made), *some]))["report.html"]
    headings = re.findall(r"<h3[^>]*>(.*?)</h3>", page.decode())
    told = [each for each in headings if each.startswith("mnist")]
    assert {"mnist with mlp:784-1024-10, full-batch gradient descent"} < set(told)
    assert {each.partition("descent")[2] for each in told} == {"", ", 30,000 of 60,000 rows"}


@pytest.mark.parametrize("trials", [1, 3])
def test_an_interval_is_spoken_of_where_there_is_one(trials: int) -> None:
    page = files(outcomes(trials=trials))["report.html"].decode()
    assert ("with its 95 % interval</caption>" in page) == (trials > 1)
    assert ("The bar is the 95 % interval" in page) == (trials > 1)


def test_shuffled_blocks_are_claimed_of_what_this_run_ordered_itself() -> None:
    own, claim = outcomes(trials=2), "ran once a block, in shuffled order, one trial at a time"
    assert claim in files(own)["report.html"].decode()
    merged = files([with_records(each, run_id="theirs") for each in own])["report.html"].decode()
    assert claim not in merged
    assert "These trials are of several runs, in the order of each" in merged
    replayed = files(own, settings={"replay.path": "logs"})["report.html"].decode()
    assert claim not in replayed
    assert "These trials were read from event logs" in replayed


def test_what_no_test_decided_is_not_called_fastest_in_the_table() -> None:
    near = [torch(1, 0.5), mllib(1, 1, 0.501)]
    decided, undecided = (files(outcomes(made, noise=0.05))["report.html"].decode() for made in (QUICK, near))
    cell = '<td class="ratio">fastest</td>'
    assert (cell in decided, cell in undecided) == (True, False)
    assert '<td class="ratio">1.00x</td>' in undecided


def test_whole_trainings_have_a_page() -> None:
    found = [with_records(each, unit="training", epoch=None, warmup=False) for each in outcomes(epochs=1)]
    assert "a training of 1 epoch" in files(found)["report.html"].decode()


@pytest.mark.browser
def test_nothing_is_left_out_silently(browser: Browser, tmp_path: Path) -> None:
    made = [torch(n, 1 / n) for n in range(1, 31)] + [mllib(1, 1, 3.0)]
    page, _ = opened(browser, files(outcomes(made, trials=2)), tmp_path)
    assert "24 of 31 configurations shown" in page.locator("figcaption").first.inner_text()
    assert page.locator("text=Spark MLlib").count() > 0


def test_of_many_trials_those_to_look_at_are_shown() -> None:
    found = outcomes([torch(n, 1 / n) for n in range(1, 51)], trials=10)
    found[123] = replace(found[123], noisy=True)
    page = files(found)["report.html"].decode()
    assert "1 of them was noisy; 400 of 500 shown." in page
    assert "<td>noisy</td>" in page


def test_an_attempt_that_others_on_the_nodes_disturbed_says_what_they_had() -> None:
    first, last = (outcome(mllib(2, 1, 2.1), attempt=attempt, position=attempt) for attempt in (1, 2))
    crowded = with_records(first, noise="cluster", others_vcores=2.5, nodes_vcores=12.0)
    found = files([replace(crowded, noisy=True), last])
    assert "repeated, noisy: others had 2.5 of 12 vcores of its nodes</li>" in found["report.html"].decode()
    [order, _] = json.loads(found["environment.json"])["trial_order"]
    assert (order["noise"], order["others_vcores"], order["nodes_vcores"]) == ("cluster", 2.5, 12.0)
    older = files([replace(first, noisy=True), last])["report.html"].decode()
    assert "repeated, noisy: others used 0.0 cores</li>" in older


def _light(colour: str) -> int:
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3])


def test_how_far_trainings_come_is_shown_beside_those_of_other_updates(ahead: dict[str, bytes]) -> None:
    """Seconds an epoch are not compared with theirs, but what is reached by when is."""
    first, second = json.loads(ahead["verdict.json"])["comparisons"]
    assert set(first["platforms"]) == {"torch-cpu", "torch-spark", "torch-spark-async"}
    assert set(second["platforms"]) == {"torch-spark-async"}
    page = ahead["report.html"].decode()
    assert "torch-spark-async, 2 updates an epoch</th>" in page
    assert "torch-spark, 1 update an epoch ends after" in page
    sweep = ahead["sweep_staleness_torch-spark-async_mnist.csv"].decode().splitlines()
    assert [line.split(",")[0] for line in sweep] == ["staleness", "0", "4"]
