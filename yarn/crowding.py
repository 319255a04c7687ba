"""What others had of a shared cluster before and while a trial of ours ran, made of single looks. Asks nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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


def crowding(before: Look | None, during: Sequence[Look], *, missed: int = 0) -> Crowding | None:
    """Only looks in which executors of ours ran count; the nodes of all of them are our nodes."""
    running = [look for look in during if look.ours]
    if not running:
        return None
    nodes = sorted(frozenset().union(*(look.ours for look in running)))
    last = running[-1]
    # A node that is lost meanwhile has nothing any more, but was one of ours.
    room = total({node: max(look.room.get(node, Held()) for look in running) for node in nodes}, nodes)

    def course(of: Callable[[Look], float]) -> Course:
        return _course(None if before is None else of(before), [of(look) for look in running])

    shares = [look.queue for look in running if look.queue is not None]
    return Crowding(
        nodes=tuple(node for node in nodes if node != EVERYWHERE),
        nodes_vcores=room.vcores,
        nodes_mib=room.mib,
        vcores=course(lambda look: total(look.others, nodes).vcores),
        mib=course(lambda look: total(look.others, nodes).mib),
        cluster_vcores=total(last.room, last.room).vcores,
        in_cluster=course(lambda look: total(look.others, look.others).vcores),
        queue=_course(before.queue if before is not None else None, shares) if shares else None,
        looks=len(running),
        missed=missed,
    )


def _course(before: float | None, values: Sequence[float]) -> Course:
    return Course(before=before, mean=sum(values) / len(values), largest=max(values))


def total(held: Mapping[str, Held], nodes: Iterable[str]) -> Held:
    nodes = set(nodes)
    found = [each for node, each in held.items() if node in nodes or EVERYWHERE in nodes]
    return Held(sum(each.vcores for each in found), sum(each.mib for each in found))


def less(all_: Held, ours: Held) -> Held:
    return Held(max(0.0, all_.vcores - ours.vcores), max(0.0, all_.mib - ours.mib))
