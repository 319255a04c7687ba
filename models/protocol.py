"""What a platform is, what it yields, and the lazy way to one by its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import ClassVar, Protocol, cast

from models.dataset import Dataset
from models.spec import TrialSpec
from models.target import Target
from store.errors import SettingError
from store.opening import Reach
from yarn.shipped import Shipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What only the platform knows of an epoch; run.py adds the rest of the record."""

    epoch: int
    seconds: float  # of a monotonic clock, evaluation left out
    clock: str = "measured"  # measured | eventlog | amortized
    cpu_seconds: float | None = None
    passes: int = 1  # over the training rows, with gradient
    updates: int = 1  # of the weights
    samples: int
    loss: float | None = None
    train_accuracy: float | None = None
    test_accuracy: float | None = None
    ledger: dict[str, float] = field(default_factory=dict)
    peak_memory_mib: float | None = None  # of the largest process that trains
    mean_staleness: float | None = None  # of the gradients of ranks that need not be in step, in updates
    largest_staleness: int | None = None
    divergence: float | None = None  # of the ranks' weights from those that their gradients met

    # The same for all epochs of a trial.
    startup_seconds: float | None = None
    load_seconds: float | None = None
    bytes_read: int | None = None
    granted_executors: int | None = None
    granted_cores: int | None = None
    exchange_seconds: float | None = None  # that summing a gradient over the executors takes, nothing computed
    blas: str | None = None
    versions: dict[str, str] = field(default_factory=dict)  # of what trained, beside this process's own packages
    parameters: int | None = None  # of a user's own network, which only its module knows
    note: str | None = None  # what a reader has to know, as that two clocks disagree
    tainted: str | None = None  # why this trial cannot be ranked, as a lost executor


@dataclass(frozen=True, slots=True, kw_only=True)
class Yarn:
    """What Spark applications need to run on YARN."""

    reach: Reach  # of the store, which lies on HDFS
    folder: str  # of the store, for what lives as long as an application
    jars: str  # the address of the archive with Spark's own jars
    queue: str
    resource_managers: tuple[str, ...]
    accepted_seconds: float
    python: str  # of the nodes
    shipped: Shipped
    python_mib: int = 0  # that an executor's Python takes beside its heap
    is_driver: bool = False  # this process is the driver, on a node


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the child process that trains was given by the machine it is on."""

    work: Path  # private to this session
    spark_conf: dict[str, str]
    archives: Path  # event logs of this session's Spark applications
    class_archives: dict[str, str] = field(default_factory=dict)  # JVM options of driver and executor, or none
    lets_jvms_end: bool = False  # by themselves: only then do they write a class archive
    yarn: Yarn | None = None  # None: Spark's executors are on this machine
    spark_url: str | None = None  # of Spark's own cluster manager, spark://HOST:PORT
    spark_home: Path | None = None  # another than PySpark's own
    overhead_mib: int = 1536  # of an executor beside its heap, where its Python trains
    stall_seconds: float = 300.0  # that executors which train together wait for one of them
    shares_applications: bool = False  # trials that follow one another, where their resources are alike
    targets: tuple[Target, ...] = ()  # for which a platform without accuracy on its way finds it in fits of its own


class TaintedError(Exception):
    """A trial lost what it ran on: it is not its own fault, and it is run once more."""


class Platform(Protocol):
    """A platform is one file in models/platforms/; its heavy imports stay inside its methods."""

    name: ClassVar[str]
    axes: ClassVar[frozenset[str]]  # of a profile: what it varies. All others are None for it
    fixed: ClassVar[dict[str, str]]  # values it has and does not vary, as mllib's precision

    def __init__(self, surroundings: Surroundings) -> None: ...

    def unavailable(self, spec: TrialSpec) -> str | None:
        """A sentence why it cannot run this trial here, or None."""
        ...

    def train(self, spec: TrialSpec, data: Dataset) -> Iterator[Epoch]: ...

    def close(self) -> None:
        """Give back what trials of one session shared, as a Spark application."""
        ...


BUILT_IN = {
    "mllib": "models.platforms.mllib:MLlib",
    "mllib-logistic": "models.platforms.mllib_logistic:MLlibLogistic",
    "numpy": "models.platforms.scratch:Scratch",
    "torch-cpu": "models.platforms.torch_cpu:TorchCpu",
    "torch-cuda": "models.platforms.torch_cuda:TorchCuda",
    "torch-spark": "models.platforms.torch_spark:TorchSpark",
    "torch-spark-async": "models.platforms.torch_spark_async:TorchSparkAsync",
}
GROUP = "yarnstick.platforms"


def names() -> list[str]:
    return sorted(BUILT_IN.keys() | {point.name for point in entry_points(group=GROUP)})


def platform(name: str) -> type[Platform]:
    """The class of a platform of ours or of another package (entry point `yarnstick.platforms`)."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return cast(type[Platform], getattr(import_module(module), attribute))
    for point in entry_points(group=GROUP, name=name):
        return cast(type[Platform], point.load())
    raise SettingError(f"platform {name!r} is not known; known are {', '.join(names())}")
