"""Work ahead: the order of the items, also of what is wrong with them, and never far ahead."""

import threading
import time

import pytest

from mapreduce.ahead import MOST_THREADS, ahead


def test_results_come_in_the_order_of_the_items():
    def slow_first(item: int) -> int:
        time.sleep(0.05 if item == 0 else 0)
        return item * 2

    assert list(ahead(slow_first, range(50))) == [2 * item for item in range(50)]


def test_it_is_only_a_few_items_ahead():
    taken = []

    def items():
        for item in range(1000):
            taken.append(item)
            yield item

    results = ahead(lambda item: item, items())
    next(results)
    assert len(taken) <= MOST_THREADS + 1
    results.close()


def test_a_fault_of_an_earlier_item_comes_before_that_of_the_items_themselves():
    release = threading.Event()

    def work(item: int) -> int:
        release.wait(5)
        raise ValueError("of the work")

    def items():
        yield 1
        release.set()
        raise KeyError("of the items")

    with pytest.raises(ValueError, match="of the work"):
        list(ahead(work, items()))
    with pytest.raises(KeyError):
        list(ahead(lambda item: item, items()))
