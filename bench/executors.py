"""torch on Spark's executors against the floor, torch in one process, and MLlib on the very same executors."""

from __future__ import annotations

import multiprocessing
import os
import socket
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.load import Watch, check_quiet
from bench.training import FLOP_PER_ROW, NETWORK, ROWS
from models.dataset import Dataset
from models.platforms.mllib import MLlib
from models.platforms.torch_cpu import TorchCpu
from models.platforms.torch_spark import TorchSpark
from models.probes import multiplies_bfloat16, product_flops
from models.protocol import Epoch, Platform, Surroundings
from models.spec import Hyperparameters, Resources, TrialSpec

EXECUTORS = 2
ROUNDS = 3
EPOCHS = 4
FLOOR_BOUND, ONE_PROCESS_BOUND, HALVED_BOUND = 1.5, 1.15, 0.6
MLLIB_BOUND = {"VectorBLAS": 0.55, "JNIBLAS": 0.75}
MEMORY_SHARES, MEMORY_MIB = 2.5, 1100
EXCHANGE_BOUND = 3.0
EXCHANGES = 21
ON_SPARK = Resources(executors=EXECUTORS, cores=1, memory_mib=2048, deploy_mode="client")
PRECISIONS = ("float32", "bfloat16")


def rows(folder: Path) -> list[dict[str, Any]]:
    data = random_bytes(folder)
    surroundings = Surroundings(work=folder, spark_conf={}, archives=folder / "eventlogs")
    spark, mllib, one = TorchSpark(surroundings), MLlib(surroundings), TorchCpu(surroundings)
    try:
        return list(_rows(data, spark, mllib, one))
    finally:
        spark.close()


def _rows(data: Dataset, spark: Platform, mllib: Platform, one: Platform) -> Iterator[dict[str, Any]]:
    """Sides in alternation: a machine that changes its speed changes all of them."""
    ours: dict[str, list[Epoch]] = {precision: [] for precision in PRECISIONS}
    ones: dict[str, list[Epoch]] = {precision: [] for precision in PRECISIONS}
    floors: dict[str, list[float]] = {precision: [] for precision in PRECISIONS}
    passes: list[Epoch] = []
    watch = Watch(os.getpid())
    for _ in range(ROUNDS):
        for precision in PRECISIONS:
            spec = descent("torch-spark", ON_SPARK, precision)
            floors[precision].append(_floor(precision))
            ones[precision] += _epochs(one, replace(spec, resources=Resources(threads=EXECUTORS)), data, watch)
            ours[precision] += _epochs(spark, spec, data, watch)
        spec = descent("mllib", replace(ON_SPARK, partitions=EXECUTORS), "float64")
        passes += _epochs(mllib, spec, data, watch)
    check_quiet(watch.cores(), "while executors trained")
    for precision in PRECISIONS:
        epoch = _median(ours[precision])
        what = f"torch-spark epoch, {precision}, {EXECUTORS} x 1"
        yield _row(f"{what} / floor", epoch, min(floors[precision]), FLOOR_BOUND)
        yield _row(
            f"{what} / torch-cpu, {EXECUTORS} threads",
            epoch,
            _median(ones[precision]),
            ONE_PROCESS_BOUND,
        )
    epoch, halved = (_median(ours[precision]) for precision in PRECISIONS)
    blas = str(passes[0].blas)
    yield _row(f"torch-spark epoch / mllib gd pass ({blas})", epoch, _median(passes), MLLIB_BOUND.get(blas))
    bound = where_had("bfloat16", HALVED_BOUND)
    yield _row("torch-spark bfloat16 epoch / its float32 epoch", halved, epoch, bound)
    peak = max(measured(each.peak_memory_mib) for each in ours["float32"])
    yield memory_row("torch-spark", peak)
    exchange = statistics.median(measured(each.exchange_seconds) for each in ours["float32"])
    yield exchange_row("sum", exchange)


def memory_row(what: str, peak_mib: float) -> dict[str, Any]:
    share_mib = ROWS * NETWORK.inputs / EXECUTORS / 2**20
    return {
        "name": f"{what} worker's memory, {peak_mib:.0f} MiB / {MEMORY_SHARES} shares + {MEMORY_MIB} MB",
        "ratio": peak_mib * 2**20 / (MEMORY_SHARES * share_mib * 2**20 + MEMORY_MIB * 1e6),
        "bound": 1.0,
        "unit_seconds": None,
        "against_seconds": None,
    }


def exchange_row(what: str, seconds: float) -> dict[str, Any]:
    size = 4 * (NETWORK.parameters or 0)
    return _row(f"{what} of a gradient of {size / 1e6:.1f} MB / sockets", seconds, _raw_exchange(size), EXCHANGE_BOUND)


def measured(value: float | None) -> float:
    if value is None:
        raise RuntimeError("nothing was measured")
    return value


def where_had(precision: str, bound: float) -> float | None:
    """A processor without bfloat16 products has no such bound to hold."""
    return bound if precision != "bfloat16" or multiplies_bfloat16() else None


def _row(name: str, seconds: float, against: float, bound: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "ratio": seconds / against,
        "bound": bound,
        "unit_seconds": seconds,
        "against_seconds": against,
    }


def _epochs(platform: Platform, spec: TrialSpec, data: Dataset, watch: Watch) -> list[Epoch]:
    """Without the first."""
    with watch.stretch():
        return list(platform.train(spec, data))[1:]


def _median(epochs: list[Epoch]) -> float:
    return statistics.median(each.seconds for each in epochs)


def _floor(precision: str) -> float:
    import torch

    return ROWS * FLOP_PER_ROW / product_flops(getattr(torch, precision), threads=EXECUTORS)


def descent(platform: str, resources: Resources, precision: str) -> TrialSpec:
    return TrialSpec(
        platform=platform,
        dataset="bench",
        data="bench",
        network=NETWORK,
        resources=resources,
        hyperparameters=Hyperparameters(
            solver="gd", learning_rate=0.05, precision=precision, gradient="manual", batch_size=None, epochs=EPOCHS
        ),
        data_fraction=1.0,
        trial=1,
        attempt=1,
        seed=1,
    )


def random_bytes(folder: Path, *, learnable: bool = False) -> Dataset:
    """Of MNIST's size: what is in them does not change how long they take. Some labels can be learnt, by lines."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    counts = {"train": ROWS, "test": ROWS // 6}
    lines = random.standard_normal((NETWORK.inputs, NETWORK.classes), np.float32)
    for split, count in counts.items():
        values = random.integers(0, 256, (count, NETWORK.inputs), np.uint8)
        features = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(NETWORK.inputs), count, [None, pa.py_buffer(values.tobytes())]
        )
        labels = random.integers(0, NETWORK.classes, count)
        if learnable:
            labels = ((values - np.float32(127.5)) @ lines).argmax(axis=1)
        table = pa.table({"features": features, "label": pa.array(labels)})
        pq.write_table(table, folder / f"{split}.parquet", row_group_size=8192)
    return Dataset(
        name="bench",
        train=(str(folder / "train.parquet"),),
        test=(str(folder / "test.parquet"),),
        columns=NETWORK.inputs,
        classes=NETWORK.classes,
        dtype="uint8",
        offset=(0.0,),
        divisor=(255.0,),
        train_rows=counts["train"],
        test_rows=counts["test"],
        split_seed=0,
    )


def _raw_exchange(size: int) -> float:
    """Two processes that send each other so many bytes over loopback, both ways at once: the median."""
    listener = socket.create_server(("127.0.0.1", 0))
    other = multiprocessing.get_context("spawn").Process(target=_exchange_with, args=(listener.getsockname(), size))
    other.start()
    peer, _ = listener.accept()
    took = _exchanges(peer, size)
    other.join()
    listener.close()
    return statistics.median(took)


def _exchange_with(address: tuple[str, int], size: int) -> None:
    _exchanges(socket.create_connection(address), size)


def _exchanges(peer: socket.socket, size: int) -> list[float]:
    """In pieces small enough that both sides can send before they receive."""
    piece = 1 << 16
    out, into = memoryview(bytes(piece)), memoryview(bytearray(piece))
    took = []
    with peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(EXCHANGES):
            began = time.perf_counter()
            for _ in range(-(-size // piece)):
                peer.sendall(out)
                received = 0
                while received < piece:
                    received += peer.recv_into(into[received:])
            took.append(time.perf_counter() - began)
    return took
