"""Which code a user's own network was trained with: its name may stand for another file tomorrow, or elsewhere."""

from __future__ import annotations

import hashlib
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from models.spec import Network

DIGITS = 16


def own_code(network: Network) -> dict[str, str]:
    """By the network's name what tells its source from others; nothing where that is not to be had."""
    found = None if network.source is None else _digest(network.source.partition(":")[0])
    return {} if found is None else {network.name: f"sha256:{found}"}


@cache  # a process keeps what it imported first, whatever becomes of the file
def _digest(module: str) -> str | None:
    with suppress(Exception):  # whatever a user's package does when it is looked for
        there = sys.modules.get(module) or find_spec(module)
        path = Path(str(getattr(there, "__file__", None) or getattr(there, "origin", None)))
        told = hashlib.sha256()
        for file in _whole(path, depth=module.count(".") + (path.name == "__init__.py")):
            told.update(file.read_bytes())
        return told.hexdigest()[:DIGITS]
    return None


def _whole(path: Path, *, depth: int) -> list[Path]:
    """A module that lies in a package may use all of it; one that stands alone is its file."""
    return sorted(path.parents[depth - 1].rglob("*.py")) if depth else [path]
