"""The whole, as a newcomer has it: real MNIST or one's own CSV, through Spark and torch, to a page in a browser."""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TOP = Path(__file__).parent.parent
WIDTHS = (1280, 400)
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def yarnstick(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", *arguments]
    # Downloads are kept between runs; noise of a test machine is not repeated away.
    cache = ["--set", f"cache={TOP / 'build' / 'cache'}", "--set", "noisy_repeats=0"] if arguments[0] == "run" else []
    environment = {**os.environ, "PYTHONPATH": str(TOP), "COLUMNS": "120"}
    return subprocess.run(
        [*command, *cache, "--store", str(folder / "store")],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
    )


def settings(**values: str) -> list[str]:
    return [part for key, value in values.items() for part in ("--set", f"profile.quick.{key}={value}")]


def rows_of(report: Path) -> list[dict[str, str]]:
    with (report / "comparison.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The quick profile, shortened: what it printed, and its report."""
    folder = tmp_path_factory.mktemp("mnist")
    shorter = settings(fractions="0.02", epochs="2", trials="1", cores="1 2")
    done = yarnstick("run", "--run-id", "whole", *shorter, folder=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, folder / "store" / "runs" / "whole" / "report"


def test_the_terminal_ends_with_a_verdict_and_the_page(mnist: tuple[str, Path]) -> None:
    told, report = mnist
    assert "MNIST" in told or "mnist" in told
    assert "Spark MLlib" in told
    assert f"Report: {report / 'report.html'}" in told
    assert "no CUDA device" in told


def test_every_configuration_has_its_row(mnist: tuple[str, Path]) -> None:
    rows = rows_of(mnist[1])
    ran = {(row["platform"], row["executors"], row["cores"], row["threads"]) for row in rows if row["trials"] == "1"}
    assert {("torch-cpu", "", "", "1"), ("torch-cpu", "", "", "2")} <= ran
    for platform in ("mllib", "torch-spark"):
        assert {(platform, "1", "1", ""), (platform, "2", "1", ""), (platform, "1", "2", "")} <= ran
    assert [row["status"] for row in rows if row["platform"] == "torch-cuda"] == ["not run: no CUDA device"]
    assert {row["rows"] for row in rows} == {"1200"}


def test_the_platforms_did_the_same_work(mnist: tuple[str, Path]) -> None:
    records = pq.read_table(mnist[1] / "epochs.parquet").to_pylist()
    ran = [record for record in records if record["outcome"] == "ok"]
    others = [(each["platform"], each["outcome"], each["reason"]) for each in records if each["outcome"] != "ok"]
    for epoch in (1, 2):
        losses = [record["loss"] for record in ran if record["epoch"] == epoch]
        assert len(losses) == 8, others
        assert max(losses) == pytest.approx(min(losses), rel=1e-4)
    assert all(record["passes"] == record["updates"] == 1 for record in ran)


def test_the_verdict_has_the_contracts_keys(mnist: tuple[str, Path]) -> None:
    (comparison,) = json.loads((mnist[1] / "verdict.json").read_text())["comparisons"]
    assert comparison["dataset"] == "mnist"
    assert comparison["network"] == "mlp:784-1024-10"
    assert comparison["baseline"]["platform"] == "torch-cpu"
    assert set(comparison["platforms"]) == {"torch-cpu", "torch-cuda", "torch-spark", "mllib"}
    assert comparison["fastest"] in ("torch-cpu", "torch-spark", "mllib")
    assert comparison["flips"] == []


@pytest.mark.browser
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_in_a_browser(mnist: tuple[str, Path], browser: Browser, width: int) -> None:
    address = (mnist[1] / "report.html").as_uri()
    page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
    trouble: list[str] = []
    page.on("request", lambda request: trouble.append(request.url) if request.url != address else None)
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(address)
    assert trouble == []
    assert "Spark MLlib" in page.inner_text("body")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_csv_of_ones_own_goes_the_same_way(tmp_path: Path) -> None:
    values = random.Random(1)
    lines = []
    for number in range(300):
        label = number % 3
        features = [round(values.gauss(label * 2 + column, 0.7), 3) for column in range(7)]
        lines.append(",".join(map(str, [("setosa", "versicolor", "virginica")[label], *features])))
    (tmp_path / "flowers.csv").write_text("\n".join(lines) + "\n")
    own = settings(
        datasets="csv:flowers.csv",
        fractions="1.0",
        executors="1",
        cores="1",
        platforms="torch-cpu mllib",
        learning_rates="1.0",
        epochs="3",
        trials="1",
        networks="mlp:*-16-*",
    )
    done = yarnstick("run", "--run-id", "own", "--set", "csv.label=first", *own, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    rows: list[dict[str, Any]] = rows_of(tmp_path / "store" / "runs" / "own" / "report")
    assert {row["network"] for row in rows} == {"mlp:7-16-3"}
    assert {row["status"] for row in rows} <= {"ok", "ok (1 of 1 trial noisy)"}
    assert {row["platform"] for row in rows} == {"torch-cpu", "mllib"}
