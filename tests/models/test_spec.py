"""A trial's outcome is found again by its slug: equal specifications have one, different ones never do."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.spec import PRECISIONS, SOLVERS, Hyperparameters, Network, Resources, TrialSpec
from store.errors import SettingError

COUNTS = st.none() | st.integers(1, 2**31 - 1)
RATES = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
NAMES = st.text(min_size=1)
SPECS = st.builds(
    TrialSpec,
    platform=NAMES,
    dataset=NAMES,
    data=NAMES,
    network=st.builds(Network, sizes=st.lists(st.integers(1, 10**9), min_size=2, max_size=5).map(tuple)),
    resources=st.builds(
        Resources,
        executors=COUNTS,
        cores=COUNTS,
        memory_mib=COUNTS,
        workers=COUNTS,
        threads=COUNTS,
        partitions=COUNTS,
        deploy_mode=st.none() | st.sampled_from(["client", "cluster"]),
        device=st.sampled_from(["cpu", "cuda"]),
        shards=COUNTS,
    ),
    hyperparameters=st.builds(
        Hyperparameters,
        solver=st.sampled_from(SOLVERS),
        learning_rate=st.none() | RATES,
        precision=st.sampled_from(PRECISIONS),
        gradient=st.none() | NAMES,
        batch_size=COUNTS,
        epochs=st.integers(1, 10**6),
        staleness=st.none() | st.integers(0, 100),
    ),
    data_fraction=st.floats(min_value=0, max_value=1, exclude_min=True),
    trial=st.integers(1, 1000),
    attempt=st.integers(1, 10),
    seed=st.integers(0, 2**31 - 1),
)
SPEC = TrialSpec(
    platform="mllib",
    dataset="mnist",
    data="mnist-01234567",
    network=Network(sizes=(784, 1024, 10)),
    resources=Resources(executors=2, cores=1, memory_mib=2048, partitions=4, deploy_mode="client"),
    hyperparameters=Hyperparameters(
        solver="gd", learning_rate=0.5, precision="float64", gradient=None, batch_size=None, epochs=5
    ),
    data_fraction=0.25,
    trial=1,
    attempt=1,
    seed=1,
)


@given(SPECS)
def test_json_and_back(spec: TrialSpec) -> None:
    again = TrialSpec.decode(spec.encode())
    assert again == spec
    assert again.slug == spec.slug
    assert "\n" not in spec.encode()


@given(SPECS)
def test_a_slug_is_one_safe_segment(spec: TrialSpec) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*-t[0-9]+-a[0-9]+", spec.slug)
    assert len(spec.slug) < 200


@given(SPECS, SPECS)
def test_different_configurations_have_different_slugs(one: TrialSpec, other: TrialSpec) -> None:
    assert (one.configuration == other.configuration) == (
        replace(one, trial=0, attempt=0, seed=0) == replace(other, trial=0, attempt=0, seed=0)
    )
    if one.configuration != other.configuration:
        assert one.slug != other.slug


def test_a_slug_never_changes() -> None:
    """A run of an older version goes on with the trials that are missing."""
    assert SPEC.slug == "mllib-mlp-784-1024-10-gd-2x1-8dea023a-t1-a1"


@pytest.mark.parametrize(
    "changed",
    [
        replace(SPEC, trial=2),
        replace(SPEC, attempt=2),
        replace(SPEC, data="mnist-76543210"),
        replace(SPEC, data_fraction=0.5),
        replace(SPEC, network=Network(sizes=(784, 1025, 10))),
        replace(SPEC, resources=replace(SPEC.resources, memory_mib=4096)),
        replace(SPEC, resources=replace(SPEC.resources, partitions=8)),
        replace(SPEC, resources=replace(SPEC.resources, shards=1)),
        replace(SPEC, hyperparameters=replace(SPEC.hyperparameters, learning_rate=0.25)),
        replace(SPEC, hyperparameters=replace(SPEC.hyperparameters, epochs=6)),
        replace(SPEC, hyperparameters=replace(SPEC.hyperparameters, staleness=0)),
    ],
)
def test_whatever_is_measured_is_in_the_slug(changed: TrialSpec) -> None:
    assert changed.slug != SPEC.slug


def test_trials_attempts_and_seeds_are_of_one_configuration() -> None:
    assert replace(SPEC, trial=2, seed=2).configuration == SPEC.configuration
    assert SPEC.attempted(2) == replace(SPEC, attempt=2)
    assert SPEC.attempted(2).configuration == SPEC.configuration


def test_a_session_is_shared_by_trials_of_equal_resources() -> None:
    other = replace(SPEC, trial=2, hyperparameters=replace(SPEC.hyperparameters, solver="l-bfgs"))
    assert other.session == SPEC.session
    assert replace(SPEC, resources=replace(SPEC.resources, cores=2)).session != SPEC.session


def test_total_cores() -> None:
    assert Resources(executors=3, cores=2).total_cores == 6
    assert Resources(threads=4).total_cores == 4
    assert Resources().total_cores is None


def test_a_star_is_the_datasets_own_size() -> None:
    assert Network.parse("mlp:*-1024-*", inputs=784, classes=10).name == "mlp:784-1024-10"
    assert Network.parse("mlp:3072-100-50-10").sizes == (3072, 100, 50, 10)
    assert Network.parse("mlp:*-3", inputs=4).sizes == (4, 3)


@given(st.lists(st.integers(1, 10**9 - 1), min_size=2, max_size=6))
def test_a_network_is_its_name(sizes: list[int]) -> None:
    network = Network(sizes=tuple(sizes))
    assert Network.parse(network.name) == network


@pytest.mark.parametrize(
    "name",
    [
        *("", "mlp", "mlp:", "mlp:10", "mlp:784-0-10", "mlp:784--10", "mlp:784-*-10", "mlp:-1-10", "mlp:784-1e3-10"),
        *("mlp:784-1024-10 ", "MLP:784-10", "resnet:784-10", "mlp:\u0667-10", f"mlp:{'9' * 5000}-10"),
    ],
)
def test_a_name_that_is_no_network_says_how_to_write_one(name: str) -> None:
    with pytest.raises(SettingError, match=r"is not known; write mlp:INPUTS-HIDDEN-\.\.\.-CLASSES"):
        Network.parse(name, inputs=784, classes=10)


@pytest.mark.parametrize("name", ["mlp:*-1024-10", "mlp:784-1024-*"])
def test_a_star_without_a_dataset_is_an_error(name: str) -> None:
    with pytest.raises(SettingError, match="no dataset to take the size from"):
        Network.parse(name)


@given(st.text())
def test_any_text_is_a_network_or_a_setting_error(name: str) -> None:
    try:
        network = Network.parse(name, inputs=784, classes=10)
    except SettingError:
        return
    assert network.parameters > 0


def test_parameters_and_work() -> None:
    network = Network(sizes=(784, 1024, 10))
    assert network.parameters == 784 * 1024 + 1024 + 1024 * 10 + 10
    assert network.flop_per_row() == 4 * 784 * 1024 + 6 * 1024 * 10
    assert 60_000 * network.flop_per_row() == pytest.approx(196e9, rel=0.01)
    assert (network.inputs, network.classes) == (784, 10)


@pytest.mark.parametrize(
    ("name", "canonical", "layers"),
    [
        ("mlp:7-5-3", "mlp:7-5-3", ("sigmoid", None)),
        ("mlp:7-5-3:sigmoid", "mlp:7-5-3", ("sigmoid", None)),
        ("mlp:7-5-4-3:relu,tanh", "mlp:7-5-4-3:relu,tanh", ("relu", "tanh", None)),
        ("mlp:784-100-50-10:relu,relu,tanh", "mlp:784-100-50-10:relu,relu,tanh", ("relu", "relu", "tanh")),
        ("mlp:*-5-*:sigmoid,sigmoid", "mlp:7-5-3:sigmoid,sigmoid", ("sigmoid", "sigmoid")),
        ("perceptron:*-*", "perceptron:7-3", (None,)),
        ("mlp:7-3", "perceptron:7-3", (None,)),
        ("torch:my_nets.small:make", "torch:my_nets.small:make", (None,)),
    ],
)
def test_a_network_by_its_name(name: str, canonical: str, layers: tuple[str | None, ...]) -> None:
    network = Network.parse(name, inputs=7, classes=3)
    assert network.name == canonical
    assert network.layer_activations == layers
    assert Network.parse(network.name, inputs=7, classes=3) == network


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mlp:7-5-3:", "is not known"),
        ("mlp:7-5-3:selu", "activation 'selu' is not known; write sigmoid, relu, tanh"),
        ("mlp:7-5-3:relu,relu,relu", "has 1 hidden layers and 3 activations"),
        ("perceptron:7-5-3", "a perceptron has two sizes"),
        ("torch:nothing", "is not known"),
        ("torch:os;x:y", "is not known"),
    ],
)
def test_a_network_that_is_none_is_refused(name: str, reason: str) -> None:
    with pytest.raises(SettingError, match=re.escape(reason)):
        Network.parse(name, inputs=7, classes=3)
