"""What one trial is to do: frozen values, to and from JSON, with a slug that finds its outcome again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from store.errors import SettingError
from store.slug import slug

FULL_BATCH_SOLVERS = ("gd", "l-bfgs")
MINI_BATCH_SOLVERS = ("sgd", "momentum", "adam")
SOLVERS = FULL_BATCH_SOLVERS + MINI_BATCH_SOLVERS
SHAPE = re.compile(r"(\*|{0})(-{0})*-(\*|{0})".format("[1-9][0-9]{0,8}"))
ACTIVATIONS = ("sigmoid", "relu", "tanh")
OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:callable
FORMS = "mlp:INPUTS-HIDDEN-...-CLASSES, as mlp:*-1024-*, perceptron:*-* or torch:MODULE:CALLABLE"
PRECISIONS = ("float64", "float32", "bfloat16")  # finest first
# Fields that came after trials had slugs: where they are not set, a slug is what it was.
LATER = (
    ("hyperparameters", "compression"),
    ("hyperparameters", "initial_weights"),
    ("hyperparameters", "staleness"),
    ("resources", "balance"),
    ("resources", "shards"),
)
UNKNOWN = "unknown"  # the network of a log that does not tell it


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What is trained: a multilayer perceptron, or a user's own torch module.

    Softmax is always taken of its last outputs. `activations` are those of the hidden layers, and where there is one
    more, it is that of the outputs before softmax. Empty: sigmoid hidden layers, as MLlib has.
    """

    sizes: tuple[int, ...]  # inputs, hidden layers, classes; of a user's own only inputs and classes; empty: unknown
    activations: tuple[str, ...] = ()
    source: str | None = None  # module:callable of a user's own

    @classmethod
    def parse(cls, name: str, *, inputs: int | None = None, classes: int | None = None) -> Network:
        """`mlp:784-1024-10`, `mlp:784-100-50-10:relu,relu,tanh`, `perceptron:784-10`, `torch:module:callable`.

        A `*` as first or last size is the dataset's own; so is all of a user's own network.
        """
        kind, _, rest = name.partition(":")
        shape, colon, activations = rest.partition(":")
        if kind == "torch" and OWN.fullmatch(rest):
            return cls(sizes=(_size("*", inputs, name), _size("*", classes, name)), source=rest)
        if kind not in ("mlp", "perceptron") or not SHAPE.fullmatch(shape) or (colon and not activations):
            raise SettingError(f"network {_shown(name)} is not known; write {FORMS}")
        first, *hidden, last = shape.split("-")
        if kind == "perceptron" and hidden:
            raise SettingError(
                f"network {name!r}: a perceptron has two sizes, inputs and classes; an mlp may have more"
            )
        given = tuple(activations.split(",")) if activations else ()
        if unknown := [each for each in given if each not in ACTIVATIONS]:
            raise SettingError(
                f"network {_shown(name)}: activation {_shown(unknown[0])} is not known; write {', '.join(ACTIVATIONS)}"
            )
        if given and len(given) not in (len(hidden), len(hidden) + 1):
            raise SettingError(
                f"network {name!r} has {len(hidden)} hidden layers and {len(given)} activations; write one for each "
                f"hidden layer, and at most one more for the outputs"
            )
        if set(given) == {"sigmoid"} and len(given) == len(hidden):
            given = ()
        sizes = (_size(first, inputs, name), *map(int, hidden), _size(last, classes, name))
        return cls(sizes=sizes, activations=given)

    @property
    def name(self) -> str:
        if self.source is not None:
            return f"torch:{self.source}"
        if not self.sizes:
            return UNKNOWN
        kind = "mlp" if self.hidden else "perceptron"
        name = f"{kind}:" + "-".join(map(str, self.sizes))
        return f"{name}:{','.join(self.activations)}" if self.activations else name

    @property
    def inputs(self) -> int:
        return self.sizes[0]

    @property
    def classes(self) -> int:
        return self.sizes[-1]

    @property
    def hidden(self) -> tuple[int, ...]:
        return self.sizes[1:-1]

    @property
    def layer_activations(self) -> tuple[str | None, ...]:
        """One for each layer of weights; None is the identity."""
        named: tuple[str | None, ...] = self.activations or ("sigmoid",) * len(self.hidden)
        return named if len(named) > len(self.hidden) else (*named, None)

    @property
    def parameters(self) -> int | None:
        """None of a user's own: only its module knows."""
        if self.source is not None or not self.sizes:
            return None
        return sum((left + 1) * right for left, right in zip(self.sizes, self.sizes[1:], strict=False))

    def flop_per_row(self) -> int | None:
        """Of one pass with its gradient; that of the input is not needed, so the first layer counts two thirds."""
        if self.source is not None or not self.sizes:
            return None
        first, *rest = [left * right for left, right in zip(self.sizes, self.sizes[1:], strict=False)]
        return 4 * first + 6 * sum(rest)


def _shown(text: str) -> str:
    return repr(text) if text.isprintable() else ascii(text)


def _size(text: str, own: int | None, name: str) -> int:
    if text != "*":
        return int(text)
    if own is None:
        raise SettingError(
            f"network {name!r} has a * and no dataset to take the size from; write the number in its place"
        )
    return own


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a trial may use. An axis that a platform does not have is None for it."""

    executors: int | None = None
    cores: int | None = None  # per executor
    memory_mib: int | None = None  # per executor
    workers: int | None = None
    threads: int | None = None
    partitions: int | None = None
    deploy_mode: str | None = None
    device: str = "cpu"
    balance: str | None = None  # even | speed | fixed shares, as 3:1: how rows are shared among executors
    shards: int | None = None  # of a parameter server

    @property
    def executors_alike(self) -> tuple[Any, ...]:
        """Equal where one Spark application serves both."""
        return (self.executors, self.cores, self.memory_mib, self.deploy_mode, self.device)

    @property
    def total_cores(self) -> int | None:
        if self.executors is not None and self.cores is not None:
            return self.executors * self.cores
        return self.threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    solver: str
    learning_rate: float | None
    precision: str
    gradient: str | None
    batch_size: int | None  # None is the full batch
    epochs: int
    compression: str | None = None  # none | bfloat16: of gradients on their way
    staleness: int | None = None  # how many updates a rank may be ahead of the slowest
    initial_weights: str | None = None  # mllib; None: Glorot's, or a user's own


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    platform: str
    dataset: str
    data: str  # the slug under which the packed data lies
    network: Network
    resources: Resources
    hyperparameters: Hyperparameters
    data_fraction: float
    trial: int
    attempt: int
    seed: int

    @property
    def configuration(self) -> str:
        """All that is compared: equal for the trials and attempts of one configuration."""
        told = msgspec.to_builtins(replace(self, trial=0, attempt=0, seed=0))
        for part, name in LATER:
            if told[part][name] is None:
                del told[part][name]
        return msgspec.json.encode(told, order="sorted").decode()

    @property
    def slug(self) -> str:
        what = f"{self.platform}-{self.network.name}-{self.hyperparameters.solver}{_shape(self.resources)}"
        return f"{slug(what, over=self.configuration)}-t{self.trial}-a{self.attempt}"

    @property
    def session(self) -> tuple[Any, ...]:
        """Trials of equal sessions can run in one process (and one Spark application)."""
        return self.resources.executors_alike

    def attempted(self, attempt: int) -> TrialSpec:
        return replace(self, attempt=attempt)

    def encode(self) -> str:
        return msgspec.json.encode(self, order="sorted").decode()

    @classmethod
    def decode(cls, text: str | bytes) -> TrialSpec:
        return msgspec.json.decode(text, type=cls)


def _shape(resources: Resources) -> str:
    if resources.executors is not None:
        return f"-{resources.executors}x{resources.cores}"
    return "" if resources.threads is None else f"-{resources.threads}"
