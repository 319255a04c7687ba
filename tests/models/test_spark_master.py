"""Where executors of this machine read their rows: all of them, or nothing is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from models import spark_master
from models.dataset import Dataset
from models.spark_master import LocalCluster
from models.vectors import write_vectors
from tests.models.made import packed, spec, surroundings


def breaks_off(data: Dataset, *, create: Callable[[str], Any], **about: Any) -> None:
    def opened(name: str) -> Any:
        if name.endswith("1.parquet"):
            raise OSError("no space left")
        return create(name)

    write_vectors(data, create=opened, **about)


def test_rows_of_a_writing_that_broke_off_are_not_taken_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, trial = packed(tmp_path / "data"), spec("mllib")
    master = LocalCluster(surroundings(tmp_path / "session"))
    with monkeypatch.context() as patched:
        patched.setattr(spark_master, "write_vectors", breaks_off)
        with pytest.raises(OSError, match="no space left"):
            master.rows(trial, data)
    assert list((tmp_path / "session").iterdir()) == []
    url = master.rows(trial, data)
    assert ds.dataset(url).count_rows() == data.train_rows
    assert master.rows(trial, data) == url
