"""What others have of a shared cluster before and while a trial of ours runs: of its nodes, of all nodes, of its queue."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from store.errors import YarnstickError
from yarn.queues import Queue
from yarn.resource_manager import Application, ResourceManager
from yarn.submission import LIVING

LOOK_SECONDS = 2.0
MOST_SHARE = 0.05  # of the time is spent on looking: the answers of a large cluster are long
TRIES = 3  # at a look in which nothing of ours comes or goes
END_SECONDS = 30.0
EVERYWHERE = ""  # stands for all nodes where a ResourceManager does not tell which are ours


class Held(NamedTuple):
    vcores: float = 0.0
    mib: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look: by node, what others have and what there is."""

    others: dict[str, Held]
    room: dict[str, Held]
    ours: frozenset[str]  # nodes with executors of ours
    queue: float | None  # the share of our queue that others have, of what it may have at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One number over a trial: just before it, then the mean and the largest of the looks while it ran."""

    before: float | None
    mean: float
    largest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowding:
    """What others had. Allocated, that is: what they did with it is not known."""

    nodes: tuple[str, ...]  # that our executors were on; none where YARN does not tell which: then all are meant
    nodes_vcores: float  # that these nodes have
    nodes_mib: float
    vcores: Course  # of others, on these nodes
    mib: Course
    cluster_vcores: float
    in_cluster: Course  # vcores of others, on all nodes
    queue: Course | None  # shares
    looks: int
    missed: int  # looks that the ResourceManager did not answer

    @property
    def share(self) -> float:
        """Of the vcores of our nodes, on average."""
        return self.vcores.mean / self.nodes_vcores if self.nodes_vcores else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What others have now, of our nodes; of the whole cluster as long as we are on none."""

    vcores: float
    of: float
    is_ours: bool

    @property
    def share(self) -> float:
        return self.vcores / self.of if self.of else 0.0


class Crowd:
    """Applications with the tag `ours` are not others."""

    def __init__(self, manager: ResourceManager, *, ours: str, queue: str, pause_seconds: float = LOOK_SECONDS) -> None:
        self._manager = manager
        self._ours = ours
        self._queue = queue
        self._pause_seconds = pause_seconds
        self._before: Look | None = None
        self._during: list[Look] = []
        self._missed = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="crowd")

    def present(self) -> Present | None:
        """None where nothing is known."""
        look = self._look()
        if look is None:
            return None
        nodes = look.ours or frozenset(look.room)
        return Present(
            vcores=_sum(look.others, nodes).vcores, of=_sum(look.room, nodes).vcores, is_ours=bool(look.ours)
        )

    def begin(self) -> None:
        self._before = self._look()
        self._thread.start()

    def end(self) -> Crowding | None:
        """What there was since `begin`; None where nobody answered, or nothing of ours ran."""
        self._ending.set()
        self._thread.join(END_SECONDS)
        if not self._thread.is_alive():
            self._keep(self._look())  # a trial may be shorter than the first pause
        return crowding(self._before, list(self._during), missed=self._missed)

    def _watch(self) -> None:
        pause = self._pause_seconds
        while not self._ending.wait(pause):
            began = time.monotonic()
            self._keep(self._look())
            pause = max(self._pause_seconds, (time.monotonic() - began) / MOST_SHARE)

    def _keep(self, look: Look | None) -> None:
        if look is not None:
            self._during.append(look)

    def _look(self) -> Look | None:
        try:
            for _ in range(TRIES):
                # What starts or ends between two answers would be counted as others'.
                held = self._held()
                nodes, queues = self._manager.nodes(), self._manager.queues()
                if held == self._held():
                    break
            else:
                return None
        except YarnstickError:
            self._missed += 1
            return None
        room = {node.id: Held(node.total_vcores, node.total_mib) for node in nodes}
        used = {node.id: Held(node.used_vcores, node.used_mib) for node in nodes}
        if EVERYWHERE in held.by_node:
            room, used = {EVERYWHERE: _sum(room, room)}, {EVERYWHERE: _sum(used, used)}
        return Look(
            others={node: _less(used[node], held.by_node.get(node, Held())) for node in used},
            room=room,
            ours=frozenset(held.executors) & room.keys(),
            queue=_queue_share(queues, name=self._queue, ours=held.in_queue),
        )

    def _held(self) -> _Ours:
        applications = self._manager.applications(tag=self._ours, states=LIVING)
        mine = [each for each in applications if _names(each.queue, self._queue)]
        in_queue = Held(sum(each.allocated_vcores for each in mine), sum(each.allocated_mib for each in mine))
        by_node: dict[str, Held] = defaultdict(Held)
        executors = set()
        for application in applications:
            containers = self._manager.containers(application.id)
            if containers is None:
                return _Ours({EVERYWHERE: _allocated(applications)}, _with_executors(applications), in_queue)
            for each in containers:
                before = by_node[each.node]
                by_node[each.node] = Held(before.vcores + each.vcores, before.mib + each.mib)
                if not each.is_master:
                    executors.add(each.node)
        return _Ours(dict(by_node), frozenset(executors), in_queue)


class _Ours(NamedTuple):
    by_node: dict[str, Held]
    executors: frozenset[str]
    in_queue: Held


def crowding(before: Look | None, during: Sequence[Look], *, missed: int = 0) -> Crowding | None:
    """Only looks in which executors of ours ran count; the nodes of all of them are our nodes."""
    running = [look for look in during if look.ours]
    if not running:
        return None
    nodes = sorted(frozenset().union(*(look.ours for look in running)))
    last = running[-1]
    # A node that is lost in the end was there before.
    room = _sum({node: held for look in running for node, held in look.room.items()}, nodes)

    def course(of: Callable[[Look], float]) -> Course:
        values = [of(look) for look in running]
        return Course(
            before=None if before is None else of(before), mean=sum(values) / len(values), largest=max(values)
        )

    shares = [look.queue for look in running if look.queue is not None]
    return Crowding(
        nodes=tuple(node for node in nodes if node != EVERYWHERE),
        nodes_vcores=room.vcores,
        nodes_mib=room.mib,
        vcores=course(lambda look: _sum(look.others, nodes).vcores),
        mib=course(lambda look: _sum(look.others, nodes).mib),
        cluster_vcores=_sum(last.room, last.room).vcores,
        in_cluster=course(lambda look: _sum(look.others, look.others).vcores),
        queue=Course(before=before and before.queue, mean=sum(shares) / len(shares), largest=max(shares))
        if shares
        else None,
        looks=len(running),
        missed=missed,
    )


def _sum(held: dict[str, Held], nodes: Sequence[str] | frozenset[str] | dict[str, Held]) -> Held:
    found = [held[node] for node in nodes if node in held]
    return Held(sum(each.vcores for each in found), sum(each.mib for each in found))


def _less(all_: Held, ours: Held) -> Held:
    return Held(max(0.0, all_.vcores - ours.vcores), max(0.0, all_.mib - ours.mib))


def _allocated(applications: Sequence[Application]) -> Held:
    return Held(sum(each.allocated_vcores for each in applications), sum(each.allocated_mib for each in applications))


def _with_executors(applications: Sequence[Application]) -> frozenset[str]:
    """Beside its master an application has executors."""
    return frozenset({EVERYWHERE} if any(each.containers > 1 for each in applications) else ())


def _queue_share(queues: Sequence[Queue], *, name: str, ours: Held) -> float | None:
    """Of what it has less of: vcores or memory."""
    queue = next((each for each in queues if _names(each.path, name)), None)
    if queue is None:
        return None
    used = _less(Held(queue.used_vcores, queue.used_mib), ours)
    most = ((used.vcores, queue.maximum_vcores), (used.mib, queue.maximum_mib))
    shares = [part / whole for part, whole in most if whole]
    return max(shares, default=None)


def _names(queue: str, name: str) -> bool:
    """Whether a queue is meant by a name, or a path with or without the root; applications tell either, by version."""
    return queue.removeprefix("root.") == name.removeprefix("root.") or name == queue.rpartition(".")[2]
