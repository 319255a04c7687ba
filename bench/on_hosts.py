"""What the hosts of bench.network run: `python -m bench.on_hosts train FOLDER URL`, and `... sum ADDRESS RANK`."""

from __future__ import annotations

import json
import os
import socket
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

from bench.executors import EXECUTORS, ON_SPARK, ROUNDS, descent, random_bytes
from bench.load import Watch
from bench.training import NETWORK
from models.platforms.mllib import MLlib
from models.platforms.torch_cpu import TorchCpu
from models.platforms.torch_spark import TorchSpark
from models.protocol import Epoch, Platform, Surroundings
from models.spec import Resources, TrialSpec

PORT = 29_500
SUMS = 31
DEADLINE_SECONDS = 60.0


def train(folder: Path, url: str) -> dict[str, float]:
    """On the driver. Sides in alternation: a machine that changes its speed changes all of them."""
    data = random_bytes(folder / "packed")
    surroundings = Surroundings(work=folder, spark_conf={}, archives=folder / "eventlogs", spark_url=url)
    spark, mllib, one = TorchSpark(surroundings), MLlib(surroundings), TorchCpu(surroundings)
    whole = descent("torch-spark", ON_SPARK, "float32")
    trials: dict[str, tuple[Platform, TrialSpec]] = {
        "one_thread": (one, descent("torch-cpu", Resources(threads=1), "float32")),
        "torch_spark": (spark, whole),
        "halved": (spark, replace(whole, hyperparameters=replace(whole.hyperparameters, compression="bfloat16"))),
        "mllib": (mllib, descent("mllib", replace(ON_SPARK, partitions=EXECUTORS), "float64")),
    }
    epochs: dict[str, list[Epoch]] = {name: [] for name in trials}
    # The nodes' processes are children of who started us; when they end, their time is nobody's.
    watch = Watch(os.getppid())
    try:
        for _ in range(ROUNDS):
            for name, (platform, trial) in trials.items():
                with watch.stretch():
                    epochs[name] += list(platform.train(trial, data))[1:]
    finally:
        spark.close()
    found = {name: statistics.median(each.seconds for each in some) for name, some in epochs.items()}
    found["other_load"] = watch.cores()
    found["communication"] = statistics.median(each.ledger["comm"] for each in epochs["torch_spark"])
    return found


def sum_(address: str, rank: int) -> dict[str, float]:
    """On each node: with the other, and with nothing else to do."""
    import torch

    from models.ranks.mesh import Mesh

    mesh = Mesh([_other(address, rank)], rank=rank, stall_seconds=DEADLINE_SECONDS)
    found = {}
    for name, numbers in (("smallest", 1), ("gradient", (NETWORK.parameters or 0) + 1)):
        values = torch.zeros(numbers)
        took = []
        for _ in range(SUMS):
            mesh.gather(torch.zeros(1))  # both begin at once
            began = time.perf_counter()
            mesh.sum(values)
            took.append(time.perf_counter() - began)
        found[name] = statistics.median(took)
    mesh.close()
    return found


def _other(address: str, rank: int) -> socket.socket:
    """The first listens, the second calls until it does."""
    if rank == 0:
        with socket.create_server((address, PORT)) as listener:
            listener.settimeout(DEADLINE_SECONDS)
            return listener.accept()[0]
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            return socket.create_connection((address, PORT), timeout=DEADLINE_SECONDS)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    print(json.dumps(train(Path(given[0]), given[1]) if what == "train" else sum_(given[0], int(given[1]))))
