"""When the answer flips: where two models cross, against where the lines cross that the times were made from."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from report.merge import records_table
from report.page import report_files, summary
from report.predictions import predicted
from report.scaling_model import Size
from tests.report.made import BASELINE, RUN, Made, mllib, outcomes, torch
from tests.report.test_predictions import of, seconds_of, series_of, sweep


def flips(made: Iterable[Made], *, rows: int, hidden: int) -> list[str]:
    found = summary(records_table(outcomes(made, noise=0.0)), run=RUN, baseline=BASELINE)
    (one,) = [
        each for each in found["comparisons"] if (each["rows"], each["network"]) == (rows, f"mlp:784-{hidden}-10")
    ]
    assert isinstance(one["flips"], list)
    return one["flips"]


def number(sentence: str) -> int:
    found = re.search(r"[\d,]*\d", sentence)
    assert found
    return int(found[0].replace(",", ""))


def crossing(change: str, **fixed: int) -> int:
    """Where MLlib on four executors is faster than PyTorch with two threads, counted up one by one."""
    value = fixed.pop(change)
    while True:
        at = {**fixed, change: value}
        same = {"rows": at["rows"], "sizes": (784, at["hidden"], 10)}
        slow = seconds_of(mllib(at.get("executors", 4), 1, None, **same), fixed=0.4, sums=0.05)
        fast = seconds_of(torch(2, None, **same), fixed=0.001, slower=9.0)
        if slow < fast:
            return value
        value += max(1, value // 1000)


def test_it_flips_at_so_many_rows_and_hidden_units() -> None:
    found = flips(sweep(), rows=3_000, hidden=1024)
    (rows,) = [text for text in found if " rows " in text]
    expected = crossing("rows", rows=3_000, hidden=1024)
    assert rows.startswith("at ")
    assert expected <= number(rows) <= 1.1 * expected
    assert "Spark MLlib (4 executors x 1 core) is predicted to overtake torch-cpu (2 threads)" in rows
    assert "held-out error" in rows
    units = flips(sweep(), rows=15_000, hidden=256)
    (with_units,) = [text for text in units if text.startswith("with ")]
    expected = crossing("hidden", rows=15_000, hidden=256)
    assert "hidden units Spark MLlib" in with_units
    assert expected <= number(with_units) <= 1.1 * expected


def test_it_does_not_flip_below_so_many_executors() -> None:
    """Four executors share too little arithmetic; more of them share it further."""
    slowness = {"mllib": 6.1, "torch-cpu": 2.0}
    made = [replace(each, seconds=seconds_of(each, fixed=0.001, slower=slowness[each.platform])) for each in sweep()]
    found = flips(made, rows=60_000, hidden=1024)
    (sentence,) = [text for text in found if text.startswith("not below")]
    executors = number(sentence)
    spark = [mllib(n, 1, None, rows=60_000, sizes=(784, 1024, 10)) for n in (executors - 1, executors)]
    one = seconds_of(torch(2, None, rows=60_000, sizes=(784, 1024, 10)), fixed=0.001, slower=2.0)
    before, after = (seconds_of(each, fixed=0.001, slower=6.1) for each in spark)
    assert after < one <= before
    assert f"not below {executors} executors of 1 core Spark MLlib is predicted to overtake" in sentence


def test_where_nothing_flips_it_says_how_far_that_holds() -> None:
    made = [
        replace(each, seconds=(each.seconds or 0) + (60.0 if each.executors else 0.0)) for each in sweep()
    ]  # fmt: skip
    (sentence,) = flips(made, rows=60_000, hidden=64)
    assert sentence.startswith(
        "Spark MLlib (4 executors x 1 core) is not predicted to overtake torch-cpu (2 threads) below 240,000 rows, "
    )
    assert "16 executors, which is as far as was validated" in sentence


def test_nothing_is_said_of_axes_that_were_not_varied() -> None:
    assert flips(sweep(rows=(15_000,), hidden=(64, 1024, 2048)), rows=15_000, hidden=64)
    for text in flips(sweep(rows=(15_000,), hidden=(64, 1024, 2048)), rows=15_000, hidden=64):
        assert "rows" not in text


def test_without_models_there_are_no_flips() -> None:
    made = [torch(1, 0.5, rows=15_000), torch(2, 0.3, rows=15_000), mllib(2, 1, 2.0, rows=15_000)]
    assert flips(made, rows=15_000, hidden=1024) == []


def test_errors_say_from_where_to_where_it_may_flip() -> None:
    """Ten percent off on every other configuration: the doubt is that of both models."""
    made = [replace(each, seconds=(each.seconds or 0) * (1.1 if n % 2 else 0.9)) for n, each in enumerate(sweep())]
    (rows,) = [text for text in flips(made, rows=3_000, hidden=1024) if " rows " in text]
    said = re.search(r"\(([\d,]+) to ([\d,]+), 19 times of 20 by the held-out errors, whose median is", rows)
    assert said
    low, high = (number(each) for each in said.groups())
    assert low < number(rows) < high
    expected = crossing("rows", rows=3_000, hidden=1024)
    assert low < expected < high
    # Where the ends are, the two predictions are as far apart as their intervals, which are those of `predict`, allow.
    series = series_of(made)
    for end, sign in ((low, 1), (high, -1)):
        each = [
            predicted(of("mllib", series), Size(rows=end, layers=(784, 1024, 10), executors=4, cores=1)),
            predicted(of("torch-cpu", series), Size(rows=end, layers=(784, 1024, 10), threads=2)),
        ]
        doubt = math.hypot(*(math.log((one.high or 0) / one.seconds) for one in each))
        assert math.log(each[0].seconds / each[1].seconds) == pytest.approx(sign * doubt, abs=0.05)


def test_the_page_and_the_verdict_say_the_same() -> None:
    made = sweep(rows=(3_000,), hidden=(64, 256, 1024))
    files = report_files(records_table(outcomes(made, noise=0.01, trials=1)), run=RUN, baseline=BASELINE)
    said = [text for each in json.loads(files["verdict.json"])["comparisons"] for text in each["flips"]]
    assert said
    page = files["report.html"].decode().replace('<span class="kept">', "").replace("</span>", "")
    for text in json.loads(files["verdict.json"])["comparisons"][0]["flips"]:
        assert text[:1].upper() + text[1:] in page
