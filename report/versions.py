"""Which versions of libraries records were made with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def versions_of(records: pl.DataFrame) -> dict[str, str]:
    """By library; where machines or nodes of a run had several, all of them: `4.1.0 and 4.3.0`."""
    found: dict[str, set[str]] = {}
    for text in records["versions"].drop_nulls().unique().to_list():
        for name, version in json.loads(text).items():
            found.setdefault(name, set()).add(str(version))
    return {name: " and ".join(sorted(found[name])) for name in sorted(found)}
