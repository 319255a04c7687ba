"""The next items are made in a thread while this one is used: reading takes no time that arithmetic covers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
AHEAD = 2


def read_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items, in order; an error comes in its place."""
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as reader:
        try:
            waiting = deque(reader.submit(next, iterator, end) for _ in range(AHEAD))
            while (item := waiting.popleft().result()) is not end:
                waiting.append(reader.submit(next, iterator, end))
                yield item  # type: ignore[misc]
        finally:
            reader.shutdown(cancel_futures=True)
