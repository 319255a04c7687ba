"""Our code, and that of libraries, as zip files that go to nodes."""

from __future__ import annotations

import zipfile
from pathlib import Path

TOP = Path(__file__).parent.parent
SENT = ("store", "yarn", "models")
OWN = "yarnstick.zip"


def own_code(work: Path) -> Path:
    """What trains, made anew in this directory."""
    return zipped(work / OWN, [TOP / name for name in SENT])


def packages(*modules: object) -> list[Path]:
    return [Path(str(module.__file__)).parent for module in modules]  # type: ignore[attr-defined]


def zipped(target: Path, packages: list[Path]) -> Path:
    """Python's files, and the texts that PySpark reads: beside them it has half a gigabyte of jars."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for package in packages:
            for path in sorted(package.rglob("*")):
                if path.suffix in (".py", ".json"):
                    archive.write(path, path.relative_to(package.parent))
    return target
