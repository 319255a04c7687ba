"""Records that a run did not measure: imported timings, and those of other runs. A file is published by one rename."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from report.merge import aligned, parquet
from store.errors import StoreError
from store.protocol import Store
from store.slug import slug

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "brought"


def bring(store: Store, run: str, name: str, records: pa.Table) -> None:
    """Into the directory of a run, all of it or nothing."""
    content = parquet(records)
    store.write(_place(run, name, content), content)


def is_brought(store: Store, run: str, name: str, records: pa.Table) -> bool:
    return store.exists(_place(run, name, parquet(records)))


def _place(run: str, name: str, content: bytes) -> str:
    return f"{run}/{FOLDER}/{slug(name, over=hashlib.sha256(content).hexdigest())}.parquet"


def brought(store: Store, run: str) -> Iterator[pa.Table]:
    """By name, so that the same files give the same report."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for entry in store.list(f"{run}/{FOLDER}"):
        path = f"{run}/{FOLDER}/{entry.name}"
        try:
            yield aligned(pq.read_table(io.BytesIO(store.read(path))))
        except pa.ArrowException as error:
            raise StoreError(
                f"{store.url}/{path} is damaged ({error}); remove it, and bring its records again"
            ) from None
