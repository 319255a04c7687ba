"""What makes a trial noisy, and in which words."""

from __future__ import annotations

import pytest

from models.noise import crowded, noise, told
from yarn.crowding import Course, Crowding


def crowding(vcores: float, *, of: float = 12) -> Crowding:
    nothing = Course(before=None, mean=0, largest=0)
    return Crowding(
        nodes=("a", "b"),
        nodes_vcores=of,
        nodes_mib=1,
        vcores=Course(before=0, mean=vcores, largest=of),
        mib=nothing,
        cluster_vcores=100,
        in_cluster=nothing,
        queue=None,
        looks=1,
        missed=0,
    )


@pytest.mark.parametrize(
    ("other_load", "found", "why"),
    [
        (0.1, None, None),
        (0.11, None, "load"),
        (0.0, crowding(0.6), None),
        (0.0, crowding(0.7), "cluster"),
        (0.2, crowding(0.7), "load and cluster"),
        (0.2, crowding(0.0), "load"),
        (0.0, crowding(0.0, of=0), None),
    ],
)
def test_noisy_is_what_is_above_its_share(other_load: float, found: Crowding | None, why: str | None) -> None:
    assert noise(other_load=other_load, quiet_cores=0.1, crowding=found, quiet_share=0.05) == why


@pytest.mark.parametrize(
    ("noise", "others_vcores", "said"),
    [
        ("load", None, "others used 1.3 cores"),
        ("load", 3.0, "others used 1.3 cores"),
        (None, None, "others used 1.3 cores"),
        ("cluster", 3.0, "others had 3 of 12 vcores of its nodes"),
        ("cluster", 2.64, "others had 2.6 of 12 vcores of its nodes"),
        ("load and cluster", 3.0, "others used 1.3 cores, and had 3 of 12 vcores of its nodes"),
        ("cluster", None, ""),
    ],
)
def test_it_is_said_what_others_had(noise: str | None, others_vcores: float | None, said: str) -> None:
    """Of records that were written before there was a word for it, too."""
    assert told(noise, other_load=1.26, others_vcores=others_vcores, nodes_vcores=12.0) == said


def test_those_are_counted_that_others_on_the_nodes_disturbed() -> None:
    assert crowded(["load", None, "cluster", "load and cluster"]) == 2
