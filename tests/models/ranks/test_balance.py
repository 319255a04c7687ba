"""Rows go to ranks without a gap, and by speed where that gains something."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.ranks.balance import moved, spans, unfit, weights

SHARES = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8)


@given(rows=st.integers(0, 10_000), shares=SHARES)
def test_spans_cover_all_rows_once(rows: int, shares: list[float]) -> None:
    found = spans(rows, shares)
    assert len(found) == len(shares)
    assert found[0][0] == 0
    assert found[-1][1] == rows
    assert all(one[1] == other[0] for one, other in pairwise(found))
    assert rows < len(shares) or all(stop > start for start, stop in found)


def test_spans_are_in_proportion() -> None:
    assert spans(100, [1, 1]) == [(0, 50), (50, 100)]
    assert spans(301, [2, 1]) == [(0, 200), (200, 301)]


def test_a_rank_twice_as_slow_gets_half_as_many() -> None:
    assert moved([(0, 300), (300, 600)], [2.0, 1.0]) == [(0, 200), (200, 600)]


def test_nothing_moves_for_little() -> None:
    assert moved([(0, 300), (300, 600)], [1.05, 1.0]) is None


@pytest.mark.parametrize(
    ("balance", "size", "shares"), [(None, 2, [1, 1]), ("even", 3, [1, 1, 1]), ("speed", 1, [1]), ("3:1", 2, [3, 1])]
)
def test_what_rows_are_shared_by_first(balance: str | None, size: int, shares: list[float]) -> None:
    assert weights(balance, size) == shares
    assert unfit(balance, size) is None


def test_weights_are_one_for_each_executor() -> None:
    assert unfit("3:1", 3) == "balances = 3:1 shares rows among 2 executors, and there are 3"
