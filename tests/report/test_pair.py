"""Two runs side by side: what is matched, and what a difference of their times is called."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl
import pytest

from report.merge import records_table
from report.pair import SideBySide, side_by_side
from tests.report import made


def records(
    configurations: Iterable[made.Made], *, trials: int = 5, seed: int = 0, noise: float = 0.01
) -> pl.DataFrame:
    return pl.DataFrame(records_table(made.outcomes(configurations, trials=trials, seed=seed, noise=noise)))


def compared(first: pl.DataFrame, second: pl.DataFrame) -> SideBySide:
    return side_by_side(first, second, baseline=made.BASELINE)


def test_a_run_against_itself_is_the_same() -> None:
    mine = records(made.QUICK)
    found = compared(mine, mine)
    assert len(found.pairs) == 5, "what did not run has no time to compare"
    assert {(pair.ratio, pair.differs, str(pair)) for pair in found.pairs} == {(1.0, False, "both take the same")}
    assert found.only_first == found.only_second == ()


def test_a_slower_configuration_is_named_and_the_others_are_not() -> None:
    first = [made.torch(1, 0.50), made.torch(2, 0.30), made.mllib(1, 1, 3.0)]
    second = [made.torch(1, 0.50), made.torch(2, 0.30), made.mllib(1, 1, 3.6)]
    found = {pair.name: pair for pair in compared(records(first, seed=1), records(second, seed=2)).pairs}
    mllib = found.pop("Spark MLlib, 1 executor x 1 core, float64")
    assert mllib.differs
    assert mllib.ratio_low is not None
    assert mllib.ratio_high is not None
    assert mllib.ratio_low < 1.2 < mllib.ratio_high
    assert " % slower (p " in str(mllib)
    assert mllib.cells()[1].endswith(" an epoch")
    assert [pair.differs for pair in found.values()] == [False, False]
    assert all(
        str(pair).startswith(("no difference can be seen", "they differ by", "both take")) for pair in found.values()
    )


def test_both_directions_agree() -> None:
    one, other = records([made.torch(1, 0.50)], seed=1), records([made.torch(1, 0.40)], seed=2)
    [forth], [back] = compared(one, other).pairs, compared(other, one).pairs
    assert forth.ratio == pytest.approx(1 / back.ratio)
    assert forth.p == pytest.approx(back.p)
    assert forth.ratio_low == pytest.approx(1 / back.ratio_high)  # type: ignore[operator]
    assert ("faster" in str(forth), "slower" in str(back)) == (True, True)


def test_a_certain_difference_may_be_too_little_to_matter() -> None:
    one, other = ([made.torch(1, seconds)] for seconds in (0.500, 0.505))
    [pair] = compared(records(one, noise=1e-5, seed=1), records(other, noise=1e-5, seed=2)).pairs
    assert pair.p is not None
    assert pair.p < 0.001
    assert pair.differs is False
    assert "too little to matter" in str(pair)


def test_without_repeats_in_both_there_is_no_test() -> None:
    one, other = records([made.torch(1, 0.5)], trials=1), records([made.torch(1, 0.7)])
    [pair] = compared(one, other).pairs
    assert (pair.p, pair.differs, pair.ratio_low) == (None, None, None)
    assert pair.first.low is None
    assert pair.second.low is not None
    assert "without repeats in both nothing tells" in str(pair)


def test_only_the_same_work_is_compared() -> None:
    one = [made.torch(1, 0.5), made.torch(1, 0.2, rows=6_000, data_fraction=0.1)]
    other = [made.torch(1, 0.5, precision="float64"), made.torch(1, 0.2, rows=6_000, data_fraction=0.1)]
    found = compared(records(one), records(other))
    assert [pair.name for pair in found.pairs] == ["torch-cpu, 1 thread, float32, 6,000 rows"]
    assert found.only_first == ("torch-cpu, 1 thread, float32, 15,000 rows",)
    assert found.only_second == ("torch-cpu, 1 thread, float64, 15,000 rows",)


def test_what_has_no_passes_has_no_time_beside_what_is_compared_by_the_pass() -> None:
    unequal = [made.torch(1, 0.5, solver="l-bfgs"), made.torch(2, 0.6, solver="l-bfgs", passes=2)]
    unknown = made.outcomes([made.torch(1, 0.5, solver="l-bfgs")])
    unknown = [made.with_records(each, passes=None) if each.spec.trial == 2 else each for each in unknown]
    found = compared(records(unequal), pl.DataFrame(records_table(unknown)))
    assert (found.pairs, found.only_second) == ((), ())
    assert found.only_first == ("torch-cpu, 2 threads", "torch-cpu, 1 thread")


def test_passes_are_compared_where_passes_differ() -> None:
    """An iteration of l-bfgs may take several: seconds of an epoch would compare unequal work."""
    fewer = [made.torch(1, 0.5, solver="l-bfgs"), made.torch(2, 0.6, solver="l-bfgs", passes=2)]
    more = [made.torch(1, 1.0, solver="l-bfgs", passes=2), made.torch(2, 0.6, solver="l-bfgs", passes=2)]
    found = {pair.name: pair for pair in compared(records(fewer), records(more)).pairs}
    pair = found["torch-cpu, 1 thread"]
    assert pair.unit == "a pass over the rows"
    assert pair.ratio == pytest.approx(1.0, abs=0.02)
