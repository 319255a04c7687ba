"""To how many iterations MLlib is fitted again, and when it is enough."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models.mllib_refits import accuracies, steps
from models.spec import TrialSpec
from tests.models.made import spec


@given(st.integers(1, 10**6))
def test_each_step_is_twice_the_last_and_short_of_the_whole(epochs: int) -> None:
    found = list(steps(epochs))
    assert found == [2**n for n in range(len(found))]
    assert all(each < epochs for each in found)
    assert epochs <= 2 * (found[-1] if found else 1)


def of(epochs: int, reached: dict[int, float | None], *, target: float | None) -> tuple[dict[int, float], list[int]]:
    asked = []

    def judge(shorter: TrialSpec) -> float | None:
        asked.append(shorter.hyperparameters.epochs)
        return reached[shorter.hyperparameters.epochs]

    return accuracies(spec("mllib", epochs=epochs), target=target, judge=judge), asked


def test_the_first_that_reaches_the_target_is_the_last() -> None:
    found, asked = of(100, {1: 0.1, 2: 0.3, 4: 0.6, 8: 0.9, 16: 0.95}, target=0.6)
    assert (found, asked) == ({1: 0.1, 2: 0.3, 4: 0.6}, [1, 2, 4])


def test_where_none_reaches_it_all_steps_are_known() -> None:
    found, asked = of(10, {1: 0.1, 2: 0.3, 4: 0.2, 8: 0.5}, target=0.6)
    assert (list(found), asked) == ([1, 2, 4, 8], [1, 2, 4, 8])


def test_without_a_target_nothing_is_fitted_again() -> None:
    assert of(10, {}, target=None) == ({}, [])


def test_weights_that_are_no_numbers_end_it() -> None:
    assert of(10, {1: 0.1, 2: None}, target=0.6) == ({1: 0.1}, [1, 2])


def test_only_the_number_of_iterations_differs() -> None:
    given: list[TrialSpec] = []
    whole = spec("mllib", epochs=3)
    accuracies(whole, target=0.9, judge=lambda shorter: given.append(shorter) or 0.1)
    assert [(each.seed, each.resources, each.hyperparameters.solver) for each in given] == [
        (whole.seed, whole.resources, whole.hyperparameters.solver)
    ] * 2
