"""The settings of one profile, typed and frozen: what luigi.cfg may hold, section by section."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NewType

import msgspec
from msgspec import Meta, Struct

from models.ranks.balance import WEIGHTS
from models.target import Target

LARGEST = 2**31 - 1
Whole = Annotated[int, Meta(ge=1, le=LARGEST)]
Seed = Annotated[int, Meta(ge=0, le=LARGEST)]
Positive = Annotated[float, Meta(gt=0)]
Money = Annotated[float, Meta(ge=0, le=1e9)]  # beyond that a product is soon no number any more
Fraction = Annotated[float, Meta(gt=0, le=1)]
Inner = Annotated[float, Meta(gt=0, lt=1)]
Url = NewType("Url", str)  # of a store
Archive = NewType("Archive", str)  # a path, or an address on HDFS; empty is none
Accuracy = NewType("Accuracy", str)  # that a dataset's test rows are to reach: models/target.py reads it
Master = NewType("Master", str)  # of Spark: local-cluster, yarn, or the address of its own cluster manager


class Main(Struct, frozen=True, kw_only=True):
    seed: Seed
    scale: Literal["global", "pixel"]
    machine: str
    cache: Path
    noisy_share: Fraction
    noisy_repeats: Annotated[int, Meta(ge=0, le=10)]
    probe_seconds: Annotated[float, Meta(ge=0, le=60)]
    lease: Path | None

    def quiet_cores(self, cores: int) -> float:
        """A container's neighbours can load more cores than it has; at a share of 1 that is no noise either."""
        return self.noisy_share * cores if self.noisy_share < 1 else sys.float_info.max


class StoreSettings(Struct, frozen=True, kw_only=True):
    url: Url
    namenodes: tuple[str, ...]
    security: Literal["kerberos", "insecure"]
    user: str
    certificates: Path | None
    retry_seconds: Annotated[float, Meta(ge=0, le=86_400)]
    cache_gb: Positive


class Baseline(Struct, frozen=True, kw_only=True):
    platform: str
    precision: str
    threads: Whole


class Targets(Struct, frozen=True, kw_only=True):
    accuracies: tuple[Accuracy, ...]
    refits: bool

    @property
    def parsed(self) -> tuple[Target, ...]:
        return tuple(map(Target.parse, self.accuracies))

    @property
    def refitted(self) -> tuple[Target, ...]:
        """For which MLlib's accuracy on its way is looked for."""
        return self.parsed if self.refits else ()


class Price(Struct, frozen=True, kw_only=True):
    core_hour: Money | None
    memory_gb_hour: Money | None
    gpu_hour: Money | None
    currency: str


class Csv(Struct, frozen=True, kw_only=True):
    label: Literal["last", "first"]
    header: bool
    test_fraction: Inner
    split_seed: Seed
    classes: Annotated[int, Meta(ge=2)] | None
    minimum: float | None
    maximum: float | None
    longest_line_bytes: Annotated[int, Meta(ge=1024)]


class ImageSettings(Struct, frozen=True, kw_only=True):
    path: Path | None
    source_seconds: Positive


class Mnist(ImageSettings, frozen=True, kw_only=True):
    train_rows: Annotated[int, Meta(ge=1, le=60_000)]


class MapReduce(Struct, frozen=True, kw_only=True):
    runner: Literal["inline", "local", "hadoop"]


class Hadoop(Struct, frozen=True, kw_only=True):
    command: Path | None
    streaming_jar: Path | None
    queue: str
    resource_managers: tuple[str, ...]
    python: str
    python_archive: Archive
    java_archive: Archive
    java_archive_for: tuple[Literal["mapreduce", "spark"], ...]
    accepted_seconds: Positive
    quiet_seconds: Annotated[float, Meta(ge=0, le=86_400)]


class Spark(Struct, frozen=True, kw_only=True):
    master: Master
    home: Path | None
    overhead_mib: Annotated[int, Meta(ge=0, le=LARGEST)]
    stall_seconds: Positive
    conf: dict[str, str]

    @property
    def url(self) -> str | None:
        return self.master if self.master.startswith("spark://") else None


class Profile(Struct, frozen=True, kw_only=True):
    datasets: tuple[str, ...]
    networks: tuple[str, ...]
    platforms: tuple[str, ...]
    solvers: tuple[Literal["gd", "l-bfgs", "sgd", "momentum", "adam"], ...]
    learning_rates: tuple[Positive, ...]
    initial_weights: tuple[Literal["glorot", "mllib"], ...]
    executors: tuple[Whole, ...]
    cores: tuple[Whole, ...]
    memory_mib: tuple[Whole, ...]
    threads: tuple[Whole, ...]
    workers: tuple[Whole, ...]
    partitions: tuple[Whole, ...]
    batch_sizes: tuple[Whole | None, ...]
    precisions: tuple[Literal["float64", "float32", "bfloat16"], ...]
    gradients: tuple[Literal["autograd", "compile", "manual"], ...]
    compressions: tuple[Literal["none", "bfloat16"], ...]
    devices: tuple[Literal["cpu", "cuda"], ...]
    balances: tuple[Annotated[str, Meta(pattern=f"^(even|speed|{WEIGHTS.pattern})$")], ...]
    shards: tuple[Whole, ...]
    staleness: tuple[Annotated[int, Meta(ge=0, le=LARGEST)], ...]
    deploy_modes: tuple[Literal["client", "cluster"], ...]
    fractions: tuple[Fraction, ...]
    epochs: Whole
    trials: Whole
    session: Literal["shared", "own"]


SECTIONS: dict[str, type[Struct]] = {
    "yarnstick": Main,
    "yarnstick.store": StoreSettings,
    "yarnstick.baseline": Baseline,
    "yarnstick.target": Targets,
    "yarnstick.price": Price,
    "yarnstick.csv": Csv,
    "yarnstick.mnist": Mnist,
    "yarnstick.cifar10": ImageSettings,
    "yarnstick.fashion-mnist": ImageSettings,
    "yarnstick.emnist": ImageSettings,
    "yarnstick.mapreduce": MapReduce,
    "yarnstick.hadoop": Hadoop,
    "yarnstick.spark": Spark,
}
# Lists that may be empty; of all others at least one value is needed.
MAY_BE_EMPTY = {"accuracies", "workers", "partitions", "namenodes", "resource_managers"}
# What a report judges by is no part of what was measured: it may be given when a report is made again.
PRICES = {f"yarnstick.price.{key}" for key in Price.__struct_fields__}
TARGETS, REFITS = "yarnstick.target.accuracies", "yarnstick.target.refits"
JUDGING = {*PRICES, TARGETS, *(f"yarnstick.baseline.{key}" for key in Baseline.__struct_fields__)}
# What does not change a result may differ between two calls of one run.
INCIDENTAL = {
    "yarnstick.hadoop.accepted_seconds",
    "yarnstick.hadoop.quiet_seconds",
    "yarnstick.cache",
    "yarnstick.lease",
    *(f"yarnstick.store.{key}" for key in StoreSettings.__struct_fields__),
    *(f"{section}.source_seconds" for section, kind in SECTIONS.items() if issubclass(kind, ImageSettings)),
}


class Settings(Struct, frozen=True, kw_only=True):
    """All of luigi.cfg for one profile."""

    profile_name: str
    main: Main
    store: StoreSettings
    baseline: Baseline
    target: Targets
    price: Price
    csv: Csv
    mnist: Mnist
    cifar10: ImageSettings
    fashion_mnist: ImageSettings
    emnist: ImageSettings
    mapreduce: MapReduce
    hadoop: Hadoop
    spark: Spark
    profile: Profile
    given: frozenset[str] = frozenset()  # full names of those that were given for this call, over all files

    def fingerprint(self) -> dict[str, Any]:
        """Every setting that a result depends on, by its full name."""
        sections = {f"profile.{self.profile_name}": self.profile}
        sections |= {name: getattr(self, attribute(name)) for name in SECTIONS}
        return {
            f"{section}.{key}": value
            for section, values in sections.items()
            for key, value in msgspec.json.decode(msgspec.json.encode(values, enc_hook=str)).items()
            if f"{section}.{key}" not in INCIDENTAL
        }

    @property
    def judging(self) -> dict[str, Any]:
        """What a report is to judge by, as far as it was given for this call."""
        return {name: value for name, value in self.fingerprint().items() if name in self.given & JUDGING}


def attribute(section: str) -> str:
    """The field of `Settings` that holds a section."""
    return section.partition(".")[2].replace("-", "_") or "main"
