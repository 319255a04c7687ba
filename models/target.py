"""The test accuracy at which trainings that did unequal work are compared: of a dataset, or of one network on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from models.spec import Network
from store.errors import SettingError

FORM = "DATASET=0.9, or DATASET@NETWORK=0.9 for one network"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    dataset: str
    network: str | None  # None: all of them; a * as first or last size is the dataset's own
    accuracy: float

    @classmethod
    def parse(cls, text: str) -> Target:
        """`mnist=0.9`, `mnist@mlp:*-1024-*=0.92`."""
        name, equals, value = text.rpartition("=")
        dataset, at, network = name.rpartition("@")
        if not at or not _is_network(network):  # a path may hold an @ too
            dataset, network = name, ""
        accuracy = _number(value)
        if not equals or not dataset or accuracy is None or not 0 < accuracy <= 1:
            raise SettingError(f"target {text!r}: write {FORM}, above 0 and at most 1")
        return cls(dataset=dataset, network=network or None, accuracy=accuracy)

    def is_of(self, dataset: str, network: str) -> bool:
        """Whether it is meant for a network on a dataset, by the names that records have."""
        if self.dataset != dataset or self.network is None:
            return self.dataset == dataset
        if not _is_network(network):
            return self.network == network
        resolved = Network.parse(network, inputs=1, classes=1)
        mine = Network.parse(self.network, inputs=resolved.inputs, classes=resolved.classes)
        return mine.name == resolved.name


def target_accuracy(targets: Iterable[Target], *, dataset: str, network: str) -> float | None:
    """What is said of the network itself counts before what is said of the dataset."""
    mine = [each for each in targets if each.is_of(dataset, network)]
    return next((each.accuracy for each in sorted(mine, key=lambda each: each.network is None)), None)


def _is_network(name: str) -> bool:
    try:
        Network.parse(name, inputs=1, classes=1)
    except SettingError:
        return False
    return True


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
