"""Torch's epoch against the floor: the machine's own matrix product, same precision, same threads, same run."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from models.networks import initial_weights, logits, to_torch
from models.platforms.scratch import Perceptron
from models.probes import multiplies_bfloat16, product_flops, usable_cores
from models.spec import Hyperparameters, Network

if TYPE_CHECKING:
    from models.training import Training

NETWORK = Network(sizes=(784, 1024, 10))
ROWS = 60_000
FLOP_PER_ROW = 4 * 784 * 1024 + 6 * 1024 * 10
EPOCHS = 5
ROUNDS = 3
BOUND = 1.4
NUMPY_BOUND = 2.0
# Each gradient at each precision; autograd's bfloat16 is measured and shown, its bound is the hand-written gradient's,
# and that one's holds where the processor multiplies in bfloat16 by itself. The gradient by hand takes the products of
# whatever library is the fastest here, and is held against those; autograd has torch's own.
WAYS = (
    ("autograd", "float32", BOUND),
    ("autograd", "bfloat16", None),
    ("manual", "float32", BOUND),
    ("manual", "bfloat16", BOUND),
)


def rows(folder: Path) -> list[dict[str, Any]]:
    threads = [count for count in (1, 2) if count <= usable_cores()]
    against_floor = [_row(*way, threads=count) for way in WAYS for count in threads]
    return [*against_floor, *own_products(), *(_numpy_row(count) for count in threads)]


def _row(gradient: str, precision: str, bound: float | None, *, threads: int) -> dict[str, Any]:
    import torch

    dtype = getattr(torch, precision)
    training = _training(gradient, precision, threads=threads)
    training.epoch()
    seconds, floors = [], []
    # Epochs and floor in alternation: a machine that changes its speed changes both.
    for _ in range(ROUNDS):
        floors.append(ROWS * FLOP_PER_ROW / product_flops(dtype, threads=threads, own=gradient == "autograd"))
        for _ in range(EPOCHS):
            began = time.perf_counter()
            training.epoch()
            seconds.append(time.perf_counter() - began)
    epoch, floor = statistics.median(seconds), min(floors)
    if precision == "bfloat16" and not multiplies_bfloat16():
        bound = None
    return {
        "name": f"torch-cpu epoch, {gradient}, {precision}, {threads} thread{'s' if threads > 1 else ''} / "
        + ("torch's floor" if gradient == "autograd" else "floor"),
        "ratio": epoch / floor,
        "bound": bound,
        "unit_seconds": epoch,
        "against_seconds": floor,
    }


def _training(gradient: str, precision: str, *, threads: int) -> Training:
    import torch

    from models.rows import Values
    from models.training import Training

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    return Training(
        network=NETWORK,
        parameters=to_torch(initial_weights(NETWORK, 1), device=torch.device("cpu"), dtype=torch.float32),
        forward=lambda weights, values: logits(weights, values, NETWORK.layer_activations),
        hyperparameters=Hyperparameters(
            solver="gd", learning_rate=0.1, precision=precision, gradient=gradient, batch_size=None, epochs=EPOCHS
        ),
        rows=Values(
            torch.rand(ROWS, NETWORK.inputs).to(getattr(torch, precision)), torch.randint(NETWORK.classes, (ROWS,))
        ),
        seed=1,
    )


def own_products() -> list[dict[str, Any]]:
    """How much of this machine torch's own products leave to autograd, which has no others; no bound."""
    import torch

    return [
        {
            "name": f"this machine's product, {precision}, {count} thread{'s' if count > 1 else ''} / torch's own",
            "ratio": product_flops(dtype, threads=count) / product_flops(dtype, threads=count, own=True),
            "bound": None,
            "unit_seconds": None,
            "against_seconds": None,
        }
        for precision in ("float32", "float64")
        for dtype in (getattr(torch, precision),)
        for count in (1, 2)
        if count <= usable_cores()
    ]


def _numpy_row(threads: int) -> dict[str, Any]:
    """The network from scratch beside torch's, full batch, epochs in alternation."""
    training = _training("autograd", "float32", threads=threads)
    random = np.random.default_rng(0)
    values = random.random((ROWS, NETWORK.inputs), np.float32)
    labels = random.integers(0, NETWORK.classes, ROWS)
    layers = initial_weights(NETWORK, 1)
    scratch = Perceptron(layers, activations=NETWORK.layer_activations, dtype="float32")

    def scratch_epoch() -> None:
        scratch.find_gradient(values, labels)
        scratch.step(0.1)

    took: dict[str, list[float]] = {"scratch": [], "torch": []}
    with threadpool_limits(threads, user_api="blas"):
        for _ in range(EPOCHS + 1):
            for name, epoch in (("scratch", scratch_epoch), ("torch", training.epoch)):
                began = time.perf_counter()
                epoch()
                took[name].append(time.perf_counter() - began)
    ours, torchs = (statistics.median(seconds[1:]) for seconds in took.values())
    return {
        "name": f"numpy epoch, float32, {threads} thread{'s' if threads > 1 else ''} / torch-cpu",
        "ratio": ours / torchs,
        "bound": NUMPY_BOUND,
        "unit_seconds": ours,
        "against_seconds": torchs,
    }
