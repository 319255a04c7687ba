"""The epoch record: the only schema. Everything that writes or reads results imports it."""

from __future__ import annotations

import types
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    import pyarrow as pa

LEDGER = ("compute", "comm", "scheduling", "gc", "serialization", "driver", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """One pass over the training rows that ends in at least one weight update; or a whole training."""

    # Identity: what was measured.
    run_id: str
    unit: str  # epoch | training
    machine: str
    machine_memory_gb: float | None = None
    dataset: str
    network: str  # resolved: no *
    platform: str
    solver: str | None = None
    learning_rate: float | None = None
    precision: str | None = None
    gradient: str | None = None
    compression: str | None = None  # none | bfloat16: of gradients on their way
    initial_weights: str | None = None  # mllib, as MLlib draws them; None: Glorot's, or the network's own
    batch_size: int | None = None  # over all workers; None is the full batch
    data_fraction: float | None = None
    rows: int | None = None  # that were trained on
    partitions: int | None = None
    executors: int | None = None
    cores: int | None = None  # per executor
    memory_mib: int | None = None  # per executor
    workers: int | None = None  # machines that train
    nodes: int | None = None  # machines, the master too
    threads: int | None = None
    deploy_mode: str | None = None
    device: str | None = None
    balance: str | None = None  # even | speed | fixed shares, as 3:1: how rows are shared among executors
    shards: int | None = None  # of a parameter server
    staleness: int | None = None  # how many updates a rank may be ahead of the slowest
    origin: str | None = None  # the file that an imported timing is from; None: measured, or read from an event log
    trial: int | None = None
    attempt: int | None = None
    seed: int | None = None
    epoch: int | None = None  # None where unit is training

    # Work: what was done in that time.
    passes: int | None = None  # over the training rows, with gradient
    updates: int | None = None  # of the weights
    samples: int | None = None
    parameters: int | None = None
    epochs_requested: int | None = None
    stopped_early: bool | None = None

    # Time, in seconds of a monotonic clock.
    seconds: float | None = None
    clock: str | None = None  # measured | eventlog | amortized; None of what is imported
    cpu_seconds: float | None = None
    startup_seconds: float | None = None  # until the platform could take data
    load_seconds: float | None = None  # until the data lay in memory
    bytes_read: int | None = None
    compute: float | None = None
    comm: float | None = None
    scheduling: float | None = None
    gc: float | None = None
    serialization: float | None = None
    driver: float | None = None
    other: float | None = None
    exchange_seconds: float | None = None  # that summing a gradient over these executors takes, nothing computed
    peak_memory_mib: float | None = None  # of the largest process that trains, as far as it has come
    floor_seconds: float | None = None  # this epoch's arithmetic at the speed of this machine's matrix product
    peak_flops: float | None = None  # that speed, at the same precision with as many cores, in FLOP/s

    # Quality: loss is at the weights before the epoch's update for full-batch solvers.
    loss: float | None = None
    train_accuracy: float | None = None
    test_accuracy: float | None = None

    # Of a parameter server, where ranks need not be in step.
    mean_staleness: float | None = None  # updates between a rank's getting the weights and its gradient's being taken
    largest_staleness: int | None = None
    divergence: float | None = None  # largest distance of a rank's copy from the weights, over the length of these

    # Trust: what else has to be known to believe the numbers above.
    outcome: str  # ok | failed | diverged | unavailable | tainted
    reason: str | None = None
    warmup: bool = False
    tainted: bool = False
    noisy: bool = False
    noise: str | None = None  # load | cluster | load and cluster: what made it noisy
    other_load: float | None = None  # cores that others used during the trial
    others_vcores_before: float | None = None  # on YARN: that others had, of the nodes of our executors
    others_vcores: float | None = None  # the same while it ran, on average
    nodes_vcores: float | None = None  # that these nodes have
    queue_used_by_others: float | None = None  # share of our queue, on average
    granted_executors: int | None = None
    granted_cores: int | None = None
    session: str | None = None  # own | shared
    blas: str | None = None
    host: str | None = None
    cpu: str | None = None
    versions: str | None = None  # JSON
    commit: str | None = None
    started_at: datetime | None = None
    price_per_hour: float | None = None


COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(EpochRecord))
# A configuration's identity is all that is before `passes` but what tells its trials apart.
IDENTITY: tuple[str, ...] = tuple(
    name for name in COLUMNS[: COLUMNS.index("passes")] if name not in ("trial", "attempt", "seed", "epoch")
)


@cache
def schema() -> pa.Schema:
    """The Arrow schema, derived from the dataclass."""
    import pyarrow as pa

    arrow = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        datetime: pa.timestamp("us", tz="UTC"),
    }
    hints = get_type_hints(EpochRecord)
    return pa.schema(
        [pa.field(name, arrow[_plain(hints[name])], nullable=_is_optional(hints[name])) for name in COLUMNS]
    )


def _plain(hint: Any) -> Any:
    return next(kind for kind in get_args(hint) if kind is not type(None)) if _is_optional(hint) else hint


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)
