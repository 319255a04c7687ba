"""From a profile to the trials it asks for: every configuration of its lists, in shuffled complete blocks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from models.protocol import Platform, platform
from models.spark_containers import executor_mib, master_cores, master_mib
from models.spec import FULL_BATCH_SOLVERS, Hyperparameters, Network, Resources, TrialSpec
from pipeline.settings import Profile, Settings
from store.errors import SettingError

# Which part of a spec each list of a profile fills in.
OF_EXECUTORS = ("executors", "cores", "memory_mib", "partitions", "deploy_modes", "devices", "balances", "shards")
RESOURCE_AXES = (*OF_EXECUTORS, "threads", "workers")
OF_TRAINING = (
    "solvers",
    "learning_rates",
    "initial_weights",
    "batch_sizes",
    "precisions",
    "gradients",
    "compressions",
    "staleness",
    "fractions",
)
AXES = (*RESOURCE_AXES, *OF_TRAINING)
LIMITED = ("executors", "cores", "memory_mib", "threads")  # by what this machine has
FIELD = {
    "deploy_modes": "deploy_mode",
    "solvers": "solver",
    "learning_rates": "learning_rate",
    "batch_sizes": "batch_size",
    "precisions": "precision",
    "gradients": "gradient",
    "compressions": "compression",
    "devices": "device",
    "balances": "balance",
    "fractions": "data_fraction",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A dataset as the plan needs it."""

    name: str
    slug: str
    columns: int
    classes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a queue of YARN gives at most: to an application as a whole, and to one container."""

    queue: str
    cores: int
    memory_mib: int
    largest_cores: int
    largest_mib: int
    python_mib: int = 0  # that each executor's Python takes beside its heap
    spark_conf: Mapping[str, str] = field(default_factory=dict)  # a user's own, which wins over what we ask for


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What this machine has, and the queue where executors are on YARN."""

    cores: int
    memory_mib: int
    room: Room | None = None
    has_executors: bool = True  # else they are on machines that are not asked what they have


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A trial in its place, or why it cannot be."""

    spec: TrialSpec
    impossible: str | None


def plan(settings: Settings, subjects: list[Subject], limits: Limits) -> list[Planned]:
    """All trials in the order in which they run."""
    configurations: dict[str, Planned] = {}
    for subject, network in _pairs(settings.profile, subjects):
        for name in settings.profile.platforms:
            for planned in _configurations(settings, subject, network, platform(name), limits):
                configurations.setdefault(planned.spec.configuration, planned)
    if not configurations:
        raise SettingError(
            f"profile.{settings.profile_name} asks for no trial at all; give it platforms, solvers and batch_sizes "
            "that go together, as solvers = gd"
        )
    reasons = [planned.impossible for planned in configurations.values()]
    if all(reasons):
        raise SettingError(
            f"nothing of profile.{settings.profile_name} can run here: {reasons[0]}; add a smaller value to the profile"
        )
    return list(_blocks(list(configurations.values()), settings))


def _pairs(profile: Profile, subjects: list[Subject]) -> Iterator[tuple[Subject, Network]]:
    """Each dataset with the networks that fit it. One without a partner is an error with both numbers."""
    found: list[tuple[Subject, Network]] = []
    partners: set[str] = set()
    for subject in subjects:
        for name in profile.networks:
            network = Network.parse(name, inputs=subject.columns, classes=subject.classes)
            if (network.inputs, network.classes) == (subject.columns, subject.classes):
                found.append((subject, network))
                partners |= {subject.name, name}
    for subject in subjects:
        if subject.name not in partners:
            raise SettingError(
                f"dataset {subject.name} has {subject.columns} columns and {subject.classes} classes, and none of the "
                f"networks {' '.join(profile.networks)} fits; write mlp:*-1024-* or the sizes it needs"
            )
    for name in profile.networks:
        if name not in partners:
            known = "; ".join(f"{each.name} has {each.columns} and {each.classes}" for each in subjects)
            raise SettingError(
                f"network {name} fits none of the datasets by inputs and classes: {known}; write mlp:*-1024-*, "
                "or the sizes of one of them"
            )
    yield from found


def _configurations(
    settings: Settings,
    subject: Subject,
    network: Network,
    kind: type[Platform],
    limits: Limits,
) -> Iterator[Planned]:
    profile, named = settings.profile, f"profile.{settings.profile_name}"
    lists: dict[str, tuple[Any, ...]] = {
        axis: (getattr(profile, axis) or (None,)) if axis in kind.axes else (None,) for axis in AXES
    }
    if "partitions" in kind.axes:
        lists["partitions"] = profile.partitions or (_largest_slots(profile, limits),)
    for values in itertools.product(*lists.values()):
        chosen = {FIELD.get(axis, axis): value for axis, value in zip(lists, values, strict=True)}
        chosen |= kind.fixed
        if chosen["solver"] in FULL_BATCH_SOLVERS:
            chosen["batch_size"] = None
        elif chosen["batch_size"] is None and "batch_sizes" in kind.axes:
            if profile.batch_sizes == (None,):
                raise SettingError(
                    f"solver {chosen['solver']} needs a batch size, and {named}.batch_sizes has only full; "
                    f"add a number there, or ask for gd"
                )
            continue  # full is for the full-batch solvers
        if chosen["solver"] == "l-bfgs":
            chosen["learning_rate"] = None
        if chosen["initial_weights"] == "glorot" or network.source is not None:
            chosen["initial_weights"] = None
        chosen["device"] = chosen["device"] or "cpu"
        resources = Resources(**{FIELD.get(axis, axis): chosen[FIELD.get(axis, axis)] for axis in RESOURCE_AXES})
        spec = TrialSpec(
            platform=kind.name,
            dataset=subject.name,
            data=subject.slug,
            network=network,
            resources=resources,
            hyperparameters=Hyperparameters(
                solver=chosen["solver"],
                learning_rate=chosen["learning_rate"],
                precision=chosen["precision"] or "float32",
                gradient=chosen["gradient"],
                compression=chosen["compression"],
                staleness=chosen["staleness"],
                initial_weights=chosen["initial_weights"],
                batch_size=chosen["batch_size"],
                epochs=profile.epochs,
            ),
            data_fraction=chosen["data_fraction"] or 1.0,
            trial=0,
            attempt=1,
            seed=0,
        )
        demanded = _beyond(_demanded(resources, profile), limits)
        if demanded:
            raise SettingError(f"{kind.name}: {demanded}; lower the values of {named}, or give several to sweep")
        yield Planned(spec=spec, impossible=_beyond(resources, limits))


def _beyond(resources: Resources, limits: Limits) -> str | None:
    """Why resources exceed this machine."""
    r = resources
    if r.threads is not None and r.threads > limits.cores:
        return f"threads={r.threads} exceeds the {limits.cores} cores of this machine"
    if r.executors is None:
        return None
    if limits.room is not None:
        return _beyond_room(r, limits.room)
    if not limits.has_executors:
        return None
    cores, memory = r.executors * (r.cores or 1), r.executors * (r.memory_mib or 0)
    if cores > limits.cores:
        return f"executors={r.executors} x cores={r.cores} are {cores} cores, and this machine has {limits.cores}"
    if memory > limits.memory_mib:
        return (
            f"executors={r.executors} x memory_mib={r.memory_mib} are {memory} MiB, and this machine has "
            f"{limits.memory_mib}"
        )
    return None


def _beyond_room(resources: Resources, room: Room) -> str | None:
    """Why resources exceed what the queue gives, where each executor and the application master is a container."""
    r = resources
    executors, cores, memory = r.executors or 0, r.cores or 1, r.memory_mib or 0
    container = executor_mib(r, python_mib=room.python_mib, given=room.spark_conf)
    master = master_mib(r, given=room.spark_conf)
    queue = f"of queue {room.queue}"
    if cores > room.largest_cores:
        return f"cores={cores} exceeds the {room.largest_cores} vcores of the largest container {queue}"
    if container > room.largest_mib:
        return (
            f"memory_mib={memory} is {container} MiB with Spark's overhead, which exceeds the {room.largest_mib} MiB "
            f"of the largest container {queue}"
        )
    if master > room.largest_mib:
        what = "driver (deploy_modes=cluster)" if r.deploy_mode == "cluster" else "application master"
        return (
            f"Spark's {what} is {master} MiB with its overhead, which exceeds the {room.largest_mib} MiB of the "
            f"largest container {queue}"
        )
    all_cores = executors * cores + master_cores(r, given=room.spark_conf)
    all_memory = executors * container + master
    if all_cores > room.cores:
        return (
            f"executors={executors} x cores={cores} are {all_cores} vcores with the application master, and "
            f"queue {room.queue} has at most {room.cores}"
        )
    if all_memory > room.memory_mib:
        return (
            f"executors={executors} x memory_mib={memory} are {all_memory} MiB with overhead and application master, "
            f"and queue {room.queue} has at most {room.memory_mib}"
        )
    return None


def _demanded(resources: Resources, profile: Profile) -> Resources:
    """The part of resources that is no choice: one value in a list is a demand, several are a sweep."""
    swept: dict[str, Any] = {
        axis: 1 for axis in LIMITED if getattr(resources, axis) and len(getattr(profile, axis)) > 1
    }
    if resources.deploy_mode and len(profile.deploy_modes) > 1:
        swept["deploy_mode"] = "client"
    return replace(resources, **swept)


def _largest_slots(profile: Profile, limits: Limits) -> int:
    """Partitions stay the same over a sweep, as many as the largest of its settings that fit has slots."""
    sweep = itertools.product(profile.executors, profile.cores, profile.memory_mib, profile.deploy_modes)
    fitting = (Resources(executors=e, cores=c, memory_mib=m, deploy_mode=mode) for e, c, m, mode in sweep)
    return max((each.total_cores or 1 for each in fitting if _beyond(each, limits) is None), default=1)


def _blocks(configurations: list[Planned], settings: Settings) -> Iterator[Planned]:
    """Every configuration once in a block, shuffled; those that share a session stay together."""
    for block in range(1, settings.profile.trials + 1):
        shuffle = random.Random(f"{settings.main.seed} {block}")
        sessions: dict[Any, list[Planned]] = {}
        for planned in configurations:
            own = planned.spec.configuration if settings.profile.session == "own" else ""
            sessions.setdefault((planned.spec.session, own), []).append(planned)
        order = list(sessions)
        shuffle.shuffle(order)
        for key in order:
            shuffle.shuffle(sessions[key])
            for planned in sessions[key]:
                spec = replace(planned.spec, trial=block, seed=settings.main.seed + block)
                yield replace(planned, spec=spec)
