"""From a profile to the trials it asks for: every configuration of its lists, in shuffled complete blocks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from models.protocol import Platform, platform
from models.spec import FULL_BATCH_SOLVERS, Hyperparameters, Network, Resources, TrialSpec
from pipeline.config import Profile, Settings
from store.errors import SettingError

# Which part of a spec each list of a profile fills in.
RESOURCE_AXES = ("executors", "cores", "memory_mib", "threads", "workers", "partitions", "deploy_modes")
AXES = (*RESOURCE_AXES, "solvers", "learning_rates", "batch_sizes", "precisions", "gradients", "fractions")
FIELD = {
    "deploy_modes": "deploy_mode",
    "solvers": "solver",
    "learning_rates": "learning_rate",
    "batch_sizes": "batch_size",
    "precisions": "precision",
    "gradients": "gradient",
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
class Limits:
    """What this machine has."""

    cores: int
    memory_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A trial in its place, or why it cannot be."""

    spec: TrialSpec
    impossible: str | None


def plan(settings: Settings, subjects: list[Subject], limits: Limits) -> list[Planned]:
    """All trials in the order in which they run."""
    profile = settings.profile
    partitions = profile.partitions or (_largest_slots(profile, limits),)
    configurations: dict[str, Planned] = {}
    for subject, network in _pairs(profile, subjects):
        for name in profile.platforms:
            for planned in _configurations(profile, subject, network, platform(name), partitions, limits):
                configurations.setdefault(planned.spec.configuration, planned)
    if not configurations:
        raise SettingError(f"profile.{settings.profile_name} asks for no trial at all")
    reasons = [planned.impossible for planned in configurations.values()]
    if all(reasons):
        raise SettingError(f"nothing of profile.{settings.profile_name} can run here: {reasons[0]}")
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
            raise SettingError(f"network {name} fits none of the datasets by inputs and classes: {known}")
    yield from found


def _configurations(
    profile: Profile,
    subject: Subject,
    network: Network,
    kind: type[Platform],
    partitions: tuple[int, ...],
    limits: Limits,
) -> Iterator[Planned]:
    lists: dict[str, tuple[Any, ...]] = {
        axis: (getattr(profile, axis) or (None,)) if axis in kind.axes else (None,) for axis in AXES
    }
    if "partitions" in kind.axes:
        lists["partitions"] = partitions
    for values in itertools.product(*lists.values()):
        chosen = {FIELD.get(axis, axis): value for axis, value in zip(lists, values, strict=True)}
        chosen |= kind.fixed
        if chosen["solver"] in FULL_BATCH_SOLVERS:
            chosen["batch_size"] = None
        elif chosen["batch_size"] is None and "batch_sizes" in kind.axes:
            if profile.batch_sizes == (None,):
                raise SettingError(
                    f"solver {chosen['solver']} needs a batch size, and profile batch_sizes has only full; "
                    f"add a number, or ask for gd"
                )
            continue  # full is for the full-batch solvers
        if chosen["solver"] == "l-bfgs":
            chosen["learning_rate"] = None
        resources = Resources(
            **{FIELD.get(axis, axis): chosen[FIELD.get(axis, axis)] for axis in RESOURCE_AXES},
            device=chosen.get("device", "cpu"),
        )
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
                batch_size=chosen["batch_size"],
                epochs=profile.epochs,
            ),
            data_fraction=chosen["data_fraction"] or 1.0,
            trial=0,
            attempt=1,
            seed=0,
        )
        beyond = _beyond(resources, limits)
        if beyond and not _is_swept(profile, kind):
            raise SettingError(f"{kind.name}: {beyond[0]}; {beyond[1]}")
        yield Planned(spec=spec, impossible=beyond[0] if beyond else None)


def _beyond(resources: Resources, limits: Limits) -> tuple[str, str] | None:
    """Why resources exceed this machine, and what to do about it."""
    r = resources
    if r.executors is not None and r.cores is not None:
        total = r.executors * r.cores
        if total > limits.cores:
            return (
                f"executors={r.executors} x cores={r.cores} are {total} cores, and this machine has {limits.cores}",
                "lower executors or cores of the profile",
            )
        memory = r.executors * (r.memory_mib or 0)
        if memory > limits.memory_mib:
            return (
                f"executors={r.executors} x memory_mib={r.memory_mib} are {memory} MiB, and this machine has "
                f"{limits.memory_mib}",
                "lower executors or memory_mib of the profile",
            )
    if r.threads is not None and r.threads > limits.cores:
        return f"threads={r.threads} exceeds the {limits.cores} cores of this machine", "lower threads of the profile"
    return None


def _is_swept(profile: Profile, kind: type[Platform]) -> bool:
    swept = ("executors", "cores", "memory_mib", "threads")
    return any(axis in kind.axes and len(getattr(profile, axis)) > 1 for axis in swept)


def _largest_slots(profile: Profile, limits: Limits) -> int:
    """Partitions stay the same over a sweep, as many as its largest setting has slots."""
    return max((e * c for e in profile.executors for c in profile.cores if e * c <= limits.cores), default=1)


def _blocks(configurations: list[Planned], settings: Settings) -> Iterator[Planned]:
    """Every configuration once in a block, shuffled; those that share a session stay together."""
    for block in range(1, settings.profile.trials + 1):
        shuffle = random.Random(f"{settings.main.seed} {block}")  # noqa: S311 (an order, no secret)
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
