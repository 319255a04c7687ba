"""Rows beyond memory in containers of 2 GB that YARN holds them to: whoever takes more is ended by its NodeManager."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import memory
from bench.memory import OVERHEAD_MIB
from models.dataset import Dataset
from models.platforms.torch_spark import TorchSpark
from models.protocol import Surroundings, Yarn
from pipeline.config import read_settings
from pipeline.on_yarn import prepared
from pipeline.opening import open_store
from store.errors import TrialError
from store.protocol import Store
from store.publish import Staging

GIGABYTES = 6.0
BELIEVED_MIB = 8 * OVERHEAD_MIB  # by executors who then hold all of it in memory
ENDED = "more than its container's memory"


def rows(folder: Path, url: str) -> Iterator[dict[str, Any]]:
    settings = read_settings("quick", store=url, overrides=["spark.master=yarn", f"spark.overhead_mib={OVERHEAD_MIB}"])
    store = open_store(settings)
    yarn = replace(prepared(settings, store, folder="bench"), python_mib=OVERHEAD_MIB)

    datasets: dict[str, Dataset] = {}

    def made(name: str, rows: int) -> Dataset:
        datasets[name] = _published(store, name, rows, room=folder)
        return datasets[name]

    # Executors are children of YARN's daemons, whom nobody here can tell from others.
    fits, anybody = _platform(folder / "fits", yarn), nullcontext()
    yield from memory.measured(fits, made, gigabytes=GIGABYTES, watch=anybody, where="on YARN: ")
    _check_enforced(_platform(folder / "exceeds", yarn, believed_mib=BELIEVED_MIB), datasets["streamed"])


def _platform(work: Path, yarn: Yarn, *, believed_mib: int = OVERHEAD_MIB) -> TorchSpark:
    work.mkdir(parents=True)
    return TorchSpark(
        Surroundings(work=work, spark_conf={}, archives=work / "eventlogs", overhead_mib=believed_mib, yarn=yarn)
    )


def _check_enforced(platform: TorchSpark, data: Dataset) -> None:
    """The same executors with all rows in memory, for which their containers have no room: they must be ended."""
    with closing(platform):
        try:
            list(platform.train(memory.spec("streamed"), data))
        except TrialError as error:
            if ENDED in str(error):
                return
            raise
    raise RuntimeError("YARN let a container take more than its 2 GB: what was measured in them says nothing")


def _published(store: Store, name: str, rows: int, *, room: Path) -> Dataset:
    """Where executors look for packed data of this slug; it is made on this machine's disk first."""
    data = memory.packed(room / name, rows)
    for split, paths in (("train", data.train), ("test", data.test)):
        with Staging(store, f"data/{name}/packed/{split}") as staging:
            for path in paths:
                with staging.create(Path(path).name) as part, open(path, "rb") as file:
                    shutil.copyfileobj(file, part, 1 << 20)
            staging.commit()
    sizes = [memory.PART_ROWS] * (rows // memory.PART_ROWS)
    if rest := rows % memory.PART_ROWS:
        sizes.append(rest)
    return replace(data, train_part_rows=tuple(sizes))
