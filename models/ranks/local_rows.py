"""The packed data as one of many sees it: found from its node, kept in memory where that holds it, else streamed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from models.ranks.balance import Span
from models.ranks.worker import Errand
from models.rows import Packed, Rows, Streamed
from store.opening import opened

CACHE = Path("packed")  # in a container's own directory
LABEL_BYTES = 8


class LocalRows:
    def __init__(self, errand: Errand, *, device: torch.device) -> None:
        self.data = errand.data
        if errand.reach is not None:
            self.data = errand.data.local_to(opened(replace(errand.reach, cache=CACHE)), errand.spec.data)
        self._fraction = errand.spec.data_fraction
        self._dtype: torch.dtype = getattr(torch, errand.spec.hyperparameters.precision)
        self._device = device
        self._resident_bytes = errand.resident_mib * 2**20
        self._is_held = True

    @property
    def count(self) -> int:
        """Of all rows that are trained on."""
        return self.data.rows(self._fraction)

    def hold(self, *spans: Span) -> None:
        """Only what fits, all together."""
        rows = sum(stop - start for start, stop in spans)
        self._is_held = rows * (self.data.row_bytes + LABEL_BYTES) <= self._resident_bytes

    def train(self, span: Span) -> Rows:
        if not self._is_held:
            return Streamed(self.data, self._fraction, span, dtype=self._dtype)
        return self._read_train(span)

    def test(self, span: Span) -> Rows:
        if not self._is_held:
            return Streamed(self.data, None, span, dtype=self._dtype)
        return self._packed(self.data.read_test_span(*span))

    def moved(self, rows: Rows, *, before: Span, now: Span) -> Rows:
        """Those of train that are there already stay, others are read."""
        low, high = max(now[0], before[0]), min(now[1], before[1])
        if low >= high or not isinstance(rows, Packed):
            return self.train(now)
        ahead, behind = self._read_train((now[0], low)), self._read_train((high, now[1]))
        return ahead.and_then(rows.part(low - before[0], high - before[0])).and_then(behind)

    def _read_train(self, span: Span) -> Packed:
        return self._packed(self.data.read_span(self._fraction, *span))

    def _packed(self, packed: tuple[Any, Any]) -> Packed:
        features, labels = (torch.from_numpy(each).to(self._device) for each in packed)
        return Packed(features, labels, self.data, dtype=self._dtype)
