"""From normalized CSV to Parquet: bytes where they stand for every value exactly, else float32."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mapreduce.ahead import ahead
from mapreduce.rows import Batch, Declared, Origin, parse, read_batches
from mapreduce.scaling import Scaling
from models.dataset import Dataset
from pipeline.datasets.part_writer import Group, PartWriter
from pipeline.datasets.sources import SPLITS
from pipeline.settings import Settings
from store.errors import DataError
from store.manifest import Manifest, read_manifest
from store.protocol import Store
from store.publish import Staging

GROUP_ROWS = 8192
GROUP_BYTES = GROUP_ROWS * 784  # wider rows than those of MNIST make smaller groups: memory is that of a few groups
PART_BYTES = 256 << 20  # of rows before they are compressed
SPAN = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """(byte - offset) / divisor is the value: one of each for all columns, or one for each."""

    offset: NDArray[np.float64]
    divisor: NDArray[np.float64]

    @classmethod
    def of(cls, scaling: Scaling) -> Bytes | None:
        """What fits the whole numbers that train has; None where there are none, or too many different ones."""
        minimum, span = scaling.minimum, scaling.span
        if (minimum % 1).any() or (span % 1).any() or (span > SPAN).any() or (np.abs(minimum) > 2**52).any():
            return None
        # A byte is the number itself if that is possible: test may hold numbers that train does not.
        is_byte = (minimum >= 0) & (minimum + span <= SPAN)
        room = (SPAN - span) // 2
        return cls(offset=np.where(is_byte, minimum, room), divisor=np.where(span == 0, 1.0, span))

    def packed(self, values: NDArray[Any]) -> NDArray[np.uint8] | None:
        """None where not every value is met exactly."""
        numbers = np.rint(values * self.divisor + self.offset)
        if numbers.min() < 0 or numbers.max() > SPAN:
            return None
        packed = numbers.astype(np.uint8)
        numbers -= self.offset
        numbers /= self.divisor
        return np.ascontiguousarray(packed) if np.array_equal(numbers, values) else None


class _NotExactError(Exception):
    """A value that no byte stands for."""


def pack(store: Store, slug: str, settings: Settings) -> None:
    """Publish `data/<slug>/packed/{train,test}`, both after all of it was written."""
    scaling = Scaling.of(json.loads(store.read(f"data/{slug}/range.json")), scale=settings.main.scale)
    code = Bytes.of(scaling)
    try:
        _pack(store, slug, settings, code)
    except _NotExactError:
        _pack(store, slug, settings, None)


def open_dataset(store: Store, slug: str, name: str) -> Dataset:
    """The packed dataset under local paths, its files checked against the manifests."""
    paths = {split: f"data/{slug}/packed/{split}" for split in SPLITS}
    manifests = {split: read_manifest(store, path) for split, path in paths.items()}
    facts = manifests["train"].facts
    if facts != manifests["test"].facts:
        raise DataError(f"{store.url}/data/{slug}/packed: train and test do not belong together; remove both")
    return Dataset(
        name=name,
        train=_local(store, paths["train"], manifests["train"]),
        test=_local(store, paths["test"], manifests["test"]),
        columns=facts["columns"],
        classes=facts["classes"],
        dtype=facts["dtype"],
        offset=tuple(facts["offset"]),
        divisor=tuple(facts["divisor"]),
        train_rows=manifests["train"].rows,
        test_rows=manifests["test"].rows,
        split_seed=facts["split_seed"],
        train_part_rows=tuple(part.rows for part in manifests["train"].parts),
    )


def _local(store: Store, path: str, manifest: Manifest) -> tuple[str, ...]:
    return tuple(str(store.local(f"{path}/{part.name}")) for part in manifest.parts)


def _pack(store: Store, slug: str, settings: Settings, code: Bytes | None) -> None:
    with ExitStack() as stack:
        finished = []
        for split in SPLITS:
            path = f"data/{slug}/normalized/{split}"
            manifest = read_manifest(store, path)
            staging = stack.enter_context(Staging(store, f"data/{slug}/packed/{split}"))
            _write(_packed(store, path, manifest, code), staging, width=_width(manifest, code))
            finished.append((staging, manifest))
        for staging, manifest in finished:
            staging.commit(
                name=manifest.facts["name"],
                columns=manifest.facts["columns"],
                classes=manifest.facts["classes"],
                labels=manifest.facts["labels"],
                dtype="uint8" if code else "float32",
                offset=code.offset.tolist() if code else [0.0],
                divisor=code.divisor.tolist() if code else [1.0],
                split_seed=settings.csv.split_seed,
            )


def _width(manifest: Manifest, code: Bytes | None) -> int:
    """The bytes of a row."""
    return int(manifest.facts["columns"]) * (1 if code else 4)


def _packed(store: Store, path: str, manifest: Manifest, code: Bytes | None) -> Iterator[Group]:
    """Rows as the bytes they are kept in, and their labels."""
    declared = Declared(columns=manifest.facts["columns"], classes=manifest.facts["classes"])

    def packed(batch: Batch) -> Group:
        rows = parse(batch, declared)
        if code is None:
            with np.errstate(over="ignore"):
                values = np.ascontiguousarray(rows.features, np.float32)
            if not np.isfinite(values).all():
                raise DataError(f"{batch.where(0)} and after: a value is too large for a float32")
            return values.view(np.uint8), rows.labels
        exact = code.packed(rows.features)
        if exact is None:
            raise _NotExactError
        return exact, rows.labels

    return ahead(packed, _lines(store, path, manifest))


def _lines(store: Store, path: str, manifest: Manifest) -> Iterator[Batch]:
    for part in manifest.parts:
        name = f"{path}/{part.name}"
        with store.open(name) as file:
            yield from read_batches(file, origin=Origin(name=f"{store.url}/{name}"))


def _write(rows: Iterator[Group], staging: Staging, *, width: int) -> None:
    """Parts of whole row groups, all groups but the last of the same size."""
    group_rows = max(1, min(GROUP_ROWS, GROUP_BYTES // width))
    groups = _groups(rows, group_rows)
    for number in itertools.count():
        part_groups = itertools.islice(groups, max(1, PART_BYTES // (group_rows * width)))
        first = next(part_groups, None)
        if first is None:
            return
        with (
            staging.create(f"part-{number:05d}.parquet") as part,
            PartWriter(part, width=width) as writer,
        ):
            for group in itertools.chain([first], part_groups):
                writer.write(group)
                part.rows += len(group[1])


def _groups(rows: Iterator[Group], group_rows: int) -> Iterator[Group]:
    """The same rows in groups of one size; the last one may be smaller."""
    waiting: list[Group] = []
    count = 0
    for features, labels in rows:
        waiting.append((features, labels))
        count += len(labels)
        if count >= group_rows:
            features, labels = _joined(waiting)
            whole = count - count % group_rows
            for start in range(0, whole, group_rows):
                yield features[start : start + group_rows], labels[start : start + group_rows]
            waiting, count = [(features[whole:].copy(), labels[whole:])], count - whole
    if count:
        yield _joined(waiting)


def _joined(
    waiting: list[Group],
) -> Group:
    return np.concatenate([features for features, _ in waiting]), np.concatenate([labels for _, labels in waiting])
