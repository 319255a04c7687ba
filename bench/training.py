"""Torch's epoch against the floor: the machine's own matrix product, same precision, same threads, same run."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from models.networks import initial_weights, logits, to_torch
from models.probes import product_flops, usable_cores
from models.spec import Hyperparameters, Network

NETWORK = Network(sizes=(784, 1024, 10))
ROWS = 60_000
FLOP_PER_ROW = 4 * 784 * 1024 + 6 * 1024 * 10
EPOCHS = 5
ROUNDS = 3
BOUND = 1.4
# Each gradient at each precision; autograd's bfloat16 is measured and shown, its bound is the hand-written gradient's.
WAYS = (
    ("autograd", "float32", BOUND),
    ("autograd", "bfloat16", None),
    ("manual", "float32", BOUND),
    ("manual", "bfloat16", BOUND),
)


def rows(folder: Path) -> list[dict[str, Any]]:
    threads = [count for count in (1, 2) if count <= usable_cores()]
    return [_row(*way, threads=count) for way in WAYS for count in threads]


def _row(gradient: str, precision: str, bound: float | None, *, threads: int) -> dict[str, Any]:
    import torch

    from models.training import Training

    torch.set_num_threads(threads)
    dtype = getattr(torch, precision)
    torch.manual_seed(0)
    training = Training(
        network=NETWORK,
        parameters=to_torch(initial_weights(NETWORK, 1), device=torch.device("cpu"), dtype=torch.float32),
        forward=lambda weights, values: logits(weights, values, NETWORK.layer_activations),
        hyperparameters=Hyperparameters(
            solver="gd", learning_rate=0.1, precision=precision, gradient=gradient, batch_size=None, epochs=EPOCHS
        ),
        values=torch.rand(ROWS, NETWORK.inputs).to(dtype),
        labels=torch.randint(NETWORK.classes, (ROWS,)),
        seed=1,
    )
    training.epoch()
    seconds, floors = [], []
    # Epochs and floor in alternation: a machine that changes its speed changes both.
    for _ in range(ROUNDS):
        floors.append(ROWS * FLOP_PER_ROW / product_flops(dtype, threads=threads))
        for _ in range(EPOCHS):
            began = time.perf_counter()
            training.epoch()
            seconds.append(time.perf_counter() - began)
    epoch, floor = statistics.median(seconds), min(floors)
    return {
        "name": f"torch-cpu epoch, {gradient}, {precision}, {threads} thread{'s' if threads > 1 else ''} / floor",
        "ratio": epoch / floor,
        "bound": bound,
        "unit_seconds": epoch,
        "against_seconds": floor,
    }
