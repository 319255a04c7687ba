"""Tables as files: CSV that no spreadsheet runs, Markdown that no name breaks, and names of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

import polars as pl

from store.slug import slug

# A cell that starts with one of these is a formula to a spreadsheet.
FORMULA = r"^[=+\-@\t\r\n]"


def csv(frame: pl.DataFrame) -> bytes:
    """Numbers as numbers; text that a spreadsheet would run gets a leading apostrophe."""
    text = [name for name, kind in frame.schema.items() if kind == pl.String]
    safe = frame.with_columns(
        pl.when(pl.col(name).str.contains(FORMULA)).then(pl.lit("'") + pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name in text
    )
    return safe.write_csv(datetime_format="%Y-%m-%dT%H:%M:%S%.6fZ").encode()


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: Iterable[str] = ()) -> str:
    right = set(numeric)
    lines = [
        heads,
        ["---:" if head in right else "---" for head in heads],
        *([plain(text) for text in row] for row in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def named(name: str) -> str:
    """A name in a file's name, whose parts an underscore joins: as it is where it is plain, else its slug."""
    return name if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name) else slug(name)


def plain(text: str) -> str:
    """Text that Markdown leaves as it is: its own characters as HTML references."""
    safe = escape(" ".join(text.split()), quote=False)
    return re.sub(r"[|`*_\[\]\\~#!]", lambda found: f"&#{ord(found[0])};", safe)
