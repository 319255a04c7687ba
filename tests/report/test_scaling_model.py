"""The model of scaling: constants that were put in come out, by the very coefficients that scipy finds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from report.scaling_model import (
    DIRECT,
    DISTINCT,
    PIECES,
    SERVER,
    TREE,
    Measured,
    Model,
    Point,
    Size,
    Speeds,
    communication_of,
    features,
)

CONSTANTS = {"arithmetic": 2e-11, "inputs": 3e-9, "fixed": 0.02, "bytes": 4e-9, "rounds": 0.004, "waves": 0.01}
PEAK = {1: 1e11, 2: 1.8e11, 4: 3.2e11, 8: 6.4e11}


def sizes(communication: str | None) -> list[Size]:
    """A sweep of every axis."""
    found = []
    for rows, hidden in itertools.product((2_000, 8_000, 32_000), (16, 256, 2048)):
        if communication is None:
            found += [Size(rows=rows, layers=(100, hidden, 10), threads=threads) for threads in (1, 2, 4)]
            continue
        for executors, cores in ((1, 1), (2, 1), (4, 1), (1, 2), (2, 2)):
            partitions = 4 if communication == TREE else None
            found.append(
                Size(
                    rows=rows, layers=(100, hidden, 10), executors=executors, cores=cores, partitions=partitions
                )
            )  # fmt: skip
    return found


def took(size: Size, communication: str | None, constants: Mapping[str, float]) -> float:
    found = features(size, communication=communication, speeds=Speeds())
    return sum(value * found[name] for name, value in constants.items())


def points(communication: str | None, constants: Mapping[str, float] = CONSTANTS) -> list[Point]:
    return [Point(size=size, seconds=took(size, communication, constants)) for size in sizes(communication)]


def fitted(found: list[Point], communication: str | None) -> Model:
    return Measured.of(found, communication=communication).fitted()


def test_the_terms_by_hand() -> None:
    size = Size(rows=1000, layers=(20, 30, 5), executors=4, cores=2, partitions=12, batch_size=300)
    speeds = Speeds(cores=(1, 8), of_a_core=(2e9, 1e9))
    found = features(size, communication=TREE, speeds=speeds)
    weights = 21 * 30 + 31 * 5
    # 12 tasks on 8 cores: two waves, so that the busiest core has two twelfths of the rows. 1,000 rows are 4 batches.
    assert found == {
        "arithmetic": pytest.approx(1000 * (4 * 600 + 6 * 150) * 2 / 12 / 1e9),
        "inputs": pytest.approx(1000 * 20 * 2 / 12),
        "values": pytest.approx(1000 * 35 * 2 / 12),
        "shared": 1000 * 55,
        "fixed": 4,
        "update": 4 * weights,
        "bytes": 4 * weights * 2,
        "rounds": 4 * 2,
        "waves": 4 * 2,
        "gradients": 4 * weights * 2,
    }
    pieces = features(replace(size, partitions=None), communication=PIECES, speeds=Speeds())
    assert (pieces["bytes"], pieces["rounds"], pieces["waves"]) == (4 * weights * 2 * 3 / 4, 4 * 3, 0)
    assert pieces["arithmetic"] == pytest.approx(1000 * 3300 / 8)
    server = features(replace(size, partitions=None), communication=SERVER, speeds=Speeds())
    assert server["bytes"] == 4 * weights * 3
    alone = features(Size(rows=1000, layers=(20, 30, 5), threads=8), communication=None, speeds=Speeds())
    assert {alone[name] for name in ("bytes", "rounds", "waves", "gradients")} == {0.0}


@pytest.mark.parametrize("communication", [PIECES, TREE, SERVER, None])
def test_known_constants_come_out(communication: str | None) -> None:
    model = fitted(points(communication), communication)
    for name, value in CONSTANTS.items():
        if name in model.coefficients:
            assert model.coefficients[name] == pytest.approx(value, rel=1e-6), name
    expected = {"arithmetic", "inputs", "fixed"} | ({"bytes", "rounds"} if communication else set())
    assert expected | ({"waves"} if communication == TREE else set()) <= {
        name for name, value in model.coefficients.items() if value > 0
    }
    larger = [Size(rows=128_000, layers=(100, 4096, 10), executors=8, cores=2, partitions=16)]
    if communication is None:
        larger = [Size(rows=128_000, layers=(100, 4096, 10), threads=8)]
    elif communication != TREE:
        larger = [replace(larger[0], partitions=None)]
    for size in (*sizes(communication), *larger):
        assert model.seconds(size) == pytest.approx(took(size, communication, CONSTANTS), rel=1e-6)
        assert sum(model.parts(size).values()) == pytest.approx(model.seconds(size))


def test_the_coefficients_are_those_of_scipy_called_directly() -> None:
    noise = np.random.default_rng(3).normal(1, 0.05, len(sizes(TREE)))
    found = [replace(each, seconds=each.seconds * n) for each, n in zip(points(TREE), noise, strict=True)]
    model = fitted(found, TREE)
    rows = [features(point.size, communication=TREE, speeds=Speeds()) for point in found]
    names = list(model.coefficients)
    matrix = np.array([[row[name] / point.seconds for name in names] for row, point in zip(rows, found, strict=True)])
    length = np.linalg.norm(matrix, axis=0)
    expected, _ = nnls(matrix / length, np.ones(len(found)))
    assert list(model.coefficients.values()) == pytest.approx(list(expected / length), rel=1e-9)


def test_terms_that_cannot_be_told_apart_are_left_out() -> None:
    """With rows as the only axis, all that grows with them is arithmetic, and all else is fixed."""
    found = [
        Point(size=(size := Size(rows=rows, layers=(100, 64, 10), threads=1)), seconds=took(size, None, CONSTANTS))
        for rows in (1_000, 2_000, 4_000, 8_000, 16_000)
    ]
    model = fitted(found, None)
    assert set(model.coefficients) == {"arithmetic", "fixed"}
    for point in found:
        assert model.seconds(point.size) == pytest.approx(point.seconds)
    assert set(model.coefficients) <= set(DIRECT)
    assert 0 < DISTINCT < 1


def test_arithmetic_is_in_units_of_the_measured_speed() -> None:
    """Eight cores that are slower than eight times one: the model knows, though none of it ran on eight."""
    found = []
    for size in sizes(None):
        seconds = 1.3 * size.flop / PEAK[size.total_cores] + 0.01
        found.append(Point(size=size, seconds=seconds, flops=PEAK[size.total_cores]))
    model = fitted(found, None)
    assert model.coefficients["arithmetic"] == pytest.approx(1.3)
    assert model.coefficients["fixed"] == pytest.approx(0.01)
    eight = Size(rows=32_000, layers=(100, 2048, 10), threads=8)
    # Beyond what was measured, a core is as fast as the last ones were.
    assert model.seconds(eight) == pytest.approx(1.3 * eight.flop / (8 * PEAK[4] / 4) + 0.01)
    assert Speeds.of([*found, replace(found[0], flops=None)]) == Speeds()


def test_a_speed_that_more_cores_do_not_change_is_that_of_a_machine_with_no_more() -> None:
    """Two cores were probed, and of four and eight their speed was taken: eight share the arithmetic all the same."""
    found = []
    for executors in (1, 2, 4, 8):
        for rows in (4_000, 16_000):
            size = Size(rows=rows, layers=(100, 256, 10), executors=executors, cores=1)
            seconds = 1.2 * size.flop / (9e10 * executors) + 0.01
            found.append(Point(size=size, seconds=seconds, flops=9e10 * min(executors, 2)))
    assert Speeds.of(found) == Speeds(cores=(1, 2, 4, 8), of_a_core=(9e10,) * 4)
    model = fitted(found, PIECES)
    sixteen = Size(rows=16_000, layers=(100, 256, 10), executors=16, cores=1)
    assert model.seconds(sixteen) == pytest.approx(1.2 * sixteen.flop / (9e10 * 16) + 0.01)


def test_arithmetic_takes_no_less_than_its_floor() -> None:
    """What grows with hidden units for another reason does not take its place; what lies above it is fitted."""
    found = []
    for n, size in enumerate(sizes(None)):
        floor = size.flop / PEAK[size.total_cores]
        odd = 1.3 if n % 2 else 1.0
        found.append(
            Point(size=size, seconds=odd * floor + 2e-8 * size.rows * sum(size.layers), flops=PEAK[size.total_cores])
        )
    model = fitted(found, None)
    assert model.coefficients["arithmetic"] >= 1
    for point in found:
        assert model.seconds(point.size) >= point.size.flop / PEAK[point.size.total_cores]
    faster = [replace(point, seconds=0.5 * point.size.flop / PEAK[point.size.total_cores]) for point in found]
    assert fitted(faster, None).coefficients["arithmetic"] == pytest.approx(0.5), "the probe was of a slower moment"
    rows = [features(point.size, communication=None, speeds=Speeds.of(found)) for point in found]
    names = list(model.coefficients)
    matrix = np.array([[row[name] / point.seconds for name in names] for row, point in zip(rows, found, strict=True)])
    length = np.linalg.norm(matrix, axis=0)
    above, _ = nnls(matrix / length, 1 - matrix[:, names.index("arithmetic")])
    expected = dict(zip(names, above / length, strict=True))
    expected["arithmetic"] += 1
    assert model.coefficients == pytest.approx(expected)


def test_the_exchange_is_fitted_to_its_own_probe_first() -> None:
    exchanged = {"fixed": 0.03, "bytes": 5e-9, "waves": 0.002}
    found = []
    for point in points(TREE, {}):
        probe = took(replace(point.size, rows=1, layers=point.size.layers), TREE, exchanged)
        seconds = took(point.size, TREE, {"arithmetic": 2e-11}) + 1.5 * probe
        found.append(Point(size=point.size, seconds=seconds, exchange_seconds=probe))
    model = fitted(found, TREE)
    assert model.coefficients["exchange"] == pytest.approx(1.5)
    assert model.coefficients["arithmetic"] == pytest.approx(2e-11)
    for name, value in exchanged.items():
        assert model.exchange[name] == pytest.approx(value)
    assert model.parts(found[0].size)["communication"] == pytest.approx(1.5 * (found[0].exchange_seconds or 0))


def test_a_rank_alone_needs_no_probe_and_a_probe_too_few_is_none() -> None:
    found = []
    for point in points(PIECES, {"arithmetic": 2e-11, "bytes": 4e-9}):
        alone = point.size.executors == 1
        found.append(replace(point, exchange_seconds=None if alone else took(point.size, PIECES, {"bytes": 4e-9})))
    model = fitted(found, PIECES)
    assert model.coefficients["exchange"] == pytest.approx(1.0)
    together = next(number for number, point in enumerate(found) if point.size.executors == 2)
    found[together] = replace(found[together], exchange_seconds=None)
    assert not fitted(found, PIECES).exchange


def test_who_has_executors_communicates() -> None:
    on_threads = [Point(size=Size(rows=1, layers=(), threads=2), seconds=1.0)]
    on_executors = [Point(size=Size(rows=1, layers=(), executors=2, cores=1), seconds=1.0)]
    assert communication_of("torch-cpu", on_threads) is None
    assert communication_of("mllib", on_executors) == TREE
    assert communication_of("torch-spark", on_executors) == PIECES
    assert communication_of("torch-spark-async", on_executors) == SERVER


@settings(max_examples=60, deadline=None)
@given(
    communication=st.sampled_from([PIECES, TREE, SERVER, None]),
    measured=st.lists(st.floats(1e-3, 1e3), min_size=45, max_size=45),
    rows=st.integers(1, 10**8),
    more=st.integers(0, 10**8),
    hidden=st.integers(1, 10**5),
    executors=st.integers(1, 512),
    batch=st.one_of(st.none(), st.integers(1, 10**6)),
)
def test_no_prediction_is_negative_and_more_rows_or_units_are_never_faster(
    communication: str | None,
    measured: list[float],
    rows: int,
    more: int,
    hidden: int,
    executors: int,
    batch: int | None,
) -> None:
    """Whatever was measured, sense or nonsense."""
    found = [Point(size=size, seconds=took) for size, took in zip(sizes(communication), measured, strict=False)]
    model = fitted(found, communication)
    assert all(value >= 0 for value in model.coefficients.values())
    size = Size(rows=rows, layers=(100, hidden, 10), threads=executors, batch_size=batch)
    if communication is not None:
        size = replace(size, threads=None, executors=executors, cores=1)
    least = model.seconds(size)
    assert least >= 0
    assert model.seconds(replace(size, rows=rows + more)) >= least * (1 - 1e-9)
    assert model.seconds(replace(size, layers=(100, hidden + more, 10))) >= least * (1 - 1e-9)
