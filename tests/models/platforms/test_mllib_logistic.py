"""MLlib's logistic regression: where it starts, its passes in the event log, and what it can't do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from models.platforms.mllib import MLlib
from models.platforms.mllib_logistic import MLlibLogistic
from models.protocol import Epoch
from models.spec import Network
from tests.models.made import CLASSES, COLUMNS, packed, spec, surroundings

PERCEPTRON = Network(sizes=(COLUMNS, CLASSES))


@pytest.fixture(scope="module")
def trainers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MLlib, MLlibLogistic]]:
    given = surroundings(tmp_path_factory.mktemp("session"))
    made = MLlib(given), MLlibLogistic(given)
    yield made
    for each in made:
        each.close()


@pytest.mark.parametrize(
    ("network", "solver", "why"),
    [
        ("mlp:12-8-3", "l-bfgs", "MLlib's logistic regression has no hidden layers, and mlp:12-8-3 has some"),
        ("perceptron:12-3", "gd", "MLlib's logistic regression has only the solver l-bfgs, not gd"),
        ("perceptron:12-3:relu", "l-bfgs", "MLlib has only sigmoid hidden layers"),
        ("torch:small_cnn:make", "l-bfgs", "is a module of torch"),
    ],
)
def test_what_it_cannot_do_is_a_sentence(tmp_path: Path, network: str, solver: str, why: str) -> None:
    trial = spec("mllib-logistic", network=Network.parse(network, inputs=COLUMNS, classes=CLASSES), solver=solver)
    assert why in (MLlibLogistic(surroundings(tmp_path)).unavailable(trial) or "")


@pytest.mark.spark
def test_both_ways_of_mllib_share_an_application(tmp_path: Path, trainers: tuple[MLlib, MLlibLogistic]) -> None:
    data = packed(tmp_path, noise=150)
    found: list[list[Epoch]] = []
    for trainer in trainers:
        trial = spec(trainer.name, network=PERCEPTRON, solver="l-bfgs", learning_rate=None, epochs=8)
        found.append(list(trainer.train(trial, data)))
    perceptron, logistic = found
    assert perceptron[0].startup_seconds == logistic[0].startup_seconds
    # It starts from zeros and the classes' shares: its first loss is their entropy, to the one that MLlib adds to each.
    shares = np.bincount(data.read_train(1.0)[1]) / data.train_rows
    assert logistic[0].loss == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-4)
    assert perceptron[0].loss != pytest.approx(logistic[0].loss, rel=1e-4)
    assert perceptron[-1].loss == pytest.approx(logistic[-1].loss, rel=0.1)
    assert [epoch.epoch for epoch in logistic] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert logistic[0].passes == 2, "the pass at the initial weights belongs to the first iteration"
    for epoch in logistic:
        assert (epoch.updates, epoch.samples, epoch.clock) == (1, epoch.passes * data.train_rows, "eventlog")
        assert epoch.load_seconds
        assert epoch.note is None
