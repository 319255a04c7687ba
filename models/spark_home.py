"""Which Spark runs: PySpark's own, or a vendor's, of which the Python side must be its own too."""

from __future__ import annotations

from pathlib import Path

from store.errors import SettingError


def checked_home(home: Path) -> Path:
    """SettingError where a part is missing that our processes need."""
    complaint = f"yarnstick.spark.home = {home}"
    if not home.is_dir():
        raise SettingError(f"{complaint} is no directory; give the one in which a Spark has bin, jars and python")
    if not any((home / "jars").glob("*.jar")):
        raise SettingError(f"{complaint} has no jars/*.jar; give the one in which a Spark has bin, jars and python")
    if not (home / "bin" / "spark-submit").is_file():
        raise SettingError(f"{complaint} has no bin/spark-submit; give the directory of a whole Spark")
    if _pyspark(home) is None or _py4j(home) is None:
        raise SettingError(
            f"{complaint} has no python/pyspark with python/lib/py4j-*.zip, and another Spark's would not do; have the "
            f"vendor's package for Python installed, or leave the setting empty for PySpark's own Spark"
        )
    return home


def python_path(home: Path) -> list[str]:
    """What comes before all other PySparks, as the home's own bin/pyspark has it."""
    return [str(path) for path in (_pyspark(home), _py4j(home)) if path is not None]


def own_home() -> Path:
    """PySpark's, as pip installs it: its jars lie within the package."""
    import pyspark

    return Path(str(pyspark.__file__)).parent


def _pyspark(home: Path) -> Path | None:
    python = home / "python"
    packed = python / "lib" / "pyspark.zip"
    return python if (python / "pyspark" / "__init__.py").is_file() else packed if packed.is_file() else None


def _py4j(home: Path) -> Path | None:
    return max((home / "python" / "lib").glob("py4j-*.zip"), default=None)
