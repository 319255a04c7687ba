"""A rehearsal is due once for each application, and only where the first epoch would not do as warm-up."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from models.fits import REHEARSAL
from models.mllib_rehearsal import ENOUGH_FLOP, LEAST_FLOP, MOST_ITERATIONS, Rehearsals, iterations
from models.spec import Network, TrialSpec
from tests.models.made import spec

SMALL = Network(sizes=(784, 64, 10))


class Context:
    def __init__(self, name: str) -> None:
        self.applicationId = name
        self.groups: list[str] = []

    def setJobGroup(self, group: str, _: str) -> None:  # noqa: N802
        self.groups.append(group)


def rehearsed(known: Rehearsals, context: Any, asked: TrialSpec, *, rows: int = 4_000) -> list[int]:
    found: list[int] = []
    known.before(asked, context, rows=rows, fit=lambda shorter: found.append(shorter.hyperparameters.epochs))
    return found


def test_once_for_each_application_and_in_a_group_of_its_own() -> None:
    known, first, second = Rehearsals(), Context("a"), Context("b")
    asked = spec("mllib", network=SMALL)
    assert rehearsed(known, first, asked) == [MOST_ITERATIONS]
    assert first.groups == [REHEARSAL, asked.slug]
    assert rehearsed(known, first, asked) == []
    assert rehearsed(known, second, asked) == [MOST_ITERATIONS]


def test_a_large_training_needs_none_nor_does_what_follows_it() -> None:
    known, context = Rehearsals(), Context("a")
    assert rehearsed(known, context, spec("mllib", network=Network(sizes=(784, 1024, 10))), rows=60_000) == []
    assert rehearsed(known, context, spec("mllib", network=SMALL)) == []


@given(rows=st.integers(1, 10**7), hidden=st.integers(1, 4096))
def test_a_rehearsal_is_as_long_as_it_must_be_and_no_longer(rows: int, hidden: int) -> None:
    network = Network(sizes=(784, hidden, 10))
    asked = spec("mllib", network=network)
    flop = rows * (network.flop_per_row() or 0) / (asked.resources.total_cores or 1)
    found = iterations(asked, rows=rows)
    assert 0 <= found <= MOST_ITERATIONS
    if not LEAST_FLOP <= flop < ENOUGH_FLOP:
        assert found == 0
    else:
        assert found == MOST_ITERATIONS or found * flop >= ENOUGH_FLOP > (found - 1) * flop
