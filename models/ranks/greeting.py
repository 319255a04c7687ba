"""What who connects to a rank shows before anything else is read: that it knows the token, and which rank it is."""

from __future__ import annotations

import hashlib
import hmac
import struct

_FORM = struct.Struct("<32sq")  # digest of the token, rank
SIZE = _FORM.size


def greeting(token: str, rank: int) -> bytes:
    return _FORM.pack(_digest(token), rank)


def greeted(shown: bytes | bytearray, token: str) -> int | None:
    """The rank; None is a stranger."""
    digest, rank = _FORM.unpack(shown)
    return int(rank) if hmac.compare_digest(digest, _digest(token)) else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
