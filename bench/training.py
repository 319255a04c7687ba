"""Torch's epoch against the floor: the machine's own matrix product, same precision, same threads, same run."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from models.networks import initial_weights
from models.probes import product_flops, usable_cores
from models.spec import Hyperparameters, Network

NETWORK = Network(sizes=(784, 1024, 10))
ROWS = 60_000
EPOCHS = 5
ROUNDS = 3
BOUND = 1.4
# Held by the hand-written gradient, which is still to come; until then it is measured and shown.
SHOWN = ("bfloat16",)


def rows(folder: Path) -> list[dict[str, Any]]:
    threads = [count for count in (1, 2) if count <= usable_cores()]
    return [_row(precision, count) for precision in ("float32", "bfloat16") for count in threads]


def _row(precision: str, threads: int) -> dict[str, Any]:
    import torch

    from models.training import Training

    torch.set_num_threads(threads)
    dtype = getattr(torch, precision)
    torch.manual_seed(0)
    training = Training(
        initial=initial_weights(NETWORK, 1),
        hyperparameters=Hyperparameters(
            solver="gd", learning_rate=0.1, precision=precision, gradient=None, batch_size=None, epochs=EPOCHS
        ),
        values=torch.rand(ROWS, NETWORK.inputs).to(dtype),
        labels=torch.randint(NETWORK.classes, (ROWS,)),
        seed=1,
    )
    training.epoch()
    seconds, floors = [], []
    # Epochs and floor in alternation: a machine that changes its speed changes both.
    for _ in range(ROUNDS):
        floors.append(ROWS * NETWORK.flop_per_row() / product_flops(dtype, threads=threads))
        for _ in range(EPOCHS):
            began = time.perf_counter()
            training.epoch()
            seconds.append(time.perf_counter() - began)
    epoch, floor = statistics.median(seconds), min(floors)
    return {
        "name": f"torch-cpu epoch, {precision}, {threads} thread{'s' if threads > 1 else ''} / floor",
        "ratio": epoch / floor,
        "bound": None if precision in SHOWN else BOUND,
        "unit_seconds": epoch,
        "against_seconds": floor,
    }
