"""Made rows: the same whatever the rest, and labels that a plain method learns."""

import numpy as np
import pytest

from pipeline.datasets import synthetic
from pipeline.datasets.synthetic import Synthetic
from store.errors import SettingError


def read(source: Synthetic, split: str) -> np.ndarray:
    text = b"".join(source.rows(split))
    return np.array([line.split(b",") for line in text.splitlines()], int)


def test_as_many_rows_as_asked_and_a_fifth_to_test(configured):
    source = Synthetic("synthetic:5003x7x3", configured())
    train, test = read(source, "train"), read(source, "test")
    assert (train.shape, test.shape) == ((5003, 8), (1000, 8))
    for part in (train, test):
        assert part[:, :-1].min() >= 0
        assert part[:, :-1].max() <= 255
        assert set(part[:, -1]) == {0, 1, 2}
    described = source.description()
    assert (described.train_rows, described.test_rows, described.columns, described.classes) == (5003, 1000, 7, 3)


def test_a_row_does_not_depend_on_how_many_there_are(configured):
    few, many = (read(Synthetic(f"synthetic:{rows}x5x2", configured()), "train") for rows in (10, 9000))
    assert np.array_equal(few, many[:10])


def test_the_seed_decides(configured):
    one, same = (read(Synthetic("synthetic:9x5x2", configured()), "train") for _ in range(2))
    other = Synthetic("synthetic:9x5x2", configured("csv.split_seed=1"))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, read(other, "train"))
    assert other.description().checksum != Synthetic("synthetic:9x5x2", configured()).description().checksum


def test_the_labels_can_be_learned(configured):
    source = Synthetic("synthetic:2000x30x5", configured())
    train, test = read(source, "train"), read(source, "test")
    centers = np.array([train[train[:, -1] == label, :-1].mean(axis=0) for label in range(5)])
    distances = ((test[:, None, :-1] - centers) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == test[:, -1]).mean() > 0.95


def test_it_streams(configured):
    batches = Synthetic("synthetic:2000000000x2x2", configured()).rows("train")
    assert next(batches).count(b"\n") == synthetic.BLOCK_ROWS


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("synthetic:10x5", "write synthetic:ROWSxCOLUMNSxCLASSES"),
        ("synthetic:-1x5x2", "write synthetic:ROWSxCOLUMNSxCLASSES"),
        ("synthetic:٣x5x2", "write synthetic:ROWSxCOLUMNSxCLASSES"),
        ("synthetic:0x5x2", "0 rows; 1 to 2147483647 are possible"),
        ("synthetic:10x0x2", "0 columns; 1 to 100000 are possible"),
        ("synthetic:10x5x1", "1 classes; 2 to 1000 are possible"),
    ],
)
def test_a_name_that_makes_no_sense_is_refused(configured, name, sentence):
    with pytest.raises(SettingError, match=sentence):
        Synthetic(name, configured())
