"""One way from a user's name to a path segment that every file system and HDFS accepts."""

from __future__ import annotations

import hashlib
import re

LONGEST = 100


def slug(name: str, *, over: str | None = None) -> str:
    """`name` in `[a-z0-9._-]`, then 8 hex digits of SHA-256 over `over` (the name itself if not given).

    The digest keeps names apart that look alike once cleaned, and makes a slug of any name safe:
    never empty, never hidden, never `..`.
    """
    digest = hashlib.sha256((name if over is None else over).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    clean = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("._-")
    return f"{clean[:LONGEST]}-{digest}" if clean else digest
