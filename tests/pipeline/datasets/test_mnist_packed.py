"""The whole way of the real MNIST: normalized by study A's rule, packed as the bytes it came from."""

import json

import numpy as np

from pipeline.datasets.ingest import ingest
from pipeline.datasets.normalize import find_range, normalize
from pipeline.datasets.pack import open_dataset, pack
from pipeline.datasets.sources import source
from tests.pipeline.datasets.conftest import whole


def test_mnist_is_packed_as_its_own_bytes(mnist_cache, configured, store, told):
    settings = configured(f"cache={mnist_cache}")
    mnist = source("mnist", settings, progress=told)
    ingest(mnist, store, "m")
    find_range(store, "m", settings)
    normalize(store, "m", settings)
    pack(store, "m", settings)
    digits = {split: whole(mnist, split) for split in ("train", "test")}
    found = json.loads(store.read("data/m/range.json"))
    train = digits["train"].pixels
    assert found == {"rows": 60_000, "minimum": train.min(axis=0).tolist(), "maximum": train.max(axis=0).tolist()}
    assert found["minimum"].count(0) == 784
    assert sum(high == 0 for high in found["maximum"]) == 67
    dataset = open_dataset(store, "m", "mnist")
    assert (dataset.dtype, dataset.offset, dataset.divisor) == ("uint8", (0.0,), (255.0,))
    for split, (pixels, labels) in (("train", dataset.read_train(1.0)), ("test", dataset.read_test())):
        assert np.array_equal(pixels, digits[split].pixels)
        assert np.array_equal(labels, digits[split].labels)
    with store.open("data/m/normalized/train/part-00000") as file:
        first = file.readline().rstrip().split(b",")
    expected = [repr(pixel / 255).removesuffix(".0") for pixel in train[0].tolist()]
    assert first == [cell.encode() for cell in [*expected, "5"]]
