"""Names to sources, and sources to directories."""

import re

import pytest

from pipeline.datasets.sources import dataset_slug, source
from store.errors import SettingError


@pytest.mark.parametrize(
    "name", ["", "imagenet", "csv", "csv:", "parquet:", "synthetic", "synthetic:", "mnist:x", "../mnist", "cifar-10"]
)
def test_an_unknown_name_names_the_known_kinds(configured, name):
    with pytest.raises(
        SettingError, match=r"known are mnist, cifar10, .*, csv:PATH, parquet:PATH, synthetic:ROWSxCOLUMNSxCLASSES"
    ):
        source(name, configured())


def test_a_slug_is_a_path_segment_with_eight_digits(configured, tmp_path):
    (tmp_path / "Odd Näme.csv").write_bytes(b"1,0\n2,1\n")
    for name in ("mnist", "cifar10", "fashion-mnist", "synthetic:10x5x2", f"csv:{tmp_path}/Odd Näme.csv"):
        assert re.fullmatch(r"[a-z0-9._-]+-[0-9a-f]{8}", dataset_slug(source(name, configured()), configured()))


def test_whatever_makes_other_rows_makes_another_slug(configured, tmp_path):
    path = tmp_path / "own.csv"
    path.write_bytes(b"1,0\n2,1\n3,1\n")

    def of(name: str, *overrides: str) -> str:
        settings = configured(*overrides)
        return dataset_slug(source(name, settings), settings)

    own = f"csv:{path}"
    slugs = [
        of(own),
        of(own, "scale=pixel"),
        of(own, "csv.test_fraction=0.5"),
        of(own, "csv.split_seed=1"),
        of(own, "csv.classes=3"),
        of(own, "csv.maximum=9"),
        of("mnist"),
        of("mnist", "scale=pixel"),
        of("mnist", "csv.split_seed=1"),
        of("mnist", "mnist.train_rows=50000"),
        of("fashion-mnist"),
        of("cifar10"),
        of("synthetic:10x5x2"),
        of("synthetic:10x5x3"),
        of("synthetic:10x5x2", "csv.split_seed=1"),
    ]
    assert of(own, "csv.longest_line_bytes=2048", "mapreduce.runner=local") == slugs[0]
    path.write_bytes(b"1,0\n2,1\n4,1\n")
    slugs.append(of(own))
    assert len(set(slugs)) == len(slugs)
