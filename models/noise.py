"""Why a trial is noisy: others used its machine, or had part of its nodes on YARN; and how that is said."""

from __future__ import annotations

from collections.abc import Iterable

from yarn.crowding import Crowding

# What a record's `noise` is: one of these, or the first and the second.
LOAD, CLUSTER = "load", "cluster"
BOTH = f"{LOAD} and {CLUSTER}"


def noise(*, other_load: float, quiet_cores: float, crowding: Crowding | None, quiet_share: float) -> str | None:
    """None where it was quiet enough."""
    crowded = crowding is not None and crowding.share > quiet_share
    if other_load > quiet_cores:
        return BOTH if crowded else LOAD
    return CLUSTER if crowded else None


def crowded(noises: Iterable[str | None]) -> int:
    """How many of these were noisy because of others on the nodes."""
    return sum(each in (CLUSTER, BOTH) for each in noises)


def told(
    noise: str | None, *, other_load: float | None, others_vcores: float | None, nodes_vcores: float | None
) -> str:
    """`others used 1.3 cores`, `others had 3 of 12 vcores of its nodes`, or both; empty where that is not known."""
    parts = []
    if noise != CLUSTER and other_load is not None:
        parts.append(f"used {other_load:.1f} cores")
    if noise in (CLUSTER, BOTH) and others_vcores is not None and nodes_vcores is not None:
        parts.append(f"had {plain(others_vcores)} of {plain(nodes_vcores)} vcores of its nodes")
    return f"others {', and '.join(parts)}" if parts else ""


def plain(vcores: float) -> str:
    """`3`, `2.6`."""
    return f"{vcores:.1f}".removesuffix(".0")
