"""A Spark as a vendor installs it, made of PySpark's: bin, jars and python, whose version tells it apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyspark

VERSION = "4.3.0+vendor"


def vendor_spark(home: Path) -> Path:
    own = Path(str(pyspark.__file__)).parent
    python = home / "python"
    (python / "lib").mkdir(parents=True)
    for name in ("bin", "jars"):
        (home / name).symlink_to(own / name)
    for source in (path for path in own.rglob("*") if path.suffix in (".py", ".json")):
        target = python / "pyspark" / source.relative_to(own)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    version = python / "pyspark" / "version.py"
    version.write_text(f"__version__: str = {VERSION!r}\n")
    shutil.make_archive(str(python / "lib" / "pyspark"), "zip", python, "pyspark")
    for gateway in (own / "python" / "lib").glob("py4j-*.zip"):
        shutil.copy(gateway, python / "lib")  # on YARN its name has to be the one that these jars look for
    return home
