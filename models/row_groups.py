"""Row groups of packed rows in Parquet: decoded by Arrow, and from the second pass on read from where they stand.

Rows that are not compressed stand in a file as they are. Arrow copies each three times to decode it; what reads them
into memory that the processor's cache holds already leaves more of that cache to arithmetic (docs/findings.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import FileIO

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from models.read_ahead import AHEAD

FEATURES, LABEL = "features", "label"
ROOMS = AHEAD + 1  # one is in use, the others are read

Block = tuple[NDArray[np.generic], NDArray[np.int64]]
Wanted = Callable[[int, int], bool]  # the number of a group's first row in its part, and its rows


class RowGroups:
    """Of parts of one form. The checksums of pages are verified once: that takes longer than the rest of reading."""

    def __init__(self, dtype: str, columns: int, *, again: bool = False) -> None:
        """To be read again, pass after pass: a group is good until `ROOMS` others were read, as its room is reused."""
        self._dtype = np.dtype(dtype)
        self._columns = columns
        self._again = again
        self._verified: dict[str, int] = {}  # parts, and their rows
        self._places: dict[tuple[str, int], tuple[_Place, _Place]] = {}
        self._rooms = [np.empty(0, np.uint8)] * ROOMS
        self._read = 0

    def read(self, path: str, wanted: Wanted) -> Iterator[tuple[int, Block]]:
        """With the number of their first row in the part; not to be written to."""
        verifies = path not in self._verified
        with (
            FileIO(path) as bare,
            pq.ParquetFile(path, memory_map=not self._again, page_checksum_verification=verifies) as file,
        ):
            first = 0
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                if wanted(first, group.num_rows):
                    places = self._places.get((path, number))
                    if places is not None:
                        yield first, self._as_it_stands(bare, places)
                    else:
                        block = self._decoded(file, number)
                        if self._again and verifies:
                            self._look(bare, path, number, group, block)
                        yield first, block
                first += group.num_rows
        self._verified[path] = first

    def rows(self, path: str) -> int:
        """Of a part that was read."""
        return self._verified[path]

    def _decoded(self, file: pq.ParquetFile, number: int) -> Block:
        table = file.read_row_group(number, use_threads=False).combine_chunks()
        packed = table[FEATURES].chunk(0)
        width = packed.type.byte_width
        block = np.frombuffer(packed.buffers()[1], np.uint8, len(packed) * width, packed.offset * width)
        # to_numpy would import pandas, which takes longer than reading.
        labels = np.from_dlpack(table[LABEL].chunk(0)).astype(np.int64, copy=False)
        return self._formed(block), labels

    def _look(self, bare: FileIO, path: str, number: int, group: pq.RowGroupMetaData, block: Block) -> None:
        """Whether the group's values end their columns in the file, as they are; if so, where."""
        chunks = {group.column(each).path_in_schema: group.column(each) for each in range(group.num_columns)}
        places = []
        for name, values in zip((FEATURES, LABEL), block, strict=True):
            chunk = chunks[name]
            place = _Place(chunk.data_page_offset + chunk.total_compressed_size - values.nbytes, values.nbytes)
            found = np.empty(values.nbytes, np.uint8)
            if place.start < chunk.data_page_offset or not place.fills(bare, found):
                return
            if not np.array_equal(found, values.reshape(-1).view(np.uint8)):
                return
            places.append(place)
        self._places[path, number] = places[0], places[1]

    def _as_it_stands(self, bare: FileIO, places: tuple[_Place, _Place]) -> Block:
        self._read += 1
        need, turn = sum(place.bytes for place in places), self._read % ROOMS
        if len(self._rooms[turn]) < need:
            self._rooms[turn] = np.empty(need, np.uint8)
        features, labels = np.split(self._rooms[turn][:need], [places[0].bytes])
        if not (places[0].fills(bare, features) and places[1].fills(bare, labels)):
            raise OSError("it ends before its rows do")
        return self._formed(features), labels.view(np.int64)

    def _formed(self, block: NDArray[np.uint8]) -> NDArray[np.generic]:
        return block.view(self._dtype).reshape(-1, self._columns)


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    bytes: int

    def fills(self, bare: FileIO, room: NDArray[np.uint8]) -> bool:
        bare.seek(self.start)
        return bare.readinto(room.data) == self.bytes
