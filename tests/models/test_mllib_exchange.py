"""What a pass takes with nothing to compute is read from the later passes, and measured once for what it depends on."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import mllib_exchange
from models.dataset import Dataset
from models.mllib_exchange import COLD, UPDATES, Exchanges, few, warm_pass
from models.spec import Network
from store.errors import TrialError
from tests.models.made import packed, spec
from tests.models.test_mllib_fit import passes


def no_rows() -> Any:
    """Who stands in for the measurement reads none."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return packed(tmp_path_factory.mktemp("packed"))


def test_a_pass_lasts_until_the_next_begins_and_the_cold_ones_do_not_count() -> None:
    starts = [0.0, 5.0, 5.5, 6.25, 7.25]
    assert (len(starts), COLD) == (UPDATES + 1, 1)
    # 0.5, 0.75 and 1.0 s; that after the last update only finds a loss.
    assert warm_pass(passes(*((start, start + 0.1) for start in starts))) == pytest.approx(0.75)


@given(rows=st.integers(1, 10**7), partitions=st.integers(1, 512))
def test_few_rows_are_one_a_partition(rows: int, partitions: int, made: Dataset) -> None:
    data = replace(made, train_rows=rows)
    asked = spec("mllib", resources=replace(spec("mllib").resources, partitions=partitions))
    assert data.rows(few(asked, data).data_fraction) == min(rows, partitions)


def test_once_for_each_application_network_and_number_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(mllib_exchange, "_measured", lambda *_: asked.append(0) or float(len(asked)))
    exchanges = Exchanges()

    def seconds(name: str, **changes: Any) -> float | None:
        application = SimpleNamespace(session=SimpleNamespace(sparkContext=SimpleNamespace(applicationId=name)))
        return exchanges.seconds(cast(Any, application), spec("mllib", **changes), rows=no_rows)

    four = replace(spec("mllib").resources, partitions=4)
    first = [seconds("a"), seconds("b"), seconds("a", network=Network(sizes=(12, 3))), seconds("a", resources=four)]
    assert first == [1.0, 2.0, 3.0, 4.0]
    assert [seconds("a"), seconds("a", seed=12, solver="l-bfgs"), seconds("a", resources=four)] == [1.0, 1.0, 4.0]


def test_a_log_that_does_not_show_it_costs_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def dropped(*_: Any) -> float:
        raise TrialError("the event log shows 3 finished gradient passes")

    monkeypatch.setattr(mllib_exchange, "_measured", dropped)
    application = SimpleNamespace(session=SimpleNamespace(sparkContext=SimpleNamespace(applicationId="a")))
    assert Exchanges().seconds(cast(Any, application), spec("mllib"), rows=no_rows) is None
