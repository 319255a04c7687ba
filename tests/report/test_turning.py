"""When the answer flips is on the first screen and in the terminal; where nobody can tell, so is why."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from models.outcome import Outcome
from report.merge import records_table
from report.page import report_files, summary
from tests.report.made import BASELINE, QUICK, RUN, mllib, outcomes, torch, with_records
from tests.report.test_predictions import sweep


def told(found: Sequence[Outcome]) -> tuple[str, list[str]]:
    """The reason in the verdict, and the terminal's lines."""
    made = summary(records_table(found), run=RUN, baseline=BASELINE)
    return made["comparisons"][0]["no_flips"], made["first_lines"]


def header(files: dict[str, bytes]) -> str:
    page = files["report.html"].decode().replace('<span class="kept">', "").replace("</span>", "")
    return page.partition("<header>")[2].partition("</header>")[0]


def test_the_first_screen_and_the_terminal_say_when_it_flips() -> None:
    made = sweep(rows=(3_000,), hidden=(64, 256, 1024))
    files = report_files(records_table(outcomes(made, noise=0.01, trials=1)), run=RUN, baseline=BASELINE)
    verdict = json.loads(files["verdict.json"])
    first, *_ = verdict["comparisons"][0]["flips"]
    assert verdict["comparisons"][0]["no_flips"] is None
    assert f"When it flips: {first}" in verdict["first_lines"]
    assert f'<p class="flips">When it flips: {first}' in header(files)


def test_too_few_sizes_are_the_reason_and_what_to_sweep_is_said() -> None:
    reason, lines = told(outcomes())
    assert reason == (
        "torch-cpu (gd, float32, autograd) was measured in 2 configurations of different size, and a model takes 5: "
        "vary rows (fractions) or hidden units (networks) too"
    )
    assert f"When the answer flips cannot be told: {reason}." in lines
    assert f"cannot be told: {reason}." in header(report_files(records_table(outcomes()), run=RUN, baseline=BASELINE))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (outcomes([torch(1, 0.5), torch(2, 0.3)]), "only torch-cpu ran"),
        (outcomes([made for made in QUICK if made.unavailable]), "nothing ran to the end"),
        (
            [with_records(each, unit="training", epoch=None, warmup=False) for each in outcomes(epochs=1)],
            "models are made of epochs, and whole trainings were timed",
        ),
    ],
)
def test_other_reasons(found: list[Outcome], reason: str) -> None:
    assert told(found)[0] == reason


def test_of_one_model_alone_the_other_platforms_sizes_are_the_reason() -> None:
    made = [*(torch(n, 1 / n) for n in range(1, 7)), mllib(1, 1, 3.0)]
    assert told(outcomes(made))[0].startswith("Spark MLlib (gd, float64) was measured in 1 configuration of different")


def test_models_of_cores_alone_do_not_tell() -> None:
    made = [*(torch(n, 1.0) for n in range(1, 7)), *(mllib(1, n, 9.0 / n) for n in range(1, 7))]
    assert told(outcomes(made))[0].startswith("rows, hidden units and executors were not varied far enough")
