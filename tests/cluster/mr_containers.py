"""A job whose tasks tell what they run on: test_shipping.py asks it."""

from __future__ import annotations

from typing import Any, ClassVar

from mrjob.step import MRStep

from mapreduce.batch_job import BatchJob

# $PPID is the JVM of the task, $0 the Python that jobs get; a task that reads nothing would break Hadoop's pipe.
SCRIPT = (
    "while read -r _; do :; done;"
    'echo "here $(pwd -P)"; echo "java $(readlink /proc/$PPID/exe)"; echo "path $PATH";'
    '"$0" -c "import numpy, sys; print(\\"python\\", sys.version.split()[0], sys.prefix)"'
)


class MRContainers(BatchJob):
    JOBCONF: ClassVar[dict[str, str]] = {"mapreduce.job.reduces": "0", "mapreduce.map.maxattempts": "1"}

    def dirs(self) -> list[str]:
        """Nothing is imported there."""
        return []

    def steps(self) -> list[Any]:
        return [MRStep(mapper_cmd=f"/bin/sh -c '{SCRIPT}' {self.options.python_bin or 'python3'}")]


if __name__ == "__main__":
    MRContainers.run()
