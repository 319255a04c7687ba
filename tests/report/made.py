"""Outcomes as a run of the quick profile leaves them, made from a seed: what the report's tests are fed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

from models.outcome import Outcome
from models.probes import MachineProbes, Peak
from models.record import EpochRecord
from models.spec import Hyperparameters, Network, Resources, TrialSpec
from models.timeline import Load, TaskSpan
from report.facts import BaselineSpec, RunFacts
from report.timeline import Timeline

BASELINE = BaselineSpec(platform="torch-cpu", precision="float32", threads=1)
START = datetime(2025, 3, 1, 9, 0, tzinfo=UTC)
# FLOP/s of a machine whose second core is as good as its first.
SPEED = {"float64": 60e9, "float32": 120e9, "bfloat16": 400e9}
PROBES = MachineProbes(
    machine="made",
    cpu="A processor that was made up",
    measured_at=START,
    other_load=0.01,
    peaks=tuple(
        Peak(precision=name, threads=n, flops=n * speed) for name, speed in SPEED.items() for n in range(1, 65)
    ),
)
RUN = RunFacts(
    run_id="quick-made",
    profile="quick",
    machine="made",
    cpu="A processor that was made up",
    cores=2,
    memory_gb=24.0,
    versions={"python": "3.11", "torch": "2.13.0", "pyspark": "4.3.0"},
    commit="0000000",
    settings={"profile.quick.trials": 3, "profile.quick.platforms": ["torch-cpu", "torch-cuda", "mllib"]},
    rows_of={"mnist": 60_000},
    probes=(PROBES,),
)
# Shares of what is not arithmetic above the floor in an epoch of MLlib.
SHARES = {"comm": 0.03, "scheduling": 0.04, "gc": 0.02, "serialization": 0.005, "driver": 0.06, "other": 0.015}
# And of torch-spark, whose ranks know only when they were with the others.
OWN_CLOCKS = {**dict.fromkeys(SHARES, 0.0), "comm": 0.02}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A configuration and how it turns out: seconds of an epoch, or why there are none."""

    platform: str
    seconds: float | None = None
    unavailable: str | None = None
    dataset: str = "mnist"
    sizes: tuple[int, ...] = (784, 1024, 10)
    solver: str = "gd"
    batch_size: int | None = None
    precision: str = "float32"
    gradient: str | None = "autograd"
    executors: int | None = None
    cores: int | None = None
    threads: int | None = None
    device: str = "cpu"
    data_fraction: float = 0.25
    rows: int = 15_000
    passes: int = 1
    loss: bool = True
    ledger: bool = True  # where there are executors
    exchange_seconds: float | None = None
    memory_mib: int | None = None
    compression: str | None = None
    staleness: int | None = None
    updates: int = 1  # of a whole batch
    first_loss: float = 2.3

    @property
    def floor_seconds(self) -> float | None:
        """Of an epoch, by the speeds above."""
        total = self.threads or (self.executors or 0) * (self.cores or 0)
        flop = Network(sizes=self.sizes).flop_per_row() or 0
        return self.passes * self.rows * flop / (total * SPEED[self.precision]) if total else None


def mllib(executors: int, cores: int, seconds: float | None, **more: object) -> Made:
    made = Made(
        platform="mllib", executors=executors, cores=cores, seconds=seconds, precision="float64", gradient=None
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def torch_spark(executors: int, cores: int, seconds: float | None, **more: object) -> Made:
    made = Made(platform="torch-spark", executors=executors, cores=cores, seconds=seconds, compression="none")
    exchanged = 0.003 if executors > 1 else None
    return replace(made, exchange_seconds=exchanged, **more)  # type: ignore[arg-type]


def torch(threads: int, seconds: float | None, **more: object) -> Made:
    return replace(Made(platform="torch-cpu", threads=threads, seconds=seconds), **more)  # type: ignore[arg-type]


QUICK = (
    torch(1, 0.52),
    torch(2, 0.33),
    Made(platform="torch-cuda", device="cuda", unavailable="no CUDA device"),
    mllib(1, 1, 3.9),
    mllib(2, 1, 2.1),
    mllib(1, 2, 2.3),
    mllib(2, 2, None, unavailable="2 executors x 2 cores = 4 cores exceed the 2 of this machine"),
)


def _exchanging(made: Made) -> Made:
    return replace(made, exchange_seconds=0.11 * (made.executors or 1))


# MLlib and PyTorch on the very same executors, and PyTorch beside them on threads.
BOTH_ON_SPARK = (
    *(_exchanging(each) if each.platform == "mllib" else each for each in QUICK),
    torch_spark(1, 1, 0.53),
    torch_spark(2, 1, 0.34),
    torch_spark(1, 2, 0.35),
    torch_spark(2, 1, 0.70, precision="float64"),
)


def outcomes(
    configurations: Iterable[Made] = QUICK, *, trials: int = 3, epochs: int = 5, noise: float = 0.015, seed: int = 0
) -> list[Outcome]:
    """In shuffled complete blocks, as the pipeline runs them."""
    generator = random.Random(seed)
    made = list(configurations)
    found: list[Outcome] = []
    for trial in range(1, trials + 1):
        for each in generator.sample(made, len(made)):
            factor = 1 + generator.gauss(0, noise)
            found.append(
                outcome(each, trial=trial, epochs=epochs, factor=factor, position=len(found), jitter=noise / 3)
            )
    return found


def outcome(
    made: Made,
    *,
    trial: int = 1,
    attempt: int = 1,
    epochs: int = 5,
    factor: float = 1.0,
    position: int = 0,
    jitter: float = 0.0,
) -> Outcome:
    spec = TrialSpec(
        platform=made.platform,
        dataset=made.dataset,
        data="mnist-00000000",
        network=Network(sizes=made.sizes),
        resources=Resources(
            executors=made.executors, cores=made.cores, threads=made.threads, device=made.device,
            memory_mib=made.memory_mib,
        ),
        hyperparameters=Hyperparameters(
            solver=made.solver, learning_rate=0.5, precision=made.precision, gradient=made.gradient,
            batch_size=made.batch_size, epochs=epochs, compression=made.compression, staleness=made.staleness,
        ),
        data_fraction=made.data_fraction,
        trial=trial,
        attempt=attempt,
        seed=trial,
    )  # fmt: skip
    ending = "ok" if made.unavailable is None else "unavailable"
    empty = EpochRecord(
        run_id=RUN.run_id, unit="epoch", machine=RUN.machine, machine_memory_gb=24.0, dataset=made.dataset,
        network=spec.network.name, platform=made.platform, solver=made.solver, learning_rate=0.5,
        precision=made.precision, gradient=made.gradient, batch_size=made.batch_size, data_fraction=made.data_fraction,
        compression=made.compression, staleness=made.staleness, memory_mib=made.memory_mib,
        executors=made.executors, cores=made.cores, threads=made.threads, device=made.device, trial=trial,
        attempt=attempt, seed=trial, epochs_requested=epochs, outcome=ending, reason=made.unavailable,
        started_at=START + timedelta(seconds=30 * position),
    )  # fmt: skip
    records = (
        (empty,)
        if made.seconds is None
        else tuple(_epoch(made, empty, epoch, factor=factor, jitter=jitter) for epoch in range(1, epochs + 1))
    )
    return Outcome(
        spec=spec, outcome=ending, reason=made.unavailable, noisy=False, invocation="made", position=position,
        note=None, records=records,
    )  # fmt: skip


def _epoch(made: Made, empty: EpochRecord, epoch: int, *, factor: float, jitter: float) -> EpochRecord:
    assert made.seconds is not None
    wobble = 1 + jitter * math.sin(7 * epoch + empty.trial * 3 if empty.trial else 0)
    updates = made.updates if made.batch_size is None else math.ceil(made.rows / made.batch_size)
    seconds = made.seconds * factor * wobble * (1.6 if epoch == 1 else 1.0)
    shares = {"torch-spark": OWN_CLOCKS}.get(made.platform, SHARES)
    ledger = {name: share * seconds for name, share in shares.items()} if made.executors and made.ledger else {}
    if ledger:
        ledger["compute"] = seconds - sum(ledger.values())
    return replace(
        empty,
        **ledger,
        floor_seconds=made.floor_seconds,
        load_seconds=6.0 / made.executors if made.executors else 0.1,
        blas="VectorBLAS" if made.platform == "mllib" else "mkl",
        rows=made.rows,
        epoch=epoch,
        passes=made.passes,
        updates=updates,
        samples=made.rows * made.passes,
        parameters=814_090,
        seconds=seconds,
        clock="eventlog" if made.platform == "mllib" else "measured",
        cpu_seconds=made.seconds,
        exchange_seconds=made.exchange_seconds,
        peak_memory_mib=890.0 + epoch if made.platform == "torch-spark" else None,
        startup_seconds=4.0 if made.platform == "mllib" else 0.2,
        loss=made.first_loss * 0.93**epoch * (1.01 if made.platform == "mllib" else 1.0) if made.loss else None,
        test_accuracy=_accuracy(made, epoch, empty.epochs_requested or epoch),
        warmup=epoch == 1,
        other_load=0.01,
    )


def _accuracy(made: Made, epoch: int, last: int) -> float | None:
    if not made.loss or (made.platform == "mllib" and epoch != last):
        return None
    return 0.12 + 0.6 * (1 - 0.9**epoch) + (0.004 if made.platform == "mllib" else 0.0)


def timelines(configurations: Iterable[Made] = QUICK, *, epochs: int = 5) -> list[Timeline]:
    """Each slot of each executor reads its part of the rows, then does one task an epoch with a gap after it."""
    found = []
    for made in configurations:
        if made.executors and made.cores and made.seconds:
            row = asdict(outcome(made).records[0])
            tasks = tuple(
                TaskSpan(
                    executor=str(executor), slot=slot, kind="pass" if epoch else "load", epoch=epoch or None,
                    launched=3.0 + (epoch - 1) * made.seconds if epoch else 1.0,
                    ended=3.0 + (epoch - 0.1 * executor) * made.seconds if epoch else 2.5,
                    job=epoch, stage=epoch, group="made", bytes_read=1_000_000, locality="PROCESS_LOCAL",
                    shuffle_local_bytes=0, shuffle_remote_bytes=0, failed=False,
                )
                for epoch in range(epochs + 1)
                for executor in range(made.executors)
                for slot in range(made.cores)
            )  # fmt: skip
            load = Load(
                group="made", executors=made.executors, cores=made.executors * made.cores, seconds=1.5,
                bytes_read=9_400_000, remote_bytes_read=0 if made.executors == 1 else 4_700_000,
            )  # fmt: skip
            found.append(Timeline(row=row, trial=1, tasks=tasks, load=load))
    return found


def with_records(outcome: Outcome, **changes: object) -> Outcome:
    """The same outcome with some fields of all its records changed."""
    return replace(outcome, records=tuple(replace(record, **changes) for record in outcome.records))  # type: ignore[arg-type]


def ended(outcome: Outcome, how: str, *, reason: str | None = None, epochs: int | None = None) -> Outcome:
    """The same outcome, ended in another way after some epochs."""
    kept = (
        outcome.records[:epochs]
        if epochs
        else (
            replace(
                outcome.records[0],
                seconds=None,
                epoch=None,
                loss=None,
                rows=None,
                updates=None,
                passes=None,
                warmup=False,
            ),
        )
    )
    return replace(
        outcome,
        outcome=how,
        reason=reason,
        records=tuple(replace(record, outcome=how, reason=reason) for record in kept),
    )
