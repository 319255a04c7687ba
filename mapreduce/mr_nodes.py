"""A small job whose tasks tell what Python and packages their nodes have, with as little of them as can be."""

from __future__ import annotations

from typing import Any, ClassVar

from mrjob.step import MRStep

from mapreduce.batch_job import BatchJob

# Its Python may be missing, so that a shell has to tell. A task that reads nothing would break Hadoop's pipe.
SCRIPT = 'while read -r _; do :; done; "$0" node_facts.py "$@" || echo "$NM_HOST: $0 does not run"'


class MRNodes(BatchJob):
    FILES: ClassVar[list[str]] = ["node_facts.py"]
    HADOOP_INPUT_FORMAT = "org.apache.hadoop.mapred.lib.NLineInputFormat"  # a task for each line
    JOBCONF: ClassVar[dict[str, str]] = {
        "mapreduce.job.reduces": "0",
        "mapreduce.map.maxattempts": "2",
        "mapreduce.map.speculative": "false",
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
    }

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--also", default="", help="a package that is asked for too")

    def dirs(self) -> list[str]:
        """Nothing is imported there."""
        return []

    def steps(self) -> list[Any]:
        command = f"/bin/sh -c '{SCRIPT}' {self.options.python_bin or 'python3'} {self.options.also}"
        return [MRStep(mapper_cmd=command.rstrip())]


if __name__ == "__main__":
    MRNodes.run()
