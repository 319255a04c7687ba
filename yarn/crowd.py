"""Looks at what others have of a shared cluster, while a trial of ours runs: of its nodes, of all, of its queue."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from store.errors import YarnstickError
from yarn.crowding import EVERYWHERE, Crowding, Held, Look, Present, crowding, less, total
from yarn.queues import Queue
from yarn.resource_manager import Application, ResourceManager
from yarn.submission import LIVING

LOOK_SECONDS = 2.0
MOST_SHARE = 0.05  # of the time is spent on looking: the answers of a large cluster are long
TRIES = 3  # at a look in which nothing of ours comes or goes
END_SECONDS = 30.0


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
        self._took = 0.0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="crowd")

    @property
    def pause_seconds(self) -> float:
        """Until the next look is due: the longer the last one took, the longer."""
        return max(self._pause_seconds, self._took / MOST_SHARE)

    def present(self) -> Present | None:
        """None where nothing is known."""
        look = self._look()
        if look is None:
            return None
        nodes = look.ours or frozenset(look.room)
        return Present(
            vcores=total(look.others, nodes).vcores, of=total(look.room, nodes).vcores, is_ours=bool(look.ours)
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
        while not self._ending.wait(self.pause_seconds):
            self._keep(self._look())

    def _keep(self, look: Look | None) -> None:
        if look is not None:
            self._during.append(look)

    def _look(self) -> Look | None:
        began = time.monotonic()
        try:
            return self._asked()
        except YarnstickError:
            self._missed += 1
            return None
        finally:
            self._took = time.monotonic() - began

    def _asked(self) -> Look | None:
        """None where ours came and went all the time."""
        for _ in range(TRIES):
            # What starts or ends between two answers would be counted as others'.
            held = self._held()
            nodes, queues = self._manager.nodes(), self._manager.queues()
            if held == self._held():
                break
        else:
            return None
        room = {node.id: Held(node.total_vcores, node.total_mib) for node in nodes}
        used = {node.id: Held(node.used_vcores, node.used_mib) for node in nodes}
        if EVERYWHERE in held.by_node:
            room, used = {EVERYWHERE: total(room, room)}, {EVERYWHERE: total(used, used)}
        return Look(
            others={node: less(used[node], held.by_node.get(node, Held())) for node in used},
            room=room,
            ours=frozenset(held.executors) & room.keys(),
            queue=_queue_share(queues, name=self._queue, ours=held.in_queue),
        )

    def _held(self) -> _Ours:
        applications = self._manager.applications(tag=self._ours, states=LIVING)
        mine = [each for each in applications if _names(each.queue, self._queue)]
        in_queue = _allocated(mine)
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
    used = less(Held(queue.used_vcores, queue.used_mib), ours)
    most = ((used.vcores, queue.maximum_vcores), (used.mib, queue.maximum_mib))
    shares = [part / whole for part, whole in most if whole]
    return max(shares, default=None)


def _names(queue: str, name: str) -> bool:
    """Whether a queue is meant by a name, or a path with or without the root; applications tell either, by version."""
    return queue.removeprefix("root.") == name.removeprefix("root.") or name == queue.rpartition(".")[2]
