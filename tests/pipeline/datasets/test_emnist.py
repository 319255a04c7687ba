"""EMNIST's digits: the real ones where they can be had, and files of the same form that stand on their side."""

from __future__ import annotations

import gzip
import re
import struct

import numpy as np
import pytest

from store.errors import DataError
from tests.pipeline.datasets.conftest import whole

COUNTS = {"train": 240_000, "test": 40_000}


@pytest.fixture(scope="module")
def made_folder(tmp_path_factory):
    """As large as the real set: the first row of each image, and so its first column in the file, says which it is."""
    folder = tmp_path_factory.mktemp("emnist")
    for split, count in COUNTS.items():
        numbers = np.arange(count)
        pixels = np.zeros((count, 28, 28), np.uint8)
        pixels[:, 0, 0], pixels[:, 1, 0], pixels[:, 2, 0] = numbers % 251, numbers // 251 % 251, numbers // 251 // 251
        header = b"\0\0\x08\3" + struct.pack(">3I", count, 28, 28)
        (folder / f"emnist-digits-{split}-images-idx3-ubyte").write_bytes(header + pixels.tobytes())
        labels = b"\0\0\x08\1" + struct.pack(">I", count) + (numbers % 10).astype(np.uint8).tobytes()
        (folder / f"emnist-digits-{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    return folder


def test_images_are_brought_upright(made_folder, images):
    made = images("emnist", f"emnist.path={made_folder}")
    assert (made.description().train_rows, made.description().test_rows) == (240_000, 40_000)
    first = 0
    for block in made.blocks("train"):
        rows = block.pixels.reshape(-1, 28, 28)[:, 0, :3].astype(int)
        assert np.array_equal(rows @ [1, 251, 251 * 251], np.arange(first, first + len(rows)))
        assert not block.pixels[:, 3:].any()
        first += len(rows)
    assert first == 240_000


def test_classes_that_are_not_even_are_not_emnist(made_folder, images, tmp_path):
    for path in made_folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    labels = tmp_path / "emnist-digits-test-labels-idx1-ubyte.gz"
    content = bytearray(gzip.decompress(labels.read_bytes()))
    content[8] = 7
    labels.unlink()
    labels.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=r"is not EMNIST \(digits\): test has not as many images of each class"):
        images("emnist", f"emnist.path={tmp_path}").fetch()


def test_another_archive_of_that_name_is_refused(images, tmp_path):
    (tmp_path / "gzip.zip").write_bytes(b"PK\3\4")
    with pytest.raises(DataError, match=r"gzip.zip is another file than that of the official site: .*not fb9bb67e"):
        images("emnist", f"emnist.path={tmp_path}").fetch()


def test_where_the_site_is_out_of_reach_the_way_out_is_said(images, monkeypatch):
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": "http://127.0.0.1:9"})
    with pytest.raises(DataError) as caught:
        images("emnist", "emnist.source_seconds=1").fetch()
    assert re.fullmatch(
        r"EMNIST \(digits\) could not be fetched \(the official site .*\); put https://\S+/gzip.zip, or its four files "
        r"of emnist-digits, into a directory and set yarnstick.emnist.path to it",
        str(caught.value),
    )


def test_it_is_the_official_one(emnist_cache, images):
    """The official site is its only source: where it is out of reach, this is skipped."""
    real = images("emnist", f"cache={emnist_cache}")
    test = whole(real, "test")
    assert test.pixels.shape == (40_000, 784)
    assert np.bincount(test.labels).tolist() == [4_000] * 10
    upright = test.pixels[test.labels == 1].reshape(-1, 28, 28).mean(axis=0)
    assert upright.sum(axis=0).max() > 2 * upright.sum(axis=1).max(), "a one stands"
