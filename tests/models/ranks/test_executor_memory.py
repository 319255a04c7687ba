"""Which end of an executor is told as a lack of memory: the setting, what it was, and what to try."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from models.protocol import Yarn
from models.ranks.executor_memory import ExecutorMemory
from store.opening import Reach
from tests.models.made import SPARK, surroundings
from yarn.shipped import Shipped

TORCH = ExecutorMemory(heap=1024, beside=1536, in_python=True)
MLLIB = ExecutorMemory(heap=2048, beside=384, in_python=False)
YARN_SAYS = (
    "Container killed by YARN for exceeding physical memory limits. 2.6 GB of 2.5 GB physical memory used. Consider "
    "boosting spark.executor.memoryOverhead."
)


def test_beyond_its_container_an_executor_with_python_needs_more_beside_its_heap() -> None:
    said = TORCH.short("3", YARN_SAYS) or ""
    assert said.startswith("executor 3 was ended by YARN, as it took more than its container's memory")
    assert said.endswith(
        "memory_mib = 1024, and beside it 1536 MiB for Python, torch and the rows; "
        "try yarnstick.spark.overhead_mib = 2304"
    )


def test_beyond_its_container_a_jvm_gets_more_with_its_heap() -> None:
    assert (MLLIB.short("1", YARN_SAYS) or "").endswith("and 384 MiB beside it; try memory_mib = 3072")


@pytest.mark.parametrize(
    "why",
    [
        "Command exited with code 52",
        "Container from a bad node: container_1 on host: n. Exit status: 52. Diagnostics: [..]Exception",
        "java.lang.OutOfMemoryError: Java heap space",
    ],
)
def test_without_heap_it_needs_more_of_that(why: str) -> None:
    for memory, more in ((TORCH, 1536), (MLLIB, 3072)):
        assert f"memory_mib = {memory.heap} is its JVM's heap; try memory_mib = {more}" in (
            memory.short("0", why) or ""
        )


@pytest.mark.parametrize("why", ["Command exited with code 137", "Command exited with code 53", "worker lost", ""])
def test_other_ends_say_nothing_of_memory(why: str) -> None:
    assert TORCH.short("0", why) is None


def test_what_is_beside_the_heap_is_what_containers_are_asked_for_with(tmp_path: Path) -> None:
    here = surroundings(tmp_path)
    assert ExecutorMemory.of(SPARK, here, in_python=True).beside == here.overhead_mib
    yarn = Yarn(
        reach=Reach(url="hdfs://n/s"),
        folder="applications",
        jars="",
        queue="default",
        resource_managers=(),
        accepted_seconds=1.0,
        python="python3",
        shipped=Shipped(),
        python_mib=1800,
    )
    assert ExecutorMemory.of(SPARK, replace(here, yarn=yarn), in_python=True).beside == 1800
    assert ExecutorMemory.of(SPARK, replace(here, yarn=replace(yarn, python_mib=0)), in_python=False).beside == 384
