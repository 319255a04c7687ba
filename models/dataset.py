"""The packed data as a platform reads it: which rows a fraction is, and how bytes become values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from store.errors import DataError
from store.protocol import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from models.row_groups import Block, RowGroups

    Chosen = range | NDArray[np.int64]  # numbers of rows, ascending: of a whole span nobody writes down all


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Paths and manifest of a packed dataset. A feature column holds the rows as one contiguous binary each."""

    name: str
    train: tuple[str, ...]  # paths of the Parquet parts, in order
    test: tuple[str, ...]
    columns: int
    classes: int
    dtype: str  # uint8 | float32
    offset: tuple[float, ...]  # one for all columns, or one each
    divisor: tuple[float, ...]
    train_rows: int
    test_rows: int
    split_seed: int
    train_part_rows: tuple[int, ...] = ()  # of each part of train; empty where they were not counted

    @property
    def row_bytes(self) -> int:
        return self.columns * (1 if self.dtype == "uint8" else 4)

    @property
    def train_bytes(self) -> int:
        """What a reader of train has to read: a fraction's rows lie in all of its row groups."""
        return sum(Path(path).stat().st_size for path in self.train)

    def rows(self, fraction: float) -> int:
        return self.train_rows if fraction == 1.0 else max(1, int(self.train_rows * fraction))

    def chosen(self, fraction: float) -> NDArray[np.int64]:
        """A fraction's rows: the first of one permutation by the split seed, in the order of the file.

        The same for every platform, so that all train on the same rows.
        """
        import numpy as np

        if fraction == 1.0:
            return np.arange(self.train_rows)
        return np.sort(np.random.default_rng(self.split_seed).permutation(self.train_rows)[: self.rows(fraction)])

    def read_train(self, fraction: float) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        """Features as they are packed, and labels, of a fraction."""
        return self.read_span(fraction, 0, self.rows(fraction))

    def read_test(self) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        return self.read_test_span(0, self.test_rows)

    def read_span(self, fraction: float, start: int, stop: int) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        """Rows start..stop of a fraction: a worker's share. Reads only the row groups that it needs."""
        return self._gather(self.train, self.span(fraction, start, stop))

    def span(self, fraction: float | None, start: int, stop: int) -> Chosen:
        """The numbers of these rows, which for a fraction take drawing and sorting all; of test where there is none."""
        if fraction is None or fraction == 1.0:
            return range(start, stop)
        return self.chosen(fraction)[start:stop].copy()  # the others are not kept

    def stream(
        self, fraction: float | None, chosen: Chosen, groups: RowGroups
    ) -> Iterator[tuple[NDArray[np.generic], NDArray[np.int64]]]:
        """Rows of a span, a row group at a time, in memory of a few groups; of test where there is no fraction.

        They are not to be written to, and good as long as the groups' rooms are.
        """
        paths = self.test if fraction is None else self.train
        for first, (block, labels) in self._blocks(paths, chosen, groups):
            _, own = _chosen_of(chosen, first, len(block))
            yield block[own], labels[own]

    def groups(self, *, again: bool = False) -> RowGroups:
        from models.row_groups import RowGroups

        return RowGroups(self.dtype, self.columns, again=again)

    def read_test_span(self, start: int, stop: int) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        return self._gather(self.test, range(start, stop))

    def local_to(self, store: Store, slug: str) -> Dataset:
        """The same data under the paths that it gets on this machine, where it may have to be fetched first."""
        train, test = range(len(self.train)), range(len(self.test))
        return self._located(store, slug, train=train, test=test)

    def span_local_to(self, store: Store, slug: str, fraction: float | None, start: int, stop: int) -> Dataset:
        """The same for what is needed to read these rows, of test where there is no fraction."""
        if fraction is None:
            return self._located(store, slug, test=range(len(self.test)))
        chosen, first, wanted = self.span(fraction, start, stop), 0, []
        for number, rows in enumerate(self.train_part_rows):
            low, high = _between(chosen, first, rows)
            if low < high:
                wanted.append(number)
            first += rows
        return self._located(store, slug, train=wanted if self.train_part_rows else range(len(self.train)))

    def _located(self, store: Store, slug: str, *, train: Sequence[int] = (), test: Sequence[int] = ()) -> Dataset:
        def local(split: str, paths: tuple[str, ...], wanted: Sequence[int]) -> tuple[str, ...]:
            found = list(paths)
            for number in wanted:
                found[number] = str(store.local(f"data/{slug}/packed/{split}/{Path(paths[number]).name}"))
            return tuple(found)

        return replace(self, train=local("train", self.train, train), test=local("test", self.test, test))

    def values(self, features: NDArray[np.generic], dtype: str) -> NDArray[np.floating]:
        """The normalized values of packed features, at the precision asked for."""
        import numpy as np

        values = features.astype(dtype)
        if self.dtype == "uint8":
            values -= np.asarray(self.offset, dtype)
            values /= np.asarray(self.divisor, dtype)
        return values

    def _gather(self, paths: tuple[str, ...], chosen: Chosen) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        import numpy as np

        features = np.empty((len(chosen), self.columns), self.dtype)
        labels = np.empty(len(chosen), np.int64)
        for start, (block, block_labels) in self._blocks(paths, chosen, self.groups()):
            place, own = _chosen_of(chosen, start, len(block))
            features[place] = block[own]
            labels[place] = block_labels[own]
        return features, labels

    def _blocks(self, paths: tuple[str, ...], chosen: Chosen, groups: RowGroups) -> Iterator[tuple[int, Block]]:
        """Row groups that hold a chosen row, with the number of their first row."""
        import pyarrow as pa

        counts = self.train_part_rows if paths is self.train and self.train_part_rows else (None,) * len(paths)
        before = 0
        for path, count in zip(paths, counts, strict=True):
            if count is not None and not _has(chosen, before, 0, count):  # and it need not be here
                before += count
                continue
            try:
                for first, block in groups.read(path, partial(_has, chosen, before)):
                    yield before + first, block
                before += groups.rows(path)
            except (pa.ArrowException, OSError, KeyError, ValueError) as error:
                reason = str(error).partition("\n")[0]
                raise DataError(f"{path} is damaged ({reason}); remove its directory and run again") from None


def _between(chosen: Chosen, first: int, rows: int) -> tuple[int, int]:
    """Where those of some rows stand among the chosen."""
    if isinstance(chosen, range):
        low, high = (min(max(row - chosen.start, 0), len(chosen)) for row in (first, first + rows))
        return low, high
    low, high = chosen.searchsorted((first, first + rows))
    return int(low), int(high)


def _has(chosen: Chosen, part: int, first: int, rows: int) -> bool:
    """Of these rows of a part that begins there."""
    low, high = _between(chosen, part + first, rows)
    return low < high


def _chosen_of(chosen: Chosen, first: int, rows: int) -> tuple[slice, slice | NDArray[np.int64]]:
    """Where those of a row group stand among the chosen, and which of the group they are: a slice copies nothing."""
    low, high = _between(chosen, first, rows)
    if isinstance(chosen, range):
        return slice(low, high), slice(chosen.start + low - first, chosen.start + high - first)
    own = chosen[low:high] - first
    is_span = own[-1] - own[0] == high - low - 1
    return slice(low, high), slice(int(own[0]), int(own[-1]) + 1) if is_span else own
