"""Small packed data and specs, as Pack and the plan make them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from models.dataset import Dataset
from models.protocol import Surroundings
from models.spark_conf import DRIVER_OPTIONS, EXECUTOR_OPTIONS
from models.spec import Hyperparameters, Network, Resources, TrialSpec
from pipeline.warm import class_archives

CACHE = Path(__file__).parent.parent.parent / "build" / "cache"
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"

COLUMNS, CLASSES = 12, 3
NETWORK = Network(sizes=(COLUMNS, 8, CLASSES))


def packed(
    folder: Path,
    *,
    train_rows: int = 400,
    test_rows: int = 90,
    row_group_rows: int = 64,
    columns: int = COLUMNS,
    classes: int = CLASSES,
    noise: float = 25,
    has_zeros: bool = False,
) -> Dataset:
    """Rows of bytes around one prototype a class; some of them, where asked for, zeros for the most part."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    prototypes = random.integers(40, 216, (classes, columns))
    for split, rows in (("train", train_rows), ("test", test_rows)):
        labels = random.integers(0, classes, rows)
        values = np.clip(prototypes[labels] + random.normal(0, noise, (rows, columns)), 0, 255).astype(np.uint8)
        if has_zeros:
            values[random.random((rows, columns)) < np.linspace(0, 1, rows)[:, None]] = 0
        features = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(columns), rows, [None, pa.py_buffer(values.tobytes())]
        )
        table = pa.table({"features": features, "label": pa.array(labels.astype(np.int64))})
        pq.write_table(table, folder / f"{split}.parquet", row_group_size=row_group_rows)
    return Dataset(
        name="made",
        train=(str(folder / "train.parquet"),),
        test=(str(folder / "test.parquet"),),
        columns=columns,
        classes=classes,
        dtype="uint8",
        offset=(0.0,),
        divisor=(255.0,),
        train_rows=train_rows,
        test_rows=test_rows,
        split_seed=3,
    )


def surroundings(folder: Path, **changes: Any) -> Surroundings:
    folder.mkdir(parents=True, exist_ok=True)
    given = Surroundings(
        work=folder,
        # No seconds are looked at: JVMs that live for a minute are not worth a second compiler's work.
        spark_conf={DRIVER_OPTIONS: QUICK, EXECUTOR_OPTIONS: QUICK},
        archives=folder / "eventlogs",
        class_archives=_archives(),
    )
    return replace(given, **changes)


@cache
def _archives() -> dict[str, str]:
    """Those that set-up made; to look for them asks Java for its version."""
    return class_archives(CACHE)


SPARK = Resources(executors=1, cores=2, memory_mib=1024, partitions=2, deploy_mode="client")
RESOURCES = {
    "mllib": SPARK,
    "mllib-logistic": SPARK,
    "numpy": Resources(threads=1),
    "torch-cpu": Resources(threads=1),
    "torch-cuda": Resources(device="cuda"),
    "torch-spark": Resources(executors=2, cores=1, memory_mib=1024, deploy_mode="client"),
    "torch-spark-async": Resources(executors=2, cores=1, memory_mib=1024, deploy_mode="client", shards=2),
}
PRECISION = {"mllib": "float64", "mllib-logistic": "float64"}


def spec(platform: str, **changes: Any) -> TrialSpec:
    """A trial of full-batch gradient descent; `changes` are hyper-parameters, or fields of the spec itself."""
    resources = changes.pop("resources", RESOURCES[platform])
    others = {
        name: changes.pop(name) for name in ("data", "seed", "data_fraction", "trial", "network") if name in changes
    }
    given = Hyperparameters(
        solver="gd",
        learning_rate=0.5,
        precision=PRECISION.get(platform, "float32"),
        gradient=None,
        batch_size=None,
        epochs=4,
    )
    whole = TrialSpec(
        platform=platform,
        dataset="made",
        data="made",
        network=NETWORK,
        resources=resources,
        hyperparameters=replace(given, **changes),
        data_fraction=1.0,
        trial=1,
        attempt=1,
        seed=11,
    )
    return replace(whole, **others)
