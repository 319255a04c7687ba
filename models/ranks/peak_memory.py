"""The most memory that this process had at a time, since it was last forgotten: Spark uses Python processes again."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from pathlib import Path

PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)


def forget_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_mib() -> float:
    found = PEAK.search(Path("/proc/self/status").read_text(encoding="ascii", errors="replace"))
    return int(found[1]) / 1024 if found else math.nan
