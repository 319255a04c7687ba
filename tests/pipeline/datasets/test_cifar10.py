"""The real CIFAR-10 from the registry's package against the official files; its readers on made files always."""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from pipeline.datasets import cifar10
from pipeline.datasets.cifar10 import BATCHES, CIFAR10, read_labels, read_records
from pipeline.datasets.fetch import Errand, UnreachableError
from store.errors import DataError
from tests.pipeline.datasets.conftest import whole

# Of the six files of the official binary version.
OFFICIAL = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}


@pytest.fixture
def real(cifar10_cache, images):
    return images("cifar10", f"cache={cifar10_cache}")


@pytest.fixture(scope="session")
def official_folder(cifar10_cache, tmp_path_factory) -> Path:
    """The rows in the form of the official binary files."""
    from pipeline.config import read_settings
    from pipeline.datasets.sources import source

    folder = tmp_path_factory.mktemp("official")
    real = source("cifar10", read_settings("quick", overrides=[f"cache={cifar10_cache}"]))
    for split, names in BATCHES.items():
        rows = whole(real, split)
        records = np.column_stack([rows.labels, rows.pixels])
        for number, name in enumerate(names):
            (folder / f"{name}.bin").write_bytes(records[number * 10_000 : (number + 1) * 10_000].tobytes())
    return folder


def test_it_is_the_official_one(real):
    train, test = whole(real, "train"), whole(real, "test")
    assert test.labels[:10].tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    assert train.labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert (train.pixels.shape, test.pixels.shape) == ((50_000, 3072), (10_000, 3072))
    assert np.bincount(train.labels).tolist() == [5_000] * 10
    assert np.bincount(test.labels).tolist() == [1_000] * 10
    by_channel = train.pixels.reshape(-1, 3, 1024).mean(axis=(0, 2)) / 255
    assert by_channel.tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4), "red, green, blue"


def test_its_rows_are_those_of_the_official_files_byte_for_byte(official_folder):
    found = {name: hashlib.sha256((official_folder / name).read_bytes()).hexdigest() for name in OFFICIAL}
    assert found == OFFICIAL


def test_the_official_files_give_the_same_rows(official_folder, images, tmp_path):
    images("cifar10", f"cifar10.path={official_folder}").fetch()  # their SHA-256 is compared
    (tmp_path / "cifar-10-batches-bin").symlink_to(official_folder)
    images("cifar10", f"cifar10.path={tmp_path}", f"cache={tmp_path / 'other'}").fetch()


def test_the_official_site_gives_the_same_rows(images, told, tmp_path):
    """Skipped where the site is out of reach; then the checksums of its files, above, stand for it."""
    site = CIFAR10.ways[0]
    try:
        folder = site.fetch(tmp_path, Errand(title="CIFAR-10", seconds=5, progress=told))
    except UnreachableError as error:
        pytest.skip(f"{site.what}: {error}")
    images("cifar10", f"cifar10.path={folder}").fetch()


def test_official_files_cut_in_half_are_refused(official_folder, images, tmp_path):
    for name in OFFICIAL:
        (tmp_path / name).symlink_to(official_folder / name)
    batch = (official_folder / "data_batch_3.bin").read_bytes()
    (tmp_path / "data_batch_3.bin").unlink()
    for size, sentence in (
        (len(batch) // 2, "data_batch_3.bin holds 5000 images, but 10000 are expected"),
        (len(batch) // 2 + 7, "data_batch_3.bin is cut off: image 5001 has 7 bytes of 3073"),
        (0, "data_batch_3.bin holds 0 images, but 10000 are expected"),
    ):
        (tmp_path / "data_batch_3.bin").write_bytes(batch[:size])
        with pytest.raises(DataError, match=sentence):
            images("cifar10", f"cifar10.path={tmp_path}").fetch()
    (tmp_path / "data_batch_3.bin").write_bytes(batch[:3073] + b"\x0a" + batch[3074:])
    with pytest.raises(DataError, match=r"data_batch_3.bin: image 2 has the label 10, outside 0..9"):
        images("cifar10", f"cifar10.path={tmp_path}").fetch()
    (tmp_path / "data_batch_3.bin").unlink()
    with pytest.raises(DataError, match=r"holds neither data_batch_1.bin.* nor cifar-10-binary.tar.gz"):
        images("cifar10", f"cifar10.path={tmp_path}").fetch()


@pytest.mark.parametrize("count", [1, 511, 512, 513, 1_500])
def test_binary_records_read_back(count):
    made = np.random.default_rng(count).integers(0, 256, (count, 3073), np.uint8)
    made[:, 0] %= 10
    blocks = list(read_records(io.BytesIO(made.tobytes()), name="f"))
    assert np.array_equal(np.concatenate([block.labels for block in blocks]), made[:, 0])
    assert np.array_equal(np.concatenate([block.pixels for block in blocks]), made[:, 1:])


@given(st.binary(max_size=40), st.integers(0, 1_100), st.integers(0, 3072))
def test_any_bytes_are_records_or_a_sentence(data, whole_records, more):
    content = (data + bytes(whole_records * 3073 + more))[: whole_records * 3073 + more]
    try:
        blocks = list(read_records(io.BytesIO(content), name="f"))
    except DataError:
        assert more or any(content[::3073][row] > 9 for row in range(whole_records))
        return
    assert sum(len(block.labels) for block in blocks) * 3073 == len(content)


@pytest.fixture
def pictures(tmp_path, monkeypatch) -> tuple[Path, np.ndarray]:
    """The package's form with 30 images a batch, and the images as batch, image, row, column, channel."""
    monkeypatch.setattr(cifar10, "BATCH_IMAGES", 30)
    monkeypatch.setattr(cifar10, "BLOCK_IMAGES", 7)
    made = np.random.default_rng(0).integers(0, 256, (6, 30, 32, 32, 3), np.uint8)
    for batch, name in zip(made, cifar10.NAMES, strict=True):
        Image.fromarray(batch.reshape(30, 1024, 3)).save(tmp_path / f"{name}.png")
    (tmp_path / "train_lables.json").write_text(json.dumps([row % 10 for row in range(150)]))
    (tmp_path / "test_lables.json").write_text(json.dumps([9 - row % 10 for row in range(30)]))
    return tmp_path, made


def test_pictures_become_channel_row_column(pictures):
    folder, made = pictures
    layout = CIFAR10.layouts[1]
    found = layout.find(folder)
    assert found is not None
    for split, batches in (("train", made[:5]), ("test", made[5:])):
        blocks = list(layout.read(found, split))
        pixels = np.concatenate([block.pixels for block in blocks]).reshape(-1, 3, 32, 32)
        assert np.array_equal(pixels, batches.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2))
    assert np.concatenate([block.labels for block in blocks]).tolist() == [9 - row % 10 for row in range(30)]


def test_pictures_and_labels_that_do_not_fit_are_refused(pictures):
    folder, _ = pictures
    layout = CIFAR10.layouts[1]
    found = layout.find(folder)
    assert found is not None
    (folder / "test_lables.json").write_text("[1, 2]")
    with pytest.raises(DataError, match=r"test_lables.json holds 2 labels, but 30 are expected"):
        list(layout.read(found, "test"))
    Image.fromarray(np.zeros((29, 1024, 3), np.uint8)).save(folder / "data_batch_2.png")
    with pytest.raises(DataError, match=r"data_batch_2.png is 1024 x 29 of .* expected is 1024 x 30"):
        list(layout.read(found, "train"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=60),
        st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists).map(
            lambda value: json.dumps(value).encode()
        ),
        st.just(b"[" * 100_000),
        st.just(b"[1" + b"0" * 10_000 + b"]"),
    )
)
def test_any_bytes_are_labels_or_a_sentence(tmp_path, data):
    (tmp_path / "labels.json").write_bytes(data)
    try:
        labels = read_labels(tmp_path / "labels.json")
    except DataError:
        return
    assert labels.tolist() == json.loads(data)
    assert all(0 <= label <= 9 for label in labels)


def test_a_list_of_labels_is_not_read_without_end(tmp_path):
    with (tmp_path / "labels.json").open("wb") as file:
        os.truncate(file.fileno(), 1 << 40)
    with pytest.raises(DataError, match=r"labels.json has more than 1048576 bytes"):
        read_labels(tmp_path / "labels.json")
