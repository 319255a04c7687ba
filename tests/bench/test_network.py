"""What the benchmark of networks says where one of its hosts fails."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from bench import network


class Broken:
    """On its second node nothing runs."""

    def address(self, host: str) -> str:
        return "127.0.0.1"

    def command(self, host: str, command: Sequence[str]) -> list[str]:
        return [sys.executable, "-c", f"raise SystemExit({3 if host == network.NODES[1] else 0})"]


def test_who_failed_is_named() -> None:
    broken: Any = Broken()
    with pytest.raises(RuntimeError, match=r"^summing ended on node-2 with 3; what it said stands above$"):
        network._summed(broken)
