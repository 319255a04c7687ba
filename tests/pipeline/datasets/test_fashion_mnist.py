"""The real Fashion-MNIST, from its site or Debian's package; other images of the same form are not taken for it."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from store.errors import DataError
from tests.pipeline.datasets.conftest import whole


def test_it_is_the_official_one(fashion_mnist_cache, images):
    real = images("fashion-mnist", f"cache={fashion_mnist_cache}")
    train, test = whole(real, "train"), whole(real, "test")
    assert train.labels[:5].tolist() == [9, 0, 0, 3, 0]
    assert test.labels[:5].tolist() == [9, 2, 1, 1, 6]
    assert (train.pixels.shape, test.pixels.shape) == ((60_000, 784), (10_000, 784))
    assert np.bincount(train.labels).tolist() == [6_000] * 10
    assert train.pixels.mean() == pytest.approx(72.9404, abs=1e-4)


def test_other_files_of_the_same_form_are_refused(images, tmp_path):
    for start, count in (("train", 60_000), ("t10k", 10_000)):
        pixels = b"\0\0\x08\3" + struct.pack(">3I", count, 28, 28) + bytes(count * 784)
        (tmp_path / f"{start}-images-idx3-ubyte.gz").write_bytes(gzip.compress(pixels, 1))
        (tmp_path / f"{start}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\1" + struct.pack(">I", count) + bytes(count))
    with pytest.raises(DataError, match="is not Fashion-MNIST: SHA-256"):
        images("fashion-mnist", f"fashion-mnist.path={tmp_path}").fetch()
