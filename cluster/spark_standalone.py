"""Spark's own cluster manager: a master and its workers, each on a host of a network."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Sequence
from pathlib import Path

from cluster.errors import ClusterError
from cluster.java import find_java
from cluster.network import Network
from cluster.processes import POLL_SECONDS, Process, end, start

PORT = 7077  # each host has all ports for itself
READY_SECONDS = 120.0
END_SECONDS = 10.0
DAEMON_MIB = 256
TAIL_LINES = 5


class SparkStandalone:
    """Up when it is entered. Executors are processes of the workers, and end with them."""

    def __init__(
        self,
        network: Network,
        *,
        directory: Path,
        master: str,
        workers: Sequence[str],
        cores: int,
        memory_mib: int,
    ) -> None:
        self._network = network
        self._directory = directory
        self._master = master
        self._workers = workers
        self._worker = ("--cores", str(cores), "--memory", f"{memory_mib}m")
        self._processes: dict[str, Process] = {}
        self.url = f"spark://{network.address(master)}:{PORT}"

    def __enter__(self) -> SparkStandalone:
        try:
            self._start("master.Master", self._master, "--port", str(PORT))
            for host in self._workers:
                own = ("--work-dir", str(self._directory / f"work-{host}"))
                self._start("worker.Worker", host, *self._worker, *own, self.url)
            self._wait()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        end(self._processes.values(), patience=END_SECONDS)

    def _start(self, kind: str, host: str, *arguments: str) -> None:
        home = _home()
        self._directory.mkdir(parents=True, exist_ok=True)
        address = self._network.address(host)
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        own = {
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_DIRS": str(self._directory / f"local-{host}"),
            "SPARK_DAEMON_MEMORY": f"{DAEMON_MIB}m",
        }
        # What the user's environment says of another Spark is not for this one.
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        self._processes[host] = start(
            self._network.command(host, [*command, "--host", address, "--webui-port", "0", *arguments]),
            environment=inherited | own,
            directory=self._directory,
            log=self._log(host),
        )

    def _wait(self) -> None:
        """Until the master knows its workers, as it says itself."""
        gives_up = time.monotonic() + READY_SECONDS
        while self._read(self._master).count("Registering worker") < len(self._workers):
            for host, process in self._processes.items():
                if not process.is_alive():
                    raise ClusterError(f"Spark's daemon on {host} ended; the last lines of {self._told(host)}")
            if time.monotonic() > gives_up:
                raise ClusterError(
                    f"Spark's master did not hear of its {len(self._workers)} workers within {READY_SECONDS:.0f} "
                    f"seconds; the last lines of {self._told(self._master)}"
                )
            time.sleep(POLL_SECONDS)

    def _log(self, host: str) -> Path:
        return self._directory / f"{host}.log"

    def _read(self, host: str) -> str:
        return self._log(host).read_text(encoding="utf-8", errors="replace")

    def _told(self, host: str) -> str:
        tail = "\n".join(self._read(host).splitlines()[-TAIL_LINES:])
        return f"{self._log(host)}:\n{tail}"


def _home() -> Path:
    """PySpark's, as pip installs it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise ClusterError("found no pyspark, which has Spark's daemons; install what setup.py names")
    return Path(found.origin).parent
