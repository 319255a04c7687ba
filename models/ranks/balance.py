"""How many rows each rank gets: all as many, as many as was asked for, or by the speed that each has shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise

EVEN, SPEED = "even", "speed"
WEIGHTS = re.compile(r"[1-9][0-9]{0,5}(:[1-9][0-9]{0,5})+")
WORTH_IT = 1.1  # rows move when the slowest takes so much longer than it would

Span = tuple[int, int]  # from where to before where


def weights(balance: str | None, size: int) -> list[float]:
    """What rows are shared by before a speed is known."""
    if balance in (None, EVEN, SPEED):
        return [1.0] * size
    return [float(each) for each in str(balance).split(":")]


def unfit(balance: str | None, size: int) -> str | None:
    """Why so many ranks cannot share rows like that."""
    if balance in (None, EVEN, SPEED) or len(str(balance).split(":")) == size:
        return None
    return f"balances = {balance} shares rows among {len(str(balance).split(':'))} executors, and there are {size}"


def spans(rows: int, shares: Sequence[float]) -> list[Span]:
    """In proportion to these; everybody has at least a row, as long as there are enough."""
    least = 1 if rows >= len(shares) else 0
    free = rows - least * len(shares)
    bounds = [0, *(round(free * each / sum(shares)) for each in accumulate(shares))]
    return [(start + least * rank, stop + least * (rank + 1)) for rank, (start, stop) in enumerate(pairwise(bounds))]


def moved(now: Sequence[Span], seconds: Sequence[float]) -> list[Span] | None:
    """Other spans, by what each rank took for its own; None where moving rows would not gain enough."""
    counts = [stop - start for start, stop in now]
    speeds = [count / max(took, 1e-9) for count, took in zip(counts, seconds, strict=True)]
    best = sum(counts) / sum(speeds)
    return spans(sum(counts), speeds) if max(seconds) > WORTH_IT * best else None
