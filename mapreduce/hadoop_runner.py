"""mrjob's Hadoop runner with one JVM on this side, `hadoop jar`: files go by WebHDFS."""

from __future__ import annotations

import re
import subprocess
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mrjob.fs.composite import CompositeFilesystem
from mrjob.fs.local import LocalFilesystem
from mrjob.hadoop import HadoopJobRunner

from mapreduce.store_filesystem import StoreFilesystem
from store.protocol import Store

APPLICATION = re.compile(r"Submitted application (application_\d+_\d+)")
TRACKING = re.compile(r"The url to track the job: (\S+)")
PERCENT = re.compile(r"map (\d+)% reduce (\d+)%")
KEPT_LINES = 40
# Commands of ours before a task set its environment, and are in nobody's way.
SHARED_LOCK, OWN_LOCK = "/tmp/wrapper.lock.", "./wrapper.lock."  # noqa: S108


@dataclass(slots=True, kw_only=True)
class Told:
    """What `hadoop jar` has printed so far."""

    listener: Callable[[Told], None]
    application: str | None = None
    tracking: str | None = None
    percent: tuple[int, int] = (0, 0)  # of the maps and the reduces
    process: subprocess.Popen[str] | None = None
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))

    def stop(self) -> None:
        """Nothing more is to be told."""
        if self.process is not None:
            self.process.kill()

    def read(self, line: str) -> None:
        self.last_lines.append(line)
        if found := APPLICATION.search(line):
            self.application = found[1]
        elif found := TRACKING.search(line):
            self.tracking = found[1]
        elif found := PERCENT.search(line):
            self.percent = int(found[1]), int(found[2])
        else:
            return
        self.listener(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hadoop:
    """The cluster that a job runs on."""

    store: Store  # the input, the output and the job's own files lie there
    version: str
    told: Told


class OneJvmRunner(HadoopJobRunner):
    """`hadoop` is set before it runs; without it mrjob would ask `hadoop fs` and `hadoop version`, a JVM each."""

    hadoop: Hadoop

    @property
    def fs(self) -> Any:
        both = CompositeFilesystem()
        both.add_fs("store", StoreFilesystem(self.hadoop.store))
        both.add_fs("local", LocalFilesystem())
        return both

    def get_hadoop_version(self) -> str:
        return self.hadoop.version

    def get_hadoop_bin(self) -> list[str]:
        return list(self._opts["hadoop_bin"])

    def _setup_cmd_content(self, setup: Any) -> list[str]:
        """mrjob's lock is a file in /tmp of each node, which nobody removes; ours goes with the task's container."""
        return [line.replace(SHARED_LOCK, OWN_LOCK) for line in super()._setup_cmd_content(setup)]

    def _read_logs(self) -> bool:
        """mrjob looks for logs in places that YARN does not use; ours are asked of YARN."""
        return False

    def _run_hadoop(
        self, hadoop_args: list[str], env: dict[str, str], record_callback: Any
    ) -> tuple[int, dict[str, Any]]:
        """mrjob forks a terminal for it, which a process with threads must not do."""
        with subprocess.Popen(
            hadoop_args,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            encoding="utf-8",
            errors="replace",
        ) as process:
            self.hadoop.told.process = process
            for line in process.stdout or ():
                self.hadoop.told.read(line.rstrip())
        return process.returncode, {}
