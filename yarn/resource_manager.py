"""What a ResourceManager tells of the cluster, its nodes, queues and applications; and how an application is killed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field, structs

from store.errors import ClusterError, SettingError
from store.namenodes import Access
from yarn.diagnostics import last_words, was_taken
from yarn.queues import Queue, Resource, Scheduler, leaf_queues
from yarn.service import Refusal, Service
from yarn.site import addresses_of

APPLICATION = re.compile(r"application_[0-9]+_[0-9]+")
ENDED = ("FINISHED", "FAILED", "KILLED")
RUNNING = "RUNNING"  # of a node that takes containers
GPU = "yarn.io/gpu"  # as a resource of nodes
UNKNOWN, REFUSED = 404, (401, 403)  # as HTTP has them


class Information(Struct, frozen=True, kw_only=True):
    version: str = field(default="", name="hadoopVersion")
    state: str = ""
    started_ms: int = field(default=0, name="startedOn")
    ha_state: str = field(default="", name="haState")


class Metrics(Struct, frozen=True, kw_only=True):
    total_mib: int = field(default=0, name="totalMB")
    allocated_mib: int = field(default=0, name="allocatedMB")
    available_mib: int = field(default=0, name="availableMB")
    total_vcores: int = field(default=0, name="totalVirtualCores")
    allocated_vcores: int = field(default=0, name="allocatedVirtualCores")
    available_vcores: int = field(default=0, name="availableVirtualCores")
    active_nodes: int = field(default=0, name="activeNodes")
    lost_nodes: int = field(default=0, name="lostNodes")
    running: int = field(default=0, name="appsRunning")
    pending: int = field(default=0, name="appsPending")


class _Amount(Struct, frozen=True):
    name: str = ""
    value: int = 0


class _Amounts(Struct, frozen=True):
    amounts: list[_Amount] = field(default_factory=list, name="resourceInformation")


class _Resources(Struct, frozen=True):
    informations: _Amounts = field(default=_Amounts(), name="resourceInformations")


class Node(Struct, frozen=True, kw_only=True):
    id: str = ""
    host: str = field(default="", name="nodeHostName")
    state: str = ""
    used_mib: int = field(default=0, name="usedMemoryMB")
    available_mib: int = field(default=0, name="availMemoryMB")
    used_vcores: int = field(default=0, name="usedVirtualCores")
    available_vcores: int = field(default=0, name="availableVirtualCores")
    containers: int = field(default=0, name="numContainers")
    health: str = field(default="", name="healthReport")
    _used: _Resources = field(default=_Resources(), name="usedResource")
    _available: _Resources = field(default=_Resources(), name="availableResource")

    @property
    def total_mib(self) -> int:
        return self.used_mib + self.available_mib

    @property
    def total_vcores(self) -> int:
        return self.used_vcores + self.available_vcores

    @property
    def resources(self) -> dict[str, int]:
        """All that the node has, of every kind that it tells, as memory-mb, vcores, yarn.io/gpu."""
        found: dict[str, int] = {}
        for part in (self._used, self._available):
            for each in part.informations.amounts:
                found[each.name] = found.get(each.name, 0) + each.value
        return found


class Application(Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    name: str = ""
    user: str = ""
    queue: str = ""
    state: str = ""
    final_status: str = ""
    diagnostics: str = ""
    allocated_mib: int = field(default=0, name="allocatedMB")
    allocated_vcores: int = field(default=0, name="allocatedVCores")
    containers: int = field(default=0, name="runningContainers")
    started_ms: int = field(default=0, name="startedTime")
    _tags: str = field(default="", name="applicationTags")

    def __post_init__(self) -> None:
        for name in ("allocated_mib", "allocated_vcores", "containers"):
            structs.force_setattr(self, name, max(0, getattr(self, name)))  # -1 of one that ended

    @property
    def early_end(self) -> str:
        """Where it ended and should not have; with where to read on."""
        said = last_words(self.diagnostics) or "YARN says no more"
        return (
            f"{self.id} ended as {self.final_status} before its work was done: {said}; see all of it with: "
            f"yarn logs -applicationId {self.id}"
        )

    @property
    def was_taken(self) -> bool:
        """Whether somebody, or YARN, ended it: nothing that it did itself."""
        return self.final_status == "KILLED" or was_taken(self.diagnostics)

    @property
    def tags(self) -> tuple[str, ...]:
        """In lower case, as YARN keeps them."""
        return tuple(each for each in self._tags.split(",") if each)

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


class Container(Struct, frozen=True, kw_only=True):
    """A part of a node that an application has."""

    id: str = field(default="", name="containerId")
    node: str = field(default="", name="nodeId")
    state: str = field(default="", name="containerState")
    mib: int = field(default=0, name="allocatedMB")
    vcores: int = field(default=0, name="allocatedVCores")

    @property
    def is_master(self) -> bool:
        """The first container of an attempt is its application master."""
        return self.id.endswith("_000001")


class _Information(Struct):
    clusterInfo: Information  # noqa: N815


class _Metrics(Struct):
    clusterMetrics: Metrics  # noqa: N815


class _NodeList(Struct):
    node: list[Node] = []


class _Nodes(Struct):
    nodes: _NodeList | None


class _SchedulerInfo(Struct):
    schedulerInfo: Scheduler  # noqa: N815


class _Scheduler(Struct):
    scheduler: _SchedulerInfo


class _ApplicationList(Struct):
    app: list[Application] = []


class _Applications(Struct):
    apps: _ApplicationList | None


class _Application(Struct):
    app: Application


class _Attempt(Struct):
    number: int = field(default=0, name="id")
    id: str = field(default="", name="appAttemptId")


class _AttemptList(Struct):
    attempts: list[_Attempt] = field(default_factory=list, name="appAttempt")


class _Attempts(Struct):
    attempts: _AttemptList | None = field(default=None, name="appAttempts")


class _Containers(Struct):
    # Some write a list of one as that one.
    containers: list[Container] | Container | None = field(default=None, name="container")


class _State(Struct):
    state: str


class _New(Struct):
    largest: Resource = field(name="maximum-resource-capability")


class ResourceManager:
    """The active one of those at `addresses`."""

    def __init__(self, addresses: tuple[str, ...], access: Access) -> None:
        self._service = Service(addresses, access)
        self._user = access.name

    @classmethod
    def of(
        cls, given: Sequence[str], access: Access, *, environment: Mapping[str, str] = os.environ
    ) -> ResourceManager:
        """At the addresses of luigi.cfg, else where Hadoop's configuration says. Asks nobody anything yet."""
        return cls(addresses_of(given, environment=environment), access)

    @property
    def address(self) -> str:
        """Of the one that answered last, or is asked next."""
        return self._service.address

    def information(self) -> Information:
        return self._service.get("info", _Information).clusterInfo

    def metrics(self) -> Metrics:
        return self._service.get("metrics", _Metrics).clusterMetrics

    def nodes(self) -> list[Node]:
        """All that it knows, whatever their state."""
        found = self._service.get("nodes", _Nodes).nodes
        return found.node if found else []

    def gpus(self) -> int:
        """Of all nodes that run."""
        return sum(node.resources.get(GPU, 0) for node in self.nodes() if node.state == RUNNING)

    def queues(self) -> list[Queue]:
        """The leaf queues, to which applications go."""
        scheduler = self._service.get("scheduler", _Scheduler).scheduler.schedulerInfo
        metrics = self.metrics()
        return leaf_queues(scheduler, total=Resource(metrics.total_mib, metrics.total_vcores))

    def queue(self, name: str) -> Queue:
        """By its name, or its path as in root.a.b."""
        known = self.queues()
        found = [each for each in known if name in (each.path, each.path.removeprefix("root."))]
        found = found or [each for each in known if each.name == name]
        if len(found) != 1:
            several = ", ".join(_called(each, known) for each in found or known)
            given = f"yarnstick.hadoop.queue={name} is " + ("several queues" if found else "no leaf queue")
            raise SettingError(f"{given} of {self.address}; set it to one of {several}")
        [queue] = found
        if queue.largest_mib is None or queue.largest_vcores is None:
            largest = self._service.ask("POST", "apps/new-application", _New).largest
            queue = structs.replace(
                queue,
                largest_mib=queue.largest_mib or largest.memory,
                largest_vcores=queue.largest_vcores or largest.vCores,
            )
        return queue

    def applications(
        self, *, tag: str | None = None, user: str | None = None, states: Sequence[str] = ()
    ) -> list[Application]:
        parameters = {"deSelects": "resourceRequests"}  # the long part of an answer
        if tag is not None:
            parameters["applicationTags"] = tag
        if user is not None:
            parameters["user"] = user
        if states:
            parameters["states"] = ",".join(states)
        found = self._service.get("apps", _Applications, **parameters).apps
        return found.app if found else []

    def application(self, id: str) -> Application:
        return self._service.get(f"apps/{_checked(id)}", _Application).app

    def containers(self, id: str) -> list[Container] | None:
        """What an application has now, of its newest attempt; None of a ResourceManager that does not tell."""
        try:
            found = self._service.get(f"apps/{_checked(id)}/appattempts", _Attempts).attempts
            attempts = found.attempts if found else []
            if not attempts:
                return []
            newest = max(attempts, key=lambda attempt: attempt.number)
            told = self._service.get(f"apps/{id}/appattempts/{newest.id}/containers", _Containers).containers
        except Refusal as error:
            if error.status != UNKNOWN:
                raise
            return [] if error.failure.name else None  # an application that is gone is named as not found
        containers = [told] if isinstance(told, Container) else told or []
        return [each for each in containers if each.state != "COMPLETE"]

    def kill(self, id: str) -> None:
        """Ask for its end, and wait for nothing. One that has ended, or is forgotten, is dead enough."""
        try:
            self._service.ask("PUT", f"apps/{_checked(id)}/state", _State, body={"state": "KILLED"})
        except Refusal as error:
            if error.status == UNKNOWN and error.failure.name == "NotFoundException":
                return
            if error.status not in REFUSED:
                raise
            raise ClusterError(
                f"{id} goes on: {self.address} does not let {self._user} kill it ({error.failure.message}); "
                f"kill it with yarn application -kill {id}"
            ) from None


def _called(queue: Queue, known: Sequence[Queue]) -> str:
    """The name, which every Hadoop takes, unless several have it."""
    return queue.name if [each.name for each in known].count(queue.name) == 1 else queue.path


def _checked(id: str) -> str:
    if not APPLICATION.fullmatch(id):
        raise ClusterError(f"{id!r} is no id of a YARN application; give one as in application_1700000000000_0001")
    return id
