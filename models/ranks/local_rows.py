"""The packed data as one of many sees it: found from its node, kept in memory where that holds it, else streamed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from models.dataset import Dataset
from models.ranks.balance import Span
from models.ranks.worker import Errand
from models.rows import Packed, Rows, Streamed
from store.opening import opened

CACHE = Path("packed")  # in a container's own directory
LABEL_BYTES = 8


class LocalRows:
    def __init__(self, errand: Errand, *, device: torch.device) -> None:
        self.data = errand.data
        self._slug = errand.spec.data
        self._store = None if errand.reach is None else opened(replace(errand.reach, cache=CACHE))
        self._fraction = errand.spec.data_fraction
        self._dtype: torch.dtype = getattr(torch, errand.spec.hyperparameters.precision)
        self._device = device
        self._resident_bytes = errand.resident_mib * 2**20
        self._is_held = True
        self._moves = False
        self._test_rows = 0

    @property
    def count(self) -> int:
        """Of all rows that are trained on."""
        return self.data.rows(self._fraction)

    def hold(self, train: Span, test: Span, *, moves: bool = False) -> None:
        """Only what fits, all together; where rows move, those of train are there twice for a moment."""
        self._moves, self._test_rows = moves, test[1] - test[0]
        self._is_held = self._fits(train)

    def train(self, span: Span) -> Rows:
        if not self._is_held:
            return self._streamed(self._fraction, span)
        return self._read_train(span)

    def test(self, span: Span) -> Rows:
        if not self._is_held:
            return self._streamed(None, span)
        return self._packed(self._there(None, span).read_test_span(*span))

    def moved(self, rows: Rows, *, before: Span, now: Span) -> Rows:
        """Those of train that are there already stay, others are read; all are streamed where they no longer fit."""
        self._is_held = self._is_held and self._fits(now)
        low, high = max(now[0], before[0]), min(now[1], before[1])
        if low >= high or not self._is_held or not isinstance(rows, Packed):
            return self.train(now)
        ahead, behind = self._read_train((now[0], low)), self._read_train((high, now[1]))
        return ahead.and_then(rows.part(low - before[0], high - before[0])).and_then(behind)

    def _fits(self, train: Span) -> bool:
        rows = (train[1] - train[0]) * (2 if self._moves else 1) + self._test_rows
        return rows * (self.data.row_bytes + LABEL_BYTES) <= self._resident_bytes

    def _read_train(self, span: Span) -> Packed:
        return self._packed(self._there(self._fraction, span).read_span(self._fraction, *span))

    def _streamed(self, fraction: float | None, span: Span) -> Streamed:
        return Streamed(self._there(fraction, span), fraction, span, dtype=self._dtype, device=self._device)

    def _there(self, fraction: float | None, span: Span) -> Dataset:
        """The data with the parts that hold these rows on this node."""
        if self._store is None:
            return self.data
        return self.data.span_local_to(self._store, self._slug, fraction, *span)

    def _packed(self, packed: tuple[Any, Any]) -> Packed:
        features, labels = (torch.from_numpy(each).to(self._device) for each in packed)
        return Packed(features, labels, self.data, dtype=self._dtype)
