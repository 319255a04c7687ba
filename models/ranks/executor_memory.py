"""What the end of an executor, or of its task, says of memory: the setting, the amount it was, and one to try."""

from __future__ import annotations

import re
from dataclasses import dataclass

from models.protocol import Surroundings
from models.spark_containers import beside_mib
from models.spec import Resources

OUT_OF_CONTAINER = re.compile(r"exceeding (physical|virtual) memory limits|beyond the .* memory limit")
# Spark ends a JVM that finds no more heap with 52.
OUT_OF_HEAP = re.compile(r"OutOfMemoryError|(exited with code|[Ee]xit (status|code):?) 52\b")
STEP_MIB = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorMemory:
    """What an executor was given, MiB."""

    heap: int
    beside: int  # of its container, for Python, torch and rows, or what a JVM takes beside its heap
    in_python: bool

    @classmethod
    def of(cls, resources: Resources, surroundings: Surroundings, *, in_python: bool) -> ExecutorMemory:
        heap = resources.memory_mib or 0
        if surroundings.yarn is not None:
            python_mib, given = surroundings.yarn.python_mib, surroundings.spark_conf
            beside = beside_mib(resources, python_mib=python_mib, given=given)
            return cls(heap=heap, beside=beside, in_python=in_python)
        return cls(heap=heap, beside=surroundings.overhead_mib if in_python else 0, in_python=in_python)

    def short(self, executor: str, why: str) -> str | None:
        """The sentence, where it is memory that an executor lacked, by what Spark says of its end."""
        if OUT_OF_CONTAINER.search(why):
            container = f"executor {executor} was ended by YARN, as it took more than its container's memory: "
            if self.in_python:
                return (
                    f"{container}memory_mib = {self.heap}, and beside it {self.beside} MiB for Python, torch and the "
                    f"rows; {self.to_try}"
                )
            more = _more(self.heap)
            return f"{container}memory_mib = {self.heap}, and {self.beside} MiB beside it; try memory_mib = {more}"
        if OUT_OF_HEAP.search(why):
            return (
                f"executor {executor} ran out of memory: memory_mib = {self.heap} is its JVM's heap; try "
                f"memory_mib = {_more(self.heap)}, or lower cores, which share it"
            )
        return None

    @property
    def to_try(self) -> str:
        return f"try yarnstick.spark.overhead_mib = {_more(self.beside)}"


def _more(mib: int) -> int:
    """Half as much again, and round."""
    return -(-mib * 3 // (2 * STEP_MIB)) * STEP_MIB
