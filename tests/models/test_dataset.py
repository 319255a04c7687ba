"""Which rows a fraction is, and how bytes become values."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from models.dataset import Dataset
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
