"""A queue of YARN as its scheduler tells it: CapacityScheduler, FairScheduler or FIFO."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct, field

RUNNING = "RUNNING"
UNBOUNDED = 2**31 - 1  # how Hadoop says that nothing bounds it


class Resource(Struct, frozen=True):
    """Memory and cores as Hadoop writes them."""

    memory: int = 0
    vCores: int = 0  # noqa: N815  # Hadoop's name


class Queue(Struct, frozen=True, kw_only=True):
    """What one leaf queue may have, and has. Percentages are of the whole cluster."""

    name: str
    path: str  # root.a.b
    state: str  # RUNNING, STOPPED or DRAINING; of a parent that does not run, the parent's
    capacity: float | None  # percent
    maximum_capacity: float | None
    used_capacity: float | None
    maximum_mib: int | None  # of all its containers together; None where it is not told
    maximum_vcores: int | None
    used_mib: int
    used_vcores: int
    largest_mib: int | None  # of one container
    largest_vcores: int | None
    am_share: float | None  # 0..1 of the queue that application masters may have
    running: int | None  # applications
    pending: int | None


class _Partition(Struct, frozen=True):
    partitionName: str = ""  # noqa: N815
    maxAMLimitPercentage: float | None = None  # noqa: N815


class _Partitions(Struct, frozen=True):
    queueCapacitiesByPartition: list[_Partition] = []  # noqa: N815


class _Children(Struct, frozen=True):
    queue: list[RawQueue] = []


class RawQueue(Struct, frozen=True, kw_only=True):
    """One queue of any scheduler; what the others have, is missing."""

    name: str = field(default="", name="queueName")
    queues: _Children | None = None  # of CapacityScheduler
    children: _Children | list[RawQueue] | None = field(default=None, name="childQueues")  # of FairScheduler
    state: str = RUNNING
    capacity: float | None = field(default=None, name="absoluteCapacity")
    maximum_capacity: float | None = field(default=None, name="absoluteMaxCapacity")
    used_capacity: float | None = field(default=None, name="absoluteUsedCapacity")
    largest: Resource | None = field(default=None, name="maximumAllocation")
    largest_of_fair: Resource | None = field(default=None, name="maxContainerAllocation")
    maximum: Resource | None = field(default=None, name="maxEffectiveCapacity")
    maximum_of_fair: Resource | None = field(default=None, name="maxResources")
    steady: Resource | None = field(default=None, name="steadyFairResources")
    fair: Resource | None = field(default=None, name="fairResources")
    cluster: Resource | None = field(default=None, name="clusterResources")
    used: Resource = field(default=Resource(), name="resourcesUsed")
    used_of_fair: Resource = field(default=Resource(), name="usedResources")
    am_share: float | None = field(default=None, name="configuredMaxAMResourceLimit")
    partitions: _Partitions = field(default=_Partitions(), name="capacities")
    running: int | None = field(default=None, name="numActiveApplications")
    running_of_fair: int | None = field(default=None, name="numActiveApps")
    pending: int | None = field(default=None, name="numPendingApplications")
    pending_of_fair: int | None = field(default=None, name="numPendingApps")

    def below(self) -> list[RawQueue]:
        for children in (self.queues, self.children):
            if isinstance(children, _Children) and children.queue:
                return children.queue
            if isinstance(children, list) and children:
                return children
        return []


class Scheduler(RawQueue, frozen=True, kw_only=True):
    """The root: of CapacityScheduler itself a queue, of FairScheduler it holds one, FIFO is one."""

    type: str = ""
    root: RawQueue | None = field(default=None, name="rootQueue")
    fifo_state: str = field(default=RUNNING, name="qstate")
    fifo_largest_mib: int | None = field(default=None, name="maxQueueMemoryCapacity")
    share: float | None = field(default=None, name="usedCapacity")  # of FIFO 0..1


def leaf_queues(scheduler: Scheduler, *, total: Resource) -> list[Queue]:
    """`total` is the cluster's, of which older Hadoop tells only shares."""
    if scheduler.type == "fifoScheduler":
        return [_fifo(scheduler, total)]
    return list(_leaves(scheduler.root or scheduler, path="", state=RUNNING, total=total))


def _leaves(queue: RawQueue, *, path: str, state: str, total: Resource) -> Iterator[Queue]:
    # FairScheduler's names are paths.
    path = queue.name if not path or queue.name.startswith(f"{path}.") else f"{path}.{queue.name}"
    state = queue.state if state == RUNNING else state
    below = queue.below()
    for each in below:
        yield from _leaves(each, path=path, state=state, total=total)
    if below:
        return
    whole = queue.cluster if queue.cluster and queue.cluster.memory else None  # told by FairScheduler
    largest = queue.largest or queue.largest_of_fair
    maximum = queue.maximum or queue.maximum_of_fair or _share(_known(queue.maximum_capacity), total)
    used = queue.used if queue.used != Resource() else queue.used_of_fair
    yield Queue(
        name=path.rpartition(".")[2],
        path=path,
        state=state,
        capacity=_known(queue.capacity) if whole is None else _percent(queue.steady or queue.fair, whole),
        maximum_capacity=_known(queue.maximum_capacity) if whole is None else _percent(queue.maximum_of_fair, whole),
        used_capacity=_known(queue.used_capacity) if whole is None else _percent(used, whole),
        maximum_mib=None if maximum is None else min(maximum.memory, total.memory),
        maximum_vcores=None if maximum is None else min(maximum.vCores, total.vCores),
        used_mib=used.memory,
        used_vcores=used.vCores,
        largest_mib=largest.memory if largest and 0 < largest.memory < UNBOUNDED else None,
        largest_vcores=largest.vCores if largest and 0 < largest.vCores < UNBOUNDED else None,
        am_share=_am_share(queue),
        running=queue.running if queue.running is not None else queue.running_of_fair,
        pending=queue.pending if queue.pending is not None else queue.pending_of_fair,
    )


def _fifo(scheduler: Scheduler, total: Resource) -> Queue:
    used = _known(scheduler.share)
    return Queue(
        name="default",
        path="root.default",
        state=scheduler.fifo_state,
        capacity=100.0,
        maximum_capacity=100.0,
        used_capacity=None if used is None else 100 * used,
        maximum_mib=total.memory,
        maximum_vcores=total.vCores,
        used_mib=round((used or 0.0) * total.memory),
        used_vcores=0,
        largest_mib=scheduler.fifo_largest_mib,
        largest_vcores=None,
        am_share=None,
        running=None,
        pending=None,
    )


def _am_share(queue: RawQueue) -> float | None:
    if queue.am_share is not None:
        return queue.am_share
    told = [each.maxAMLimitPercentage for each in queue.partitions.queueCapacitiesByPartition if not each.partitionName]
    return told[0] / 100 if told and told[0] is not None else None


def _known(number: float | None) -> float | None:
    """Hadoop's share of nothing is no number."""
    return number if number is not None and math.isfinite(number) else None


def _share(percent: float | None, total: Resource) -> Resource | None:
    if percent is None:
        return None
    return Resource(int(percent / 100 * total.memory), int(percent / 100 * total.vCores))


def _percent(part: Resource | None, whole: Resource) -> float | None:
    return None if part is None else min(100.0, 100 * part.memory / whole.memory)
