"""From a source to CSV in the store: whole rows in parts of about the same size, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import msgspec

from pipeline.datasets.sources import SPLITS, Source
from store.errors import DataError
from store.manifest import MANIFEST
from store.protocol import Store
from store.publish import Staging

PART_BYTES = 64 << 20


def ingest(source: Source, store: Store, slug: str) -> None:
    """Publish `data/<slug>/csv/{train,test}`, both after all of it was written."""
    described = source.description()
    facts = {"name": source.name, **msgspec.to_builtins(described)}
    rows = {"train": facts.pop("train_rows"), "test": facts.pop("test_rows")}
    with ExitStack() as stack:
        stagings = []
        for split in SPLITS:
            path = f"data/{slug}/csv/{split}"
            if store.exists(f"{path}/{MANIFEST}"):
                continue
            staging = stack.enter_context(Staging(store, path))
            written = _write(source.rows(split), staging)
            if written != rows[split]:
                raise DataError(f"{source.name} has {written} rows to {split}, but {rows[split]} are expected")
            stagings.append(staging)
        for staging in stagings:
            staging.commit(**facts)


def _write(batches: Iterator[bytes], staging: Staging) -> int:
    total = 0
    batch = next(batches, None)
    number = 0
    while batch is not None:
        with staging.create(f"part-{number:05d}") as part:
            while batch is not None and part.tell() < PART_BYTES:
                part.write(batch)
                part.rows += batch.count(b"\n")
                batch = next(batches, None)
        total += part.rows
        number += 1
    return total
