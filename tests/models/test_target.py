"""How a target is written, and for which networks it is meant."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from models.protocol import Surroundings
from models.target import Target, target_accuracy
from store.errors import SettingError
from tests.models.made import surroundings


@pytest.mark.parametrize(
    ("text", "dataset", "network", "accuracy"),
    [
        ("mnist=0.9", "mnist", None, 0.9),
        ("mnist@mlp:*-1024-*=1", "mnist", "mlp:*-1024-*", 1.0),
        ("mnist@mlp:784-10-10:relu=0.5", "mnist", "mlp:784-10-10:relu", 0.5),
        ("mnist@torch:nets:small=0.5", "mnist", "torch:nets:small", 0.5),
        ("csv:/data/a@b=c.csv=0.8", "csv:/data/a@b=c.csv", None, 0.8),
    ],
)
def test_a_target_is_of_a_dataset_or_of_a_network_on_it(
    text: str, dataset: str, network: str | None, accuracy: float
) -> None:
    assert Target.parse(text) == Target(dataset=dataset, network=network, accuracy=accuracy)


@pytest.mark.parametrize("text", ["mnist", "mnist=", "=0.9", "mnist=nan", "mnist=90", "mnist=0", "mnist=-1", "mnist=a"])
def test_what_is_no_target_says_how_to_write_one(text: str) -> None:
    with pytest.raises(SettingError, match=r"write DATASET=0.9, or DATASET@NETWORK=0.9"):
        Target.parse(text)


def test_a_star_is_the_datasets_own_size() -> None:
    target = Target.parse("mnist@mlp:*-1024-*=0.9")
    assert target.is_of("mnist", "mlp:784-1024-10")
    assert not target.is_of("mnist", "mlp:784-512-10")
    assert not target.is_of("mnist", "mlp:784-1024-10:relu")
    assert not target.is_of("cifar10", "mlp:784-1024-10")
    assert not target.is_of("mnist", "cnn"), "a name that another machine's timings brought along"


def test_the_network_counts_before_the_dataset() -> None:
    targets = [Target.parse(text) for text in ("mnist=0.9", "mnist@perceptron:*-*=0.8")]
    assert target_accuracy(targets, dataset="mnist", network="perceptron:784-10") == 0.8
    assert target_accuracy(targets, dataset="mnist", network="mlp:784-1024-10") == 0.9
    assert target_accuracy(targets, dataset="emnist", network="mlp:784-1024-10") is None


def test_it_travels_to_the_process_that_trains(tmp_path: Path) -> None:
    sent = surroundings(tmp_path, targets=(Target.parse("mnist@mlp:*-1024-*=0.9"),))
    line = msgspec.json.encode(sent, enc_hook=str)
    assert msgspec.json.decode(line, type=Surroundings, dec_hook=lambda kind, text: kind(text)) == sent
