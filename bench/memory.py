"""Rows beyond the executors' memory: streamed, against rows of the same width that it holds."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.load import quiet
from models.dataset import Dataset
from models.platforms.torch_spark import TorchSpark
from models.protocol import Surroundings
from models.spec import Hyperparameters, Network, Resources, TrialSpec
from pipeline.datasets.part_writer import PartWriter

COLUMNS, CLASSES = 784, 10
NETWORK = Network(sizes=(COLUMNS, 64, CLASSES))  # little arithmetic: that of reading is what is looked at
GROUP_ROWS = 8192
PART_ROWS = 40 * GROUP_ROWS
HELD_GB = 0.5
BOUND = 1 / 0.8
EPOCHS = 3
HEAP_MIB, OVERHEAD_MIB = 512, 1536  # together a container of 2 GB
EXECUTORS = Resources(executors=2, cores=1, memory_mib=HEAP_MIB, deploy_mode="client")


def of(gigabytes: float, *, zeros: float = 0.0) -> Callable[[Path], list[dict[str, Any]]]:
    def rows(folder: Path) -> list[dict[str, Any]]:
        platform = TorchSpark(
            Surroundings(
                work=folder,
                spark_conf={},
                archives=folder / "eventlogs",
                overhead_mib=OVERHEAD_MIB,
            )
        )
        made = partial(_packed_below, folder, zeros)
        kind = f"{zeros:.0%} zeros, " if zeros else ""
        found = measured(platform, made, gigabytes=gigabytes, watch=quiet("memory"), where=kind)
        # Of rows that compress it tells what decoding costs, which is the codec's.
        return [row | {"bound": None} if zeros and row["unit_seconds"] else row for row in found]

    return rows


def _packed_below(folder: Path, zeros: float, name: str, rows: int) -> Dataset:
    return packed(folder / name, rows, zeros=zeros)


def measured(
    platform: TorchSpark,
    made: Callable[[str, int], Dataset],
    *,
    gigabytes: float,
    watch: AbstractContextManager[None],
    where: str = "",
) -> Iterator[dict[str, Any]]:
    """Held, streamed, and held again: a machine that changes its speed changes both.

    `watch` sees others' load, and has to end while the executors still live.
    """
    seconds: dict[str, list[float]] = {"held": [], "streamed": []}
    peak = 0.0
    datasets = {
        name: made(name, int(size * 1e9) // COLUMNS) for name, size in (("held", HELD_GB), ("streamed", gigabytes))
    }
    os.sync()  # else the system writes gigabytes while they are read
    try:
        with watch:
            for name in ("held", "streamed", "held"):
                data = datasets[name]
                epochs = list(platform.train(spec(name), data))[1:]
                seconds[name] += [epoch.seconds / data.train_rows for epoch in epochs]
                if name == "streamed":
                    peak = max(epoch.peak_memory_mib or 0.0 for epoch in epochs)
    finally:
        platform.close()
    held, streamed = (statistics.median(seconds[name]) for name in ("held", "streamed"))
    yield {
        "name": f"{where}a row of {gigabytes:g} GB, streamed / one of {HELD_GB:g} GB in memory",
        "ratio": streamed / held,
        "bound": BOUND,
        "unit_seconds": streamed,
        "against_seconds": held,
    }
    yield {
        "name": f"{where}a worker's memory over {gigabytes:g} GB, {peak:.0f} MiB / {OVERHEAD_MIB} MiB",
        "ratio": peak / OVERHEAD_MIB,
        "bound": 1.0,
        "unit_seconds": None,
        "against_seconds": None,
    }


def packed(folder: Path, rows: int, *, zeros: float = 0.0) -> Dataset:
    """Random bytes, of which a share is zero, in parts as Pack makes them."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    parts: dict[str, list[str]] = {"train": [], "test": []}
    for split, count in (("train", rows), ("test", GROUP_ROWS)):
        for first in range(0, count, PART_ROWS):
            path = folder / f"{split}-{first // PART_ROWS:05d}.parquet"
            _write(path, min(PART_ROWS, count - first), zeros, random)
            parts[split].append(str(path))
    return Dataset(
        name=folder.name,
        train=tuple(parts["train"]),
        test=tuple(parts["test"]),
        columns=COLUMNS,
        classes=CLASSES,
        dtype="uint8",
        offset=(0.0,),
        divisor=(255.0,),
        train_rows=rows,
        test_rows=GROUP_ROWS,
        split_seed=0,
    )


def _write(path: Path, rows: int, zeros: float, random: np.random.Generator) -> None:
    with PartWriter(path, width=COLUMNS) as part:
        for first in range(0, rows, GROUP_ROWS):
            own = min(GROUP_ROWS, rows - first)
            values = random.integers(0, 256, (own, COLUMNS), np.uint8)
            if zeros:
                values[random.random(values.shape, np.float32) < zeros] = 0
            part.write((values, random.integers(0, CLASSES, own)))


def spec(data: str) -> TrialSpec:
    return TrialSpec(
        platform="torch-spark",
        dataset=data,
        data=data,
        network=NETWORK,
        resources=EXECUTORS,
        hyperparameters=Hyperparameters(
            solver="gd", learning_rate=0.05, precision="float32", gradient="manual", batch_size=None, epochs=EPOCHS
        ),
        data_fraction=1.0,
        trial=1,
        attempt=1,
        seed=1,
    )
