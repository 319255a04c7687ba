"""Numbers as people read them."""

from __future__ import annotations

import pytest

from report import words


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.00042, "0.42 ms"), (0.042, "42 ms"), (0.0999, "0.10 s"), (0.33, "0.33 s"), (0.996, "1.0 s"), (2.0, "2.0 s"),
        (2.149, "2.1 s"), (12.4, "12 s"), (119.2, "119 s"), (120.0, "120 s"), (120.4, "2 min"), (200.0, "3 min 20 s"),
        (3600.0, "60 min"), (7500.0, "2 h 5 min"),
    ],
)  # fmt: skip
def test_seconds(value: float, said: str) -> None:
    assert words.seconds(value) == said


@pytest.mark.parametrize(
    ("value", "said"), [(6.38, "6.4x"), (1.034, "1.03x"), (0.51, "0.510x"), (12.6, "13x"), (123.4, "123x")]
)
def test_times(value: float, said: str) -> None:
    assert words.times(value) == said


def test_a_ratio_has_its_interval_where_there_is_one() -> None:
    assert words.times_between(6.4, 6.1, 6.8) == "6.4x (6.1 to 6.8)"
    assert words.times_between(6.4, None, None) == "6.4x"


def test_times_that_differ_do_not_look_equal() -> None:
    assert words.distinct_seconds([0.331, 0.334]) == ["0.331 s", "0.334 s"]
    assert words.distinct_seconds([0.33, 2.1]) == ["0.33 s", "2.1 s"]


def test_an_interval_says_its_unit_once() -> None:
    assert words.seconds_between(0.325, 0.337) == "0.325 to 0.337 s"
    assert words.seconds_between(0.095, 0.11) == "95.0 ms to 0.110 s"
    assert words.seconds_between(None, None) == ""


def test_no_digit_of_a_whole_number_is_lost() -> None:
    assert words.significant(12345.6) == "12,346"
    assert words.significant(0) == "0"
    assert words.significant(9.96) == "10"


def test_lists_and_plurals() -> None:
    assert words.listed([]) == ""
    assert words.listed(["a", "b", "c"], "or") == "a, b or c"
    assert words.counted(1, "thread") == "1 thread"
    assert words.counted(12_000, "trial") == "12,000 trials"
