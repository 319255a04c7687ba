"""What keeps an epoch from the floor, and what was tried: one executor's share of MNIST's rows, one thread, no Spark.

By its name only (`make bench ARGS=floor`): nothing here has a bound.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.executors import ON_SPARK, descent, random_bytes
from bench.training import FLOP_PER_ROW, NETWORK, ROWS
from models import rows as rows_module
from models.dataset import Dataset
from models.gradient_check import unavailable
from models.gradients import Manual
from models.networks import trained_network
from models.probes import multiplies_bfloat16, product_flops
from models.products import Own, fastest
from models.rows import CHUNK_ROWS, Packed, Rows, Values
from models.training import Training

OWN_ROWS = ROWS // 2 // CHUNK_ROWS * CHUNK_ROWS  # whole chunks
ROUNDS = 5
CHUNKS = (128, 256, 512, 1024, 4096, 8192, OWN_ROWS)
Epoch = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to an epoch."""

    name: str
    epoch: Epoch
    chunk_rows: int = CHUNK_ROWS


def rows(folder: Path) -> list[dict[str, Any]]:
    data = random_bytes(folder)
    torch.set_num_threads(1)
    features, labels = (torch.from_numpy(each) for each in data.read_span(1.0, 0, OWN_ROWS))
    found: list[dict[str, Any]] = []
    for precision in ("float32", "bfloat16") if multiplies_bfloat16() else ("float32",):
        found += _measured(list(_ways(data, features, labels, precision)), precision)
    return found


def _ways(data: Dataset, features: Tensor, labels: Tensor, precision: str) -> Iterator[Way]:
    dtype = getattr(torch, precision)

    def packed(data: Dataset = data) -> Packed:
        return Packed(features, labels, data, dtype=dtype)

    def epoch(rows: Rows, gradient: str = "manual") -> Epoch:
        return _training(rows, precision, gradient).epoch

    yield Way(name=f"as it is: by hand, bytes, chunks of {CHUNK_ROWS}", epoch=epoch(packed()))
    for size in CHUNKS:
        with _chunks(size):  # which keep room for one
            yield Way(name=f"chunks of {size}", epoch=epoch(packed()), chunk_rows=size)
    values = torch.cat([some.clone() for some, _ in packed().chunks()])
    yield Way(name="rows kept as values", epoch=epoch(Values(values, labels)))
    yield Way(name="bytes that are not divided", epoch=epoch(packed(replace(data, dtype="float32"))))
    if fastest(dtype, torch.device("cpu")).library != Own().library:
        by_own = _training(packed(), precision, "manual")
        by_own._gradients = Manual(NETWORK.layer_activations, Own())
        yield Way(name="torch's own products", epoch=by_own.epoch)
    yield Way(name="autograd", epoch=epoch(packed(), "autograd"))
    if why := unavailable("compile", NETWORK):
        print(f"autograd, compiled, is left out: {why}")
    else:
        yield Way(name="autograd, compiled", epoch=epoch(packed(), "compile"))
    yield Way(name="its matrix products alone", epoch=_products(dtype))
    alone = packed()
    yield Way(name="bytes to values alone", epoch=lambda: sum(len(known) for _, known in alone.chunks()))


def _measured(ways: list[Way], precision: str) -> Iterator[dict[str, Any]]:
    """In alternation: a machine that changes its speed changes all of them."""
    took: dict[str, list[float]] = {way.name: [] for way in ways}
    floors = []
    for _ in range(ROUNDS + 1):
        floors.append(OWN_ROWS * FLOP_PER_ROW / product_flops(getattr(torch, precision), threads=1))
        for way in ways:
            with _chunks(way.chunk_rows):
                began = time.perf_counter()
                way.epoch()
                took[way.name].append(time.perf_counter() - began)
    floor = min(floors)
    for name, seconds in took.items():
        epoch = statistics.median(seconds[1:])
        yield {
            "name": f"{precision}, 1 thread, {name} / floor",
            "ratio": epoch / floor,
            "bound": None,
            "unit_seconds": epoch,
            "against_seconds": floor,
        }


@contextmanager
def _chunks(size: int) -> Iterator[None]:
    before = rows_module.CHUNK_ROWS
    rows_module.CHUNK_ROWS = size
    try:
        yield
    finally:
        rows_module.CHUNK_ROWS = before


def _training(rows: Rows, precision: str, gradient: str) -> Training:
    spec = descent("torch-spark", ON_SPARK, precision)
    spec = replace(spec, hyperparameters=replace(spec.hyperparameters, gradient=gradient))
    parameters, forward = trained_network(spec, torch.device("cpu"))
    return Training(
        network=NETWORK,
        parameters=parameters,
        forward=forward,
        hyperparameters=spec.hyperparameters,
        rows=rows,
        seed=1,
    )


def _products(dtype: torch.dtype) -> Epoch:
    """The five of a pass, in the shapes of a chunk, with nothing between them."""
    inputs, hidden, classes = NETWORK.sizes
    values, first = torch.rand(CHUNK_ROWS, inputs).to(dtype), torch.rand(hidden, inputs).to(dtype)
    second, room = torch.rand(classes, hidden).to(dtype), torch.rand(CHUNK_ROWS, hidden).to(dtype)
    delta, outputs = torch.rand(CHUNK_ROWS, hidden).to(dtype), torch.rand(CHUNK_ROWS, classes).to(dtype)
    first_sum, second_sum = torch.zeros_like(first), torch.zeros_like(second)
    first_room, second_room = torch.empty_like(first), torch.empty_like(second)
    first_bias, second_bias = (torch.zeros(count).to(dtype) for count in (hidden, classes))
    products = fastest(dtype, torch.device("cpu"))

    def epoch() -> None:
        for _ in range(OWN_ROWS // CHUNK_ROWS):
            products.affine(values, first, first_bias, out=room)
            products.affine(room, second, second_bias, out=outputs)
            products.add_outer(second_sum, outputs, room, room=second_room)
            products.times(outputs, second, out=delta)
            products.add_outer(first_sum, delta, values, room=first_room)

    return epoch
