"""A vendor's Spark is taken as a whole, or refused with the part that is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from models.spark_home import checked_home, own_home, python_path
from store.errors import SettingError
from tests.models.vendor_spark import VERSION, vendor_spark

TELL = "import py4j, pyspark; print(pyspark.__version__, pyspark.__file__, py4j.__file__)"


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return vendor_spark(tmp_path_factory.mktemp("vendor") / "spark")


@pytest.fixture
def home(vendor: Path, tmp_path: Path) -> Path:
    """One that a test may break."""
    shutil.copytree(vendor, tmp_path / "spark", symlinks=True)
    return tmp_path / "spark"


def told(home: Path) -> list[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(python_path(home))}
    return subprocess.run(
        [sys.executable, "-P", "-c", TELL], env=environment, check=True, capture_output=True, text=True
    ).stdout.split()


def test_its_own_python_comes_first(home: Path) -> None:
    version, pyspark, py4j = told(checked_home(home))
    assert version == VERSION
    assert Path(pyspark) == home / "python" / "pyspark" / "__init__.py"
    assert Path(py4j).is_relative_to(home / "python" / "lib")


def test_a_home_with_nothing_but_archives_does(home: Path) -> None:
    shutil.rmtree(home / "python" / "pyspark")
    version, pyspark, _ = told(checked_home(home))
    assert version == VERSION
    assert Path(pyspark).is_relative_to(home / "python" / "lib" / "pyspark.zip")


def test_that_of_pip_is_one_too() -> None:
    assert checked_home(own_home()) == own_home()
    version, *_ = told(own_home())
    assert version != VERSION


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("jars", "has no jars/*.jar; give"),
        ("bin", "has no bin/spark-submit; give"),
        ("python", "has no python/pyspark with python/lib/py4j-*.zip, and another Spark's would not do"),
        ("python/lib", "has no python/pyspark with python/lib/py4j-*.zip, and another Spark's would not do"),
        (".", "is no directory; give"),
    ],
)
def test_a_part_that_is_missing_is_named(home: Path, missing: str, said: str) -> None:
    path = home / missing
    path.unlink() if path.is_symlink() else shutil.rmtree(path)
    with pytest.raises(SettingError) as raised:
        checked_home(home)
    assert str(raised.value).startswith(f"yarnstick.spark.home = {home} {said}")
