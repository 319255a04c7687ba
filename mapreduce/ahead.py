"""Work on the next batches while this one is used, in order and in bounded memory."""

from __future__ import annotations

import collections
import concurrent.futures
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
MOST_THREADS = 4


def ahead(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`map` in threads: Arrow and numpy release the interpreter while they read."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = min(MOST_THREADS, cores)
    pending: collections.deque[concurrent.futures.Future[Result]] = collections.deque()
    iterator, failure = iter(items), None
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        while True:
            try:
                pending.append(pool.submit(work, next(iterator)))
            except StopIteration:
                break
            except Exception as error:  # what is wrong with the items before comes first
                failure = error
                break
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    if failure is not None:
        raise failure
