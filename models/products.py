"""Matrix products of torch on a processor: its own, or those of oneDNN where they are faster.

In float32 torch multiplies with MKL, which leaves much of a processor that is not Intel's unused; oneDNN, which torch
brings along for other precisions, takes what the processor has (docs/findings.md). Which it is, is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from typing import Protocol

import torch
from torch import Tensor

# Below this the two are alike, and a choice by chance would be another run's other last digits.
WORTH_CHANGING = 1.25
PROBE_SIZE, PROBES = 1024, 4
CLOSE = 1e-4  # of float32, over so many terms


class Products(Protocol):
    """What a layer needs. What is answered need not be `out`."""

    library: str

    def affine(self, inputs: Tensor, matrix: Tensor, bias: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The inputs by the transposed matrix, and the bias."""
        ...

    def times(self, left: Tensor, right: Tensor, *, out: Tensor) -> Tensor: ...

    def add_outer(self, total: Tensor, left: Tensor, right: Tensor, *, room: Tensor) -> None:
        """Add the transposed left by the right to a total that may have more digits than they."""
        ...


class Own:
    """Torch's `mm`, whatever it multiplies with."""

    def __init__(self) -> None:
        self.library = "mkl" if torch.backends.mkl.is_available() else "openblas"

    def affine(self, inputs: Tensor, matrix: Tensor, bias: Tensor, *, out: Tensor | None = None) -> Tensor:
        return torch.addmm(bias, inputs, matrix.t(), out=out)

    def times(self, left: Tensor, right: Tensor, *, out: Tensor) -> Tensor:
        return torch.mm(left, right, out=out)

    def add_outer(self, total: Tensor, left: Tensor, right: Tensor, *, room: Tensor) -> None:
        if total.dtype == left.dtype:
            total.addmm_(left.t(), right)
        else:
            total += torch.mm(left.t(), right, out=room)


class OneDnn:
    """The operator that torch's own compiler puts into its programs; it takes no place to write to."""

    library = "onednn"

    def affine(self, inputs: Tensor, matrix: Tensor, bias: Tensor | None, *, out: Tensor | None = None) -> Tensor:
        found: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, matrix, bias, "none", [], "")
        return found

    def times(self, left: Tensor, right: Tensor, *, out: Tensor | None = None) -> Tensor:
        return self.affine(left, right.t(), None)

    def add_outer(self, total: Tensor, left: Tensor, right: Tensor, *, room: Tensor | None = None) -> None:
        total += self.affine(left.t(), right.t(), None)


def fastest(dtype: torch.dtype, device: torch.device) -> Products:
    """On this processor, with the threads that torch has when it is first asked."""
    if dtype != torch.float32 or device.type != "cpu":
        return Own()  # oneDNN has no float64, and torch takes it for bfloat16 by itself
    return _fastest()


def candidates(dtype: torch.dtype) -> list[Products]:
    return [Own(), OneDnn()] if dtype == torch.float32 and has_one_dnn() else [Own()]


@cache
def has_one_dnn() -> bool:
    """Also whether it multiplies: what is not torch's public face may change with its version."""
    made = torch.Generator().manual_seed(0)
    left, right, bias = (torch.rand(*size, generator=made) for size in ((48, 80), (32, 80), (32,)))
    try:
        found = OneDnn().affine(left, right, bias)
        return torch.allclose(found, torch.addmm(bias, left, right.t()), rtol=CLOSE)
    except (AttributeError, RuntimeError, TypeError):
        return False


@cache
def _fastest() -> Products:
    own, *others = candidates(torch.float32)
    left, right, out = (torch.rand(PROBE_SIZE, PROBE_SIZE) for _ in range(3))
    took = {each.library: float("inf") for each in (own, *others)}
    for _ in range(PROBES if others else 0):  # in alternation, as this processor may have other work
        for each in (own, *others):
            seconds = _seconds(partial(each.times, left, right, out=out))
            took[each.library] = min(took[each.library], seconds)
    best = min((own, *others), key=lambda each: took[each.library])
    return best if took[own.library] > WORTH_CHANGING * took[best.library] else own


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
