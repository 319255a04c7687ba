"""Rows as torch takes them: kept as values, or as the bytes they are packed in until a chunk of them is due."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor

from models.dataset import Dataset
from models.read_ahead import read_ahead
from store.errors import TrialError

# A full batch in one piece falls out of the processor's cache; the sum over chunks is the same gradient.
CHUNK_ROWS = 2048

# Values at the precision that is trained at, and labels; good until the next chunk is asked for.
Chunk = tuple[Tensor, Tensor]


class Rows(Protocol):
    dtype: torch.dtype

    def __len__(self) -> int: ...

    def chunks(self) -> Iterator[Chunk]:
        """All of them, in order."""
        ...

    def batch(self, which: Tensor) -> Iterator[Chunk]:
        """These, in chunks."""
        ...


class Values:
    """Every row at the precision that is trained at: the fastest to read, and the most memory."""

    def __init__(self, values: Tensor, labels: Tensor) -> None:
        self.dtype = values.dtype
        self._values = values
        self._labels = labels

    def __len__(self) -> int:
        return len(self._labels)

    def chunks(self) -> Iterator[Chunk]:
        sizes = _sizes(len(self))
        yield from zip(self._values.split(sizes), self._labels.split(sizes), strict=True)

    def batch(self, which: Tensor) -> Iterator[Chunk]:
        for some in _pieces(which):
            yield self._values[some], self._labels[some]


class Packed:
    """Rows as they are packed, an eighth to a half of the memory of values."""

    def __init__(self, features: Tensor, labels: Tensor, data: Dataset, *, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._features = features
        self._labels = labels
        self._data = data
        self._unpacked = _Unpacked(data, dtype=dtype, device=features.device)

    def __len__(self) -> int:
        return len(self._labels)

    def chunks(self) -> Iterator[Chunk]:
        sizes = _sizes(len(self))
        for some, known in zip(self._features.split(sizes), self._labels.split(sizes), strict=True):
            yield self._unpacked.values(some), known

    def batch(self, which: Tensor) -> Iterator[Chunk]:
        for some in _pieces(which):
            yield self._unpacked.values(self._features[some]), self._labels[some]

    def part(self, start: int, stop: int) -> Packed:
        return Packed(self._features[start:stop], self._labels[start:stop], self._data, dtype=self.dtype)

    def and_then(self, others: Packed) -> Packed:
        features = torch.cat([self._features, others._features])
        return Packed(features, torch.cat([self._labels, others._labels]), self._data, dtype=self.dtype)


class Streamed:
    """Rows that memory does not hold: read anew for every pass, some row groups ahead."""

    def __init__(
        self,
        data: Dataset,
        fraction: float | None,
        span: tuple[int, int],
        *,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """Of train, or of test where there is no fraction."""
        self.dtype = dtype
        self._data = data
        self._fraction = fraction
        self._chosen = data.span(fraction, *span)
        self._unpacked = _Unpacked(data, dtype=dtype, device=device)
        self._device = device
        self._groups = data.groups(again=True)

    def __len__(self) -> int:
        return len(self._chosen)

    def chunks(self) -> Iterator[Chunk]:
        for features, labels in read_ahead(self._data.stream(self._fraction, self._chosen, self._groups)):
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # of memory that nobody writes to
                group = torch.from_numpy(features).split(CHUNK_ROWS), torch.from_numpy(labels).split(CHUNK_ROWS)
            for some, known in zip(*group, strict=True):
                yield self._unpacked.values(some), known.to(self._device)

    def batch(self, which: Tensor) -> Iterator[Chunk]:
        raise TrialError(
            f"{len(self)} rows of {self._data.name} do not fit into an executor's memory, and mini-batches are drawn "
            f"from all of them; raise yarnstick.spark.overhead_mib, or take gd or l-bfgs, which read them in order"
        )


class _Unpacked:
    """From what is packed to values: room for one chunk of them is kept."""

    def __init__(self, data: Dataset, *, dtype: torch.dtype, device: torch.device) -> None:
        exact = torch.float64 if dtype == torch.float64 else torch.float32
        self._room = torch.empty(CHUNK_ROWS, data.columns, dtype=exact, device=device)
        self._cast = self._room if dtype == exact else torch.empty_like(self._room, dtype=dtype)
        self._scale = _scale(data, like=self._room) if data.dtype == "uint8" else None

    def values(self, features: Tensor) -> Tensor:
        values = self._room[: len(features)].copy_(features)
        if self._scale is not None:
            offset, divisor = self._scale
            if offset is not None:
                values -= offset
            values /= divisor
        return values if self._cast is self._room else self._cast[: len(features)].copy_(values)


def _sizes(rows: int) -> list[int]:
    """Of chunks: the last is a whole one, as sums that are sent while it is worked on want much to hide behind."""
    rest, whole = rows % CHUNK_ROWS, rows // CHUNK_ROWS
    return [rest] * bool(rest) + [CHUNK_ROWS] * whole


def _pieces(which: Tensor) -> tuple[Tensor, ...]:
    """Of nothing there is none; torch would make an empty one."""
    return which.split(CHUNK_ROWS) if len(which) else ()


def _scale(data: Dataset, *, like: Tensor) -> tuple[Tensor | None, Tensor]:
    offset, divisor = (torch.tensor(each, dtype=like.dtype, device=like.device) for each in (data.offset, data.divisor))
    return (offset if offset.any() else None), divisor
