"""A group read where it stands in its file is the group that Arrow decodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from models.row_groups import ROOMS, RowGroups
from pipeline.datasets.part_writer import PartWriter

COLUMNS, ROWS, GROUPS = 12, 300, 3
Rows = list[tuple[int, NDArray[np.generic], NDArray[np.int64]]]


def part(folder: Path, *, values: int = 256, dtype: str = "uint8") -> Path:
    """Of values that are below that many: few make few bytes when compressed."""
    random = np.random.default_rng(0)
    path = folder / "part.parquet"
    with PartWriter(path, width=COLUMNS * np.dtype(dtype).itemsize) as writer:
        for rows in [ROWS] * (GROUPS - 1) + [ROWS // 2]:
            features = random.integers(0, values, (rows, COLUMNS)).astype(dtype)
            writer.write((features.view(np.uint8), random.integers(0, 10, rows)))
    return path


def compression(path: Path) -> str:
    kept: str = pq.ParquetFile(path).metadata.row_group(0).column(0).compression
    return kept


def every(first: int, rows: int) -> bool:
    return True


def rows(groups: RowGroups, path: Path) -> Rows:
    return [(first, block.copy(), labels.copy()) for first, (block, labels) in groups.read(str(path), every)]


def expected(path: Path, dtype: str) -> Rows:
    table = pq.read_table(path)
    values = np.frombuffer(b"".join(table["features"].to_pylist()), dtype).reshape(-1, COLUMNS)
    labels = np.array(table["label"].to_pylist())
    return [(at, values[at : at + ROWS], labels[at : at + ROWS]) for at in range(0, len(labels), ROWS)]


def same(some: Rows, others: Rows) -> bool:
    return len(some) == len(others) and all(
        one[0] == other[0] and np.array_equal(one[1], other[1]) and np.array_equal(one[2], other[2])
        for one, other in zip(some, others, strict=True)
    )


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The groups that Arrow decodes."""
    numbers: list[int] = []
    read = pq.ParquetFile.read_row_group

    def counted(self: pq.ParquetFile, number: int, **given: object) -> object:
        numbers.append(number)
        return read(self, number, **given)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
    return numbers


def test_what_compression_makes_hardly_smaller_is_kept_as_it_is(tmp_path: Path) -> None:
    assert compression(part(tmp_path)) == "UNCOMPRESSED"
    assert compression(part(tmp_path, values=8)) == "ZSTD"


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(("values", "passes_decoded"), [(256, 1), (8, 3)])
def test_each_pass_reads_the_same_rows(
    tmp_path: Path, decoded: list[int], dtype: str, values: int, passes_decoded: int
) -> None:
    path = part(tmp_path, values=values, dtype=dtype)
    if dtype == "float32":
        passes_decoded = 3  # the zeros of whole numbers compress well
    groups = RowGroups(dtype, COLUMNS, again=True)
    wanted = expected(path, dtype)
    for _ in range(3):
        assert same(rows(groups, path), wanted)
    assert decoded == list(range(GROUPS)) * passes_decoded
    assert groups.rows(str(path)) == ROWS * (GROUPS - 1) + ROWS // 2


def test_a_group_is_good_until_so_many_others_were_read(tmp_path: Path) -> None:
    path = part(tmp_path)
    groups = RowGroups("uint8", COLUMNS, again=True)
    wanted = expected(path, "uint8")
    rows(groups, path)
    kept = [block for _, (block, _) in groups.read(str(path), every)]
    assert ROOMS >= GROUPS == len(kept)
    assert all(np.array_equal(block, known) for block, (_, known, _) in zip(kept, wanted, strict=True))


def test_read_once_a_group_keeps_its_memory(tmp_path: Path, decoded: list[int]) -> None:
    path = part(tmp_path)
    groups = RowGroups("uint8", COLUMNS)
    for _ in range(2):
        rows(groups, path)
    assert decoded == list(range(GROUPS)) * 2


def test_a_part_that_is_cut_off_between_passes_is_told(tmp_path: Path) -> None:
    """Its end is that of another, so that it has a footer: only the rows are missing."""
    path = part(tmp_path)
    groups = RowGroups("uint8", COLUMNS, again=True)
    rows(groups, path)
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    path.write_bytes(whole[:100] + whole[-footer:])
    with pytest.raises((OSError, ValueError)):
        rows(groups, path)


def test_a_changed_byte_is_found_in_the_first_pass(tmp_path: Path) -> None:
    path = part(tmp_path)
    whole = bytearray(path.read_bytes())
    whole[200] ^= 1
    path.write_bytes(whole)
    with pytest.raises(OSError, match="CRC"):
        rows(RowGroups("uint8", COLUMNS, again=True), path)
