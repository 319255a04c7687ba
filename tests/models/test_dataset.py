"""Which rows a fraction is, and how bytes become values."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from models.dataset import Dataset
from store.local import LocalStore
from tests.models.made import COLUMNS, packed


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    return packed(tmp_path)


def test_a_fraction_is_the_first_rows_of_one_permutation_in_the_order_of_the_file(data: Dataset) -> None:
    all_rows, all_labels = data.read_train(1.0)
    permutation = np.random.default_rng(data.split_seed).permutation(data.train_rows)
    for fraction in (0.25, 0.5):
        rows, labels = data.read_train(fraction)
        wanted = np.sort(permutation[: int(data.train_rows * fraction)])
        assert (rows == all_rows[wanted]).all()
        assert (labels == all_labels[wanted]).all()


def test_a_smaller_fraction_is_part_of_a_larger_one(data: Dataset) -> None:
    assert set(data.chosen(0.2)) < set(data.chosen(0.6)) < set(data.chosen(1.0))


def test_spans_of_a_fraction_are_the_fraction(data: Dataset) -> None:
    whole, labels = data.read_train(0.7)
    bounds = [0, 1, 63, 64, 200, len(whole)]
    parts = [data.read_span(0.7, low, high) for low, high in pairwise(bounds)]
    assert (np.concatenate([rows for rows, _ in parts]) == whole).all()
    assert (np.concatenate([known for _, known in parts]) == labels).all()


def test_values_are_exact_in_float64(data: Dataset) -> None:
    rows, _ = data.read_train(1.0)
    assert (data.values(rows, "float64") == rows.astype("float64") / 255).all()


def test_each_column_may_have_its_own_scale(data: Dataset) -> None:
    own = replace(data, offset=tuple(range(COLUMNS)), divisor=tuple(range(1, COLUMNS + 1)))
    rows, _ = own.read_train(1.0)
    expected = (rows.astype("float64") - np.arange(COLUMNS)) / np.arange(1, COLUMNS + 1)
    assert (own.values(rows, "float64") == expected).all()


PART_ROWS = (150, 100, 150)


@pytest.fixture
def published(tmp_path: Path) -> tuple[LocalStore, Dataset]:
    """Train in three parts, in a store that a node has to ask."""
    whole = packed(tmp_path / "whole")
    store = LocalStore(tmp_path / "store")
    names = [f"part-{number:05d}.parquet" for number in range(len(PART_ROWS))]
    table, first = pq.read_table(whole.train[0]), 0
    assert len(table) == sum(PART_ROWS)
    for name, rows in zip(names, PART_ROWS, strict=True):
        part = io.BytesIO()
        pq.write_table(table.slice(first, rows), part, row_group_size=64)
        store.write(f"data/made/packed/train/{name}", part.getvalue())
        first += rows
    return store, replace(
        whole, train=tuple(f"/elsewhere/{name}" for name in names), test=(), train_part_rows=PART_ROWS
    )


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_parts_need_not_be_here_whose_rows_are_not_asked_for(
    published: tuple[LocalStore, Dataset], tmp_path: Path, fraction: float
) -> None:
    store, data = published
    expected, labels = packed(tmp_path / "again").read_train(fraction)
    for span in pairwise([0, 20, 110, 180, len(labels)]):
        there = data.span_local_to(store, "made", fraction, *span)
        rows, known = there.read_span(fraction, *span)
        assert (rows == expected[slice(*span)]).all()
        assert (known == labels[slice(*span)]).all()
        streamed = list(there.stream(fraction, there.span(fraction, *span), there.groups()))
        assert (np.concatenate([some for some, _ in streamed]) == rows).all()


def test_only_the_parts_of_a_span_are_fetched(published: tuple[LocalStore, Dataset]) -> None:
    store, data = published
    found = data.span_local_to(store, "made", 1.0, 150, 250).train
    assert [Path(each).exists() for each in found] == [False, True, False]
    assert [Path(each).exists() for each in data.span_local_to(store, "made", 1.0, 149, 151).train] == [
        True, True, False,
    ]  # fmt: skip
    uncounted = replace(data, train_part_rows=())
    assert all(Path(each).exists() for each in uncounted.span_local_to(store, "made", 1.0, 0, 1).train)
