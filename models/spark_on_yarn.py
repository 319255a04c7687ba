"""A Spark application on YARN: its rows and its event log lie on HDFS, and it never outlives us."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models import spark_conf
from models.event_mirror import EventMirror
from models.probes import SESSION
from models.protocol import Surroundings, Yarn
from models.ranks.executor_gpus import script
from models.sent_code import own_code
from models.spark_containers import executor_mib
from models.spark_home import own_home
from models.spark_master import jvm_options
from models.spec import Resources, TrialSpec
from models.vectors import write_vectors
from store.errors import TrialError, YarnstickError
from store.manifest import MANIFEST, read_manifest
from store.opening import opened
from store.publish import Staging, temporary_name
from store.slug import slug
from yarn.diagnostics import last_words
from yarn.resource_manager import ResourceManager
from yarn.submission import Submission

if TYPE_CHECKING:
    from pyspark import SparkContext

    from models.dataset import Dataset
    from models.event_log import Application

EVENT_LOGS = "eventlogs"
LOOK_SECONDS = 0.1
# In client mode the application's master only asks for containers: its start is all that there is to make faster.
MASTERS_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
MASTER_VCORES = 1  # of the application master, which in cluster mode is the driver


class OnYarn(ABC):
    """What client and cluster mode have in common."""

    name = "yarn"
    gives_up = True  # after max(2 x executors, 3) of them

    def __init__(self, surroundings: Surroundings, yarn: Yarn) -> None:
        self._work = surroundings.work
        self._home = surroundings.spark_home
        self._yarn = yarn
        self._store = opened(yarn.reach)
        self._manager = ResourceManager.of(yarn.resource_managers, yarn.reach.access)
        self._application = ""
        self._given = surroundings.spark_conf
        self._asked_mib = 0  # for each executor
        self.executors_seconds = yarn.accepted_seconds
        self.python = yarn.python
        self._mirror = EventMirror(self._store, self._logs(), surroundings.archives)

    def conf(self, resources: Resources) -> dict[str, str]:
        self._asked_mib = executor_mib(resources, python_mib=self._yarn.python_mib, given=self._given)
        return self._conf(resources)

    def started(self, application: str) -> None:
        self._application = application

    def event_log(self) -> Path:
        self._mirror.fetch()
        return self._mirror.log_of(self._application)

    def rows(self, spec: TrialSpec, data: Dataset) -> str:
        """Published once for all sessions, as nothing of this machine's disk is seen from the nodes."""
        partitions = spec.resources.partitions or 1
        path = f"data/{spec.data}/vectors/{slug(f'{spec.data_fraction:g}-{partitions}')}"
        if not self._store.exists(f"{path}/{MANIFEST}"):
            with Staging(self._store, path) as staging:
                write_vectors(data, fraction=spec.data_fraction, partitions=partitions, create=staging.create)
                staging.commit(fraction=spec.data_fraction, partitions=partitions)
        read_manifest(self._store, path)
        return f"{self._store.url}/{path}/part-*.parquet"

    def granted(self, seen: Application) -> tuple[int, int, str | None]:
        """Spark believes what it asked for; YARN knows what it gave."""
        executors, cores = len(seen.executor_cores), sum(seen.executor_cores.values())
        given = self._manager.application(self._application).allocated_vcores - MASTER_VCORES
        shortage = None
        if given < cores:
            shortage = (
                f"YARN granted {given} vcores for {executors} executors with {cores} cores in all: its scheduler "
                f"counts memory only (DominantResourceCalculator would count both), so nothing holds the executors to "
                f"their cores"
            )
        notes = filter(None, (shortage, self._other_memory()))
        return executors, max(0, min(given, cores)), " | ".join(notes) or None

    def _other_memory(self) -> str | None:
        """Where containers are not of the size that was asked for; of a YARN that does not tell, nothing is said."""
        containers = None
        with suppress(YarnstickError):
            containers = self._manager.containers(self._application)
        sizes = {each.mib for each in containers or () if each.mib and not each.is_master}
        if not sizes - {self._asked_mib}:
            return None
        return (
            f"YARN granted executors containers of {' and '.join(map(str, sorted(sizes)))} MiB, and {self._asked_mib} "
            f"MiB were asked for"
        )

    @abstractmethod
    def _conf(self, resources: Resources) -> dict[str, str]:
        """What only one of the modes needs to be told."""

    @abstractmethod
    def _logs(self) -> str:
        """Where on the store the event log is written."""


class ClientMode(OnYarn):
    """The driver is here."""

    def __init__(self, surroundings: Surroundings, yarn: Yarn) -> None:
        self._folder = f"{yarn.folder}/{temporary_name()}"
        super().__init__(surroundings, yarn)
        self._submission = Submission(
            yarn.resource_managers, yarn.reach.access, queue=yarn.queue, accepted_seconds=yarn.accepted_seconds
        )

    def _conf(self, resources: Resources) -> dict[str, str]:
        os.environ["SPARK_HOME"] = str(self._home or own_home())
        self._store.write(f"{self._logs()}/.kept", b"")  # Spark wants the directory to be there
        self._submission.watch(gone=_kill_driver)
        return {
            **spark_conf.on_yarn(resources, self._yarn, tag=self._submission.tag, session=os.environ.get(SESSION, "")),
            **({"spark.yarn.dist.files": str(script(self._work))} if resources.device == "cuda" else {}),
            "spark.master": "yarn",
            "spark.submit.deployMode": "client",
            "spark.yarn.am.extraJavaOptions": MASTERS_JAVA,
            spark_conf.DRIVER_OPTIONS: jvm_options(self._work),
            "spark.eventLog.dir": f"{self._store.url}/{self._logs()}",
            "spark.local.dir": str(self._work / "local"),
        }

    def send_code(self, context: SparkContext) -> None:
        context.addPyFile(str(own_code(self._work)))

    def refused(self, message: str) -> TrialError:
        if self._submission.lost:
            return TrialError(self._submission.lost)
        try:
            application = self._submission.application()
        except YarnstickError as error:
            return TrialError(str(error))
        if application is None:
            return TrialError(f"YARN took no application: {message}")
        said = last_words(application.diagnostics) or message
        return TrialError(
            f"{application.id} did not start in queue {application.queue}: {said}; see all of it with: "
            f"yarn logs -applicationId {application.id}"
        )

    def stop(self, session: Any, gateway: Any) -> None:
        try:
            if self._submission.lost is None:
                session.stop()
                gateway.shutdown()
        finally:
            self._submission.end()
            with suppress(YarnstickError):  # the next run collects it
                opened(replace(self._yarn.reach, retry_seconds=0)).remove(self._folder)

    def lost(self, *, within_seconds: float = 0.0) -> str | None:
        deadline = time.monotonic() + within_seconds
        while self._submission.lost is None and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        return self._submission.lost

    def _logs(self) -> str:
        return f"{self._folder}/{EVENT_LOGS}"


class ClusterMode(OnYarn):
    """We are the driver, on a node; who submitted us told Spark all there is to tell, and cleans up."""

    def _conf(self, resources: Resources) -> dict[str, str]:
        return {}

    def send_code(self, context: SparkContext) -> None:
        """It came with us, and Spark gave it to the executors too."""

    def refused(self, message: str) -> TrialError:
        return TrialError(f"the driver on YARN could not start its application: {message}")

    def stop(self, session: Any, gateway: Any) -> None:
        session.stop()

    def lost(self, *, within_seconds: float = 0.0) -> str | None:
        """Who asked for us sees it; we end with the application."""
        return None

    def _logs(self) -> str:
        return f"{self._yarn.folder}/{EVENT_LOGS}"


def _kill_driver() -> None:
    """The JVM would wait for its application much longer than anybody else does."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.proc.kill()
