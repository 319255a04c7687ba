"""The packed data as a platform reads it: which rows a fraction is, and how bytes become values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from store.errors import DataError
from store.protocol import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
        return self._gather(self.train, self.chosen(fraction))

    def read_test(self) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        import numpy as np

        return self._gather(self.test, np.arange(self.test_rows))

    def read_span(self, fraction: float, start: int, stop: int) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        """Rows start..stop of a fraction: a worker's share. Reads only the row groups that it needs."""
        return self._gather(self.train, self.chosen(fraction)[start:stop])

    def stream(
        self, fraction: float | None, start: int, stop: int, *, verified: bool = False
    ) -> Iterator[tuple[NDArray[np.generic], NDArray[np.int64]]]:
        """The same rows, a row group at a time, in memory of a few groups; of test where there is no fraction.

        They are Arrow's own memory, not to be written to. Where the checksums of the pages were verified before, by an
        earlier pass, that is spared: it takes longer than the rest of reading.
        """
        import numpy as np

        paths, chosen = (self.test, np.arange(start, stop)) if fraction is None else (self.train, self.chosen(fraction))
        chosen = chosen if fraction is None else chosen[start:stop]
        for first, block, labels in self._blocks(paths, chosen, mapped=False, verified=verified):
            _, own = _chosen_of(chosen, first, len(block))
            yield block[own], labels[own]

    def read_test_span(self, start: int, stop: int) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        import numpy as np

        return self._gather(self.test, np.arange(start, stop))

    def local_to(self, store: Store, slug: str) -> Dataset:
        """The same data under the paths that it gets on this machine, where it may have to be fetched first."""

        def local(split: str, paths: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(str(store.local(f"data/{slug}/packed/{split}/{Path(path).name}")) for path in paths)

        return replace(self, train=local("train", self.train), test=local("test", self.test))

    def values(self, features: NDArray[np.generic], dtype: str) -> NDArray[np.floating]:
        """The normalized values of packed features, at the precision asked for."""
        import numpy as np

        values = features.astype(dtype)
        if self.dtype == "uint8":
            values -= np.asarray(self.offset, dtype)
            values /= np.asarray(self.divisor, dtype)
        return values

    def _gather(
        self, paths: tuple[str, ...], chosen: NDArray[np.int64]
    ) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        import numpy as np

        features = np.empty((len(chosen), self.columns), self.dtype)
        labels = np.empty(len(chosen), np.int64)
        for start, block, block_labels in self._blocks(paths, chosen):
            place, own = _chosen_of(chosen, start, len(block))
            features[place] = block[own]
            labels[place] = block_labels[own]
        return features, labels

    def _blocks(
        self, paths: tuple[str, ...], chosen: NDArray[np.int64], *, mapped: bool = True, verified: bool = False
    ) -> Iterator[tuple[int, NDArray[np.generic], NDArray[np.int64]]]:
        """Row groups that hold a chosen row, with the number of their first row."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        first = 0
        for path in paths:
            try:
                with pq.ParquetFile(path, memory_map=mapped, page_checksum_verification=not verified) as file:
                    for group in range(file.num_row_groups):
                        rows = file.metadata.row_group(group).num_rows
                        low, high = np.searchsorted(chosen, (first, first + rows))
                        if low < high:
                            table = file.read_row_group(group, use_threads=False).combine_chunks()
                            packed = table["features"].chunk(0)
                            width = packed.type.byte_width
                            block = np.frombuffer(packed.buffers()[1], np.uint8, rows * width, packed.offset * width)
                            features = block.view(self.dtype).reshape(rows, self.columns)
                            # to_numpy would import pandas, which takes longer than reading.
                            labels = np.from_dlpack(table["label"].chunk(0)).astype(np.int64, copy=False)
                            yield first, features, labels
                        first += rows
            except (pa.ArrowException, OSError, KeyError, ValueError) as error:
                reason = str(error).partition("\n")[0]
                raise DataError(f"{path} is damaged ({reason}); remove its directory and run again") from None


def _chosen_of(chosen: NDArray[np.int64], first: int, rows: int) -> tuple[slice, slice | NDArray[np.int64]]:
    """Where those of a row group stand among the chosen, and which of the group they are: a slice copies nothing."""
    import numpy as np

    low, high = (int(each) for each in np.searchsorted(chosen, (first, first + rows)))
    own = chosen[low:high] - first
    is_span = own[-1] - own[0] == high - low - 1
    return slice(low, high), slice(int(own[0]), int(own[-1]) + 1) if is_span else own
