"""Rows are the same numbers however they are kept."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.dataset import Dataset
from models.read_ahead import read_ahead
from models.rows import Packed, Rows, Streamed, Values
from store.errors import DataError, TrialError
from tests.models.made import packed

SPAN = (30, 370)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return packed(tmp_path_factory.mktemp("packed"))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.rows.CHUNK_ROWS", 50)


def kept(kind: str, data: Dataset, dtype: torch.dtype, fraction: float = 1.0) -> Rows:
    if kind == "streamed":
        return Streamed(data, fraction, SPAN, dtype=dtype, device=CPU)
    features, labels = data.read_span(fraction, *SPAN)
    if kind == "packed":
        return Packed(torch.from_numpy(features), torch.from_numpy(labels), data, dtype=dtype)
    exact = "float64" if dtype == torch.float64 else "float32"
    return Values(torch.from_numpy(data.values(features, exact)).to(dtype), torch.from_numpy(labels))


def together(rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
    chunks = [(values.clone(), labels) for values, labels in rows.chunks()]
    assert all(len(values) <= 50 for values, _ in chunks)
    return torch.cat([values for values, _ in chunks]), torch.cat([labels for _, labels in chunks])


def test_a_fraction_is_drawn_before_the_first_pass_and_not_again(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing is of all rows, and passes are timed."""
    rows = kept("streamed", data, torch.float32, 0.95)
    first, labels = together(rows)

    def drawn(seed: int) -> None:
        raise AssertionError("drawn again")

    monkeypatch.setattr(np.random, "default_rng", drawn)
    again, known = together(rows)
    assert torch.equal(first, again)
    assert torch.equal(labels, known)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("fraction", [1.0, 0.95])
@pytest.mark.parametrize("kind", ["packed", "streamed"])
def test_they_are_the_values(data: Dataset, kind: str, dtype: torch.dtype, fraction: float) -> None:
    values, labels = together(kept(kind, data, dtype, fraction))
    expected, known = together(kept("values", data, dtype, fraction))
    assert values.dtype == dtype
    assert torch.equal(values, expected)
    assert torch.equal(labels, known)
    assert len(labels) == len(kept(kind, data, dtype, fraction)) == SPAN[1] - SPAN[0]


def test_a_scale_for_each_column_is_taken(tmp_path: Path) -> None:
    scaled = replace(
        packed(tmp_path), offset=tuple(map(float, range(12))), divisor=tuple(float(n + 1) for n in range(12))
    )
    values, _ = together(kept("packed", scaled, torch.float64))
    features, _ = scaled.read_span(1.0, *SPAN)
    assert np.array_equal(values.numpy(), (features - np.arange(12.0)) / np.arange(1.0, 13.0))


@pytest.mark.parametrize("kind", ["values", "packed"])
def test_a_batch_is_the_rows_that_are_asked_for(data: Dataset, kind: str) -> None:
    which = torch.tensor([3, 200, 3, 339])
    [(values, labels)] = kept(kind, data, torch.float32).batch(which)
    every, known = together(kept("values", data, torch.float32))
    assert torch.equal(values, every[which])
    assert torch.equal(labels, known[which])
    assert list(kept(kind, data, torch.float32).batch(torch.tensor([], dtype=torch.int64))) == []


def test_rows_that_stream_have_no_mini_batches(data: Dataset) -> None:
    with pytest.raises(TrialError, match=r"340 rows of made .*yarnstick\.spark\.overhead_mib"):
        kept("streamed", data, torch.float32).batch(torch.tensor([1]))


def test_test_rows_stream_too(data: Dataset) -> None:
    rows = Streamed(data, None, (0, data.test_rows), dtype=torch.float32, device=CPU)
    _, labels = together(rows)
    assert np.array_equal(labels.numpy(), data.read_test()[1])


def test_a_damaged_part_is_told_while_it_streams(tmp_path: Path) -> None:
    data = packed(tmp_path)
    path = Path(data.train[0])
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="is damaged"):
        together(kept("streamed", data, torch.float32))


def test_reading_ahead_keeps_the_order_and_the_error() -> None:
    def items() -> object:
        yield from range(5)
        raise ValueError("the sixth")

    ahead = read_ahead(items())  # type: ignore[arg-type]
    assert list(itertools.islice(ahead, 5)) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="the sixth"):
        next(ahead)


def test_reading_ahead_ends_with_who_asked() -> None:
    made = []

    def items() -> object:
        for number in range(1000):
            made.append(number)
            yield number

    for item in read_ahead(items()):  # type: ignore[arg-type]
        if item == 3:
            break
    assert len(made) < 10
