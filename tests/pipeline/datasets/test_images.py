"""What holds for every image set, on a small made one: what is kept, what is checked, and where it is sought."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from pipeline.datasets import images as images_module
from pipeline.datasets.fetch import Archive, Errand, UnreachableError
from pipeline.datasets.images import Block, Images, ImageSet, Layout
from pipeline.datasets.sources import dataset_slug
from pipeline.settings import ImageSettings
from store.errors import DataError, StoreError
from tests.pipeline.datasets.conftest import whole

ROWS = {"train": 7, "test": 3}


def read(paths: Mapping[str, Path], split: str) -> Iterator[Block]:
    """A made form: four pixels and a label, again and again."""
    records = np.frombuffer(paths[f"{split}.raw"].read_bytes(), np.uint8).reshape(-1, 5)
    for start in range(0, len(records), 2):
        yield Block(records[start : start + 2, :4], records[start : start + 2, 4])


def records(count: int, seed: int = 0) -> np.ndarray:
    found = np.random.default_rng(seed).integers(0, 256, (count, 5), np.uint8)
    found[:, 4] %= 3
    return found


TRAIN, TEST = records(7), records(3, seed=1)
CONTENT = hashlib.sha256(
    TRAIN[:, :4].tobytes() + TRAIN[:, 4].tobytes() + TEST[:, :4].tobytes() + TEST[:, 4].tobytes()
).hexdigest()
MADE = ImageSet(
    name="made",
    title="Made",
    columns=4,
    classes=3,
    rows=ROWS,
    content=CONTENT,
    layouts=(Layout(files=("train.raw", "test.raw"), read=read, inside="raw"), Layout(files=("other",), read=read)),
    ways=(),
    advice="put its two files into a directory",
)


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "train.raw").write_bytes(TRAIN.tobytes())
    (folder / "test.raw").write_bytes(TEST.tobytes())
    return folder


@pytest.fixture
def made(tmp_path, told):
    def make(path: Path | None = None, *, train_rows: int | None = None, **changes: object) -> Images:
        settings = ImageSettings(path=path, source_seconds=1.0)
        declared = dataclasses.replace(MADE, **changes)
        return Images(declared, settings, cache=tmp_path / "cache", progress=told, train_rows=train_rows)

    return make


@pytest.mark.parametrize("cells", [1, 9, 1 << 20])
def test_rows_are_the_same_in_blocks_of_any_size(made, folder, monkeypatch, cells):
    monkeypatch.setattr(images_module, "BLOCK_CELLS", cells)
    images = made(folder)
    for split, expected in (("train", TRAIN), ("test", TEST)):
        found = whole(images, split)
        assert np.array_equal(found.pixels, expected[:, :4])
        assert np.array_equal(found.labels, expected[:, 4])
        lines = b"".join(images.rows(split)).splitlines()
        assert [list(map(int, line.split(b","))) for line in lines] == expected.tolist()


def test_fewer_rows_to_train_are_the_first_ones_and_another_dataset(made, folder, configured):
    few, all_of_them = made(folder, train_rows=5), made(folder)
    assert np.array_equal(whole(few, "train").pixels, TRAIN[:5, :4])
    assert np.array_equal(whole(few, "train").labels, TRAIN[:5, 4])
    assert np.array_equal(whole(few, "test").pixels, TEST[:, :4])
    assert (few.description().train_rows, few.description().test_rows) == (5, 3)
    assert dataset_slug(few, configured()) != dataset_slug(all_of_them, configured())
    assert few.fetch() == all_of_them.fetch()


def test_what_is_kept_needs_no_source_and_is_checked(made, folder):
    kept = made(folder).fetch()
    (folder / "train.raw").unlink()
    assert np.array_equal(whole(made(folder), "test").pixels, TEST[:, :4])
    content = bytearray(kept.read_bytes())
    for damaged in (bytes(content[:-1]), bytes(content) + b"x", bytes([content[0] ^ 1]) + bytes(content[1:]), b""):
        kept.write_bytes(damaged)
        with pytest.raises(DataError, match=r"own holds neither train.raw, test.raw nor other"):
            made(folder).fetch()
    (folder / "train.raw").write_bytes(TRAIN.tobytes())
    assert made(folder).fetch().read_bytes() == content
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_a_file_that_vanishes_while_it_is_read_is_a_sentence(made, folder):
    images = made(folder)
    images.fetch().unlink()
    with pytest.raises(DataError, match="was changed while it was read"):
        list(images.blocks("train"))


@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        (TRAIN[:6], "train is 7 images, but 6 are there"),
        (np.concatenate([TRAIN, TRAIN]), "train is 7 images, but more are there"),
        (np.where(np.arange(7)[:, None] == 4, 3, TRAIN), "image 5 of train has the label 3, outside 0..2"),
        (TRAIN[::-1], f"own is not Made: SHA-256 of pixels and labels is .*, not {CONTENT}"),
        (TRAIN[:0], "train is 7 images, but 0 are there"),
    ],
)
def test_what_is_not_the_set_is_not_kept(made, folder, tmp_path, train, sentence):
    (folder / "train.raw").write_bytes(np.ascontiguousarray(train, np.uint8).tobytes())
    with pytest.raises(DataError, match=sentence):
        made(folder).fetch()
    assert list((tmp_path / "cache" / "made").iterdir()) == []


def test_a_set_of_equal_classes_is_counted(made, folder):
    with pytest.raises(DataError, match="own is not Made: train has not as many images of each class"):
        made(folder, content=None, is_balanced=True).fetch()


def test_where_no_content_is_recorded_other_files_are_other_data(made, folder, configured):
    first = made(folder, content=None)
    assert first.description().checksum == CONTENT
    changed = TRAIN.copy()
    changed[0, 0] ^= 1
    (folder / "train.raw").write_bytes(changed.tobytes())
    second = made(folder, content=None)
    assert second.description().checksum != CONTENT
    assert np.array_equal(whole(second, "train").pixels, changed[:, :4])
    assert dataset_slug(first, configured()) != dataset_slug(second, configured())


def test_the_folder_of_the_official_archive_is_looked_into(made, folder, tmp_path):
    (tmp_path / "raw").symlink_to(folder)
    assert np.array_equal(whole(made(tmp_path), "train").pixels, TRAIN[:, :4])


def archive_of(folder: Path, place: Path) -> Archive:
    with tarfile.open(place, "w:gz") as archive:
        for name in ("train.raw", "test.raw"):
            member = tarfile.TarInfo(f"raw/{name}")
            member.size = (folder / name).stat().st_size
            archive.addfile(member, io.BytesIO((folder / name).read_bytes()))
    return Archive(
        name=place.name,
        checksum=hashlib.sha256(place.read_bytes()).hexdigest(),
        members={f"raw/{name}": name for name in ("train.raw", "test.raw")},
    )


def test_the_official_archive_will_do_and_no_other_one(made, folder, tmp_path):
    packed = tmp_path / "packed"
    packed.mkdir()
    archive = archive_of(folder, packed / "made.tar.gz")
    for path in (packed, packed / "made.tar.gz"):
        assert np.array_equal(whole(made(path, archive=archive), "train").pixels, TRAIN[:, :4])
        made(path, archive=archive).fetch().unlink()
    with (packed / "made.tar.gz").open("ab") as file:
        file.write(b"x")
    for path in (packed, packed / "made.tar.gz"):
        with pytest.raises(DataError, match=r"made.tar.gz is another file than that of the official site: .*SHA-256"):
            made(path, archive=archive).fetch()


def test_a_path_that_is_no_directory_is_named(made, tmp_path):
    with pytest.raises(DataError, match="nowhere is not a directory; put its two files"):
        made(tmp_path / "nowhere").fetch()


@dataclasses.dataclass(frozen=True)
class MadeWay:
    what: str
    folder: Path | None

    def fetch(self, folder: Path, errand: Errand) -> Path:
        if self.folder is None:
            raise UnreachableError("closed")
        return self.folder


def test_the_first_way_that_can_be_gone_is(made, folder, tmp_path, told):
    (tmp_path / "empty").mkdir()
    ways = (MadeWay("a", None), MadeWay("b", tmp_path / "empty"), MadeWay("c", folder), MadeWay("d", None))
    assert np.array_equal(whole(made(ways=ways), "train").pixels, TRAIN[:, :4])
    assert [line.partition(":")[0] for line in told.lines] == ["made"] * 2
    assert told.lines[0] == "made: a is passed over: closed"
    assert "made: b is passed over: " in told.lines[1]


def test_where_no_way_can_be_gone_each_is_named_and_what_to_do(made):
    with pytest.raises(
        DataError,
        match=r"^Made could not be fetched \(a: closed; b: closed\); put its two files into a directory and set "
        r"yarnstick.made.path to it$",
    ):
        made(ways=(MadeWay("a", None), MadeWay("b", None))).fetch()


def test_a_cache_that_cannot_be_written_is_not_taken_for_a_bad_source(made, folder, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(StoreError, match=r"made/.* cannot be written: .* \(yarnstick.cache\)"):
        made(ways=(MadeWay("a", folder),)).fetch()
