"""Where a dataset comes from: one file per kind, one line in the factory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, get_args

from pipeline.datasets.progress import Progress
from pipeline.settings import Settings
from store.errors import SettingError
from store.slug import slug

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
REAL = ("mnist", "cifar10", "fashion-mnist", "emnist")
KNOWN = (*REAL, "csv:PATH", "parquet:PATH", "synthetic:ROWSxCOLUMNSxCLASSES")


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What is known of a dataset before it is ingested."""

    columns: int  # features, without the label
    classes: int
    train_rows: int
    test_rows: int
    checksum: str  # SHA-256 of the content, or of what it is generated from
    pixel_range: tuple[float | None, float | None]  # what a feature may hold; None is no limit
    labels: tuple[str, ...] | None = None  # of text labels: the n-th is the text of class n


class Source(Protocol):
    name: str

    def description(self) -> Description:
        """May be asked at any time. For a csv the first time is a pass over the files."""
        ...

    def declaration(self) -> dict[str, object]:
        """The settings that the rows depend on."""
        ...

    def fetch(self) -> Path | str | None:
        """Have all of it here, checked; where that is, if it is anywhere."""
        ...

    def rows(self, split: Split) -> Iterator[bytes]:
        """The rows as CSV in batches of whole lines: the label last, lines ended by a newline."""
        ...


def source(name: str, settings: Settings, *, progress: Progress | None = None) -> Source:
    """The source of a dataset's name."""
    progress = progress or Progress()
    kind, _, rest = name.partition(":")
    if name in REAL:
        return _images(name, settings, progress)
    if kind == "csv" and rest:
        from pipeline.datasets.csv_files import CsvFiles

        return CsvFiles(rest, settings, progress=progress)
    if kind == "parquet" and rest:
        from pipeline.datasets.parquet_files import ParquetFiles

        return ParquetFiles(rest, settings, progress=progress)
    if kind == "synthetic" and rest:
        from pipeline.datasets.synthetic import Synthetic

        return Synthetic(name, settings)
    raise SettingError(f"dataset {name!r} is not known; known are {', '.join(KNOWN)}")


def _images(name: str, settings: Settings, progress: Progress) -> Source:
    from pipeline.datasets.cifar10 import CIFAR10
    from pipeline.datasets.emnist import EMNIST
    from pipeline.datasets.fashion_mnist import FASHION_MNIST
    from pipeline.datasets.images import Images
    from pipeline.datasets.mnist import MNIST

    declared = {each.name: each for each in (MNIST, CIFAR10, FASHION_MNIST, EMNIST)}[name]
    own = {
        "mnist": settings.mnist,
        "cifar10": settings.cifar10,
        "fashion-mnist": settings.fashion_mnist,
        "emnist": settings.emnist,
    }[name]
    train_rows = settings.mnist.train_rows if name == "mnist" else None
    return Images(declared, own, cache=settings.main.cache, progress=progress, train_rows=train_rows)


def dataset_slug(source: Source, settings: Settings) -> str:
    """The name of a dataset's directory: another one for everything that makes other rows."""
    identity = {
        "name": source.name,
        "declaration": source.declaration(),
        "scale": settings.main.scale,
        "split_seed": settings.csv.split_seed,
        "checksum": source.description().checksum,
    }
    return slug(source.name, over=json.dumps(identity, sort_keys=True))
