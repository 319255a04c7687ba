"""Three ways to one gradient in torch: automatic, the same compiled, or written by hand as matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from models.products import Own, Products, fastest
from models.spec import Network

BLOCKS = 8
Done = Callable[[slice], None]  # these rows of the first matrix are summed up
Forward = Callable[[list[Tensor], Tensor], Tensor]  # weights and values to what softmax is taken of


class Gradient(Protocol):
    library: str  # that multiplies matrices

    def add(
        self, weights: list[Tensor], values: Tensor, labels: Tensor, *, sums: list[Tensor], done: Done | None = None
    ) -> Tensor:
        """Add the gradient of the rows' summed loss to `sums`; the summed loss, in the precision of `sums`.

        Sums over many chunks need more digits than bfloat16 has, so `sums` may be finer than `weights`. The first
        matrix is by far the largest part of most gradients, and the last that is found: `done` is told of its rows,
        block by block.
        """
        ...


def gradient(
    name: str | None, *, network: Network, forward: Forward, dtype: torch.dtype, device: torch.device
) -> Gradient:
    """By its name in luigi.cfg; of values of this kind, in this place."""
    if name == "manual":
        return Manual(network.layer_activations, fastest(dtype, device))
    return Autograd(forward, compiled=name == "compile")


def blocks(rows: int) -> list[slice]:
    bounds = [rows * number // BLOCKS for number in range(BLOCKS + 1)]
    return [slice(start, stop) for start, stop in pairwise(bounds) if start < stop]


class Autograd:
    def __init__(self, forward: Forward, *, compiled: bool) -> None:
        # The sizes of a chunk are fixed, those of the last one may differ: two programs, no general one.
        self._loss = torch.compile(self._summed_loss, dynamic=False) if compiled else self._summed_loss
        self._forward = forward
        self.library = Own().library

    def add(
        self, weights: list[Tensor], values: Tensor, labels: Tensor, *, sums: list[Tensor], done: Done | None = None
    ) -> Tensor:
        weights = [each.detach().requires_grad_() for each in weights]
        loss = self._loss(weights, values, labels)
        for part, found in zip(sums, torch.autograd.grad(loss, weights), strict=True):
            part += found
        if done is not None:
            for block in blocks(len(sums[0])):
                done(block)
        return loss.detach().to(sums[0].dtype)

    def _summed_loss(self, weights: list[Tensor], values: Tensor, labels: Tensor) -> Tensor:
        outputs = self._forward(weights, values)
        # The loss of bfloat16 outputs is taken in float32: its logarithms are few and cheap.
        wide = torch.float32 if outputs.dtype == torch.bfloat16 else outputs.dtype
        return cross_entropy(outputs.to(wide), labels, reduction="sum")


@dataclass(slots=True)
class _Rows:
    """What a chunk of rows needs, kept from one to the next: fresh memory costs more than arithmetic on it."""

    outputs: list[Tensor] = field(default_factory=list)  # of each layer, after its activation
    deltas: list[Tensor] = field(default_factory=list)  # the loss's derivative by what each layer summed up


class Manual:
    """Forward and backward pass of a multilayer perceptron, a matrix product for each layer, way and operand.

    The derivative by the inputs is not needed, and so not found: that saves a third of the first layer.
    """

    def __init__(self, activations: tuple[str | None, ...], products: Products) -> None:
        self._activations = activations
        self._products = products
        self.library = products.library
        self._rows = 0
        self._room = _Rows()
        self._outer: list[Tensor] = []  # room for a product of the form of each layer's matrix

    def add(
        self, weights: list[Tensor], values: Tensor, labels: Tensor, *, sums: list[Tensor], done: Done | None = None
    ) -> Tensor:
        with torch.no_grad():
            room = self._made(weights, len(values))
            self._forward(weights, values, room)
            loss = self._loss(room, labels, sums[0].dtype)
            self._backward(weights, values, room, sums, done)
        return loss

    def _forward(self, weights: list[Tensor], values: Tensor, room: _Rows) -> None:
        inputs = values
        for layer, activation in enumerate(self._activations):
            matrix, bias = weights[2 * layer : 2 * layer + 2]
            inputs = room.outputs[layer] = self._products.affine(inputs, matrix, bias, out=room.outputs[layer])
            if activation is not None:
                ACTIVATE[activation](inputs)

    def _loss(self, room: _Rows, labels: Tensor, dtype: torch.dtype) -> Tensor:
        """The summed loss; leaves its derivative by the outputs in the last delta."""
        outputs = room.outputs[-1].to(dtype)
        log_shares = torch.log_softmax(outputs, 1)
        rows = torch.arange(len(labels), device=labels.device)
        loss = -log_shares[rows, labels].sum()
        by_outputs = log_shares.exp_()
        by_outputs[rows, labels] -= 1
        room.deltas[-1].copy_(by_outputs)
        if self._activations[-1] is not None:
            DERIVE[self._activations[-1]](room.deltas[-1], room.outputs[-1])
        return loss

    def _backward(
        self, weights: list[Tensor], values: Tensor, room: _Rows, sums: list[Tensor], done: Done | None
    ) -> None:
        for layer in reversed(range(len(self._activations))):
            delta = room.deltas[layer]
            inputs = room.outputs[layer - 1] if layer else values
            sums[2 * layer + 1] += delta.sum(0)
            if layer or done is None:
                self._products.add_outer(sums[2 * layer], delta, inputs, room=self._outer[layer])
            else:
                for block in blocks(len(sums[0])):
                    self._products.add_outer(sums[0][block], delta[:, block], inputs, room=self._outer[0][block])
                    done(block)
            if layer:
                before = self._products.times(delta, weights[2 * layer], out=room.deltas[layer - 1])
                room.deltas[layer - 1] = before
                activation = self._activations[layer - 1]
                if activation is not None:
                    DERIVE[activation](before, inputs)

    def _made(self, weights: list[Tensor], rows: int) -> _Rows:
        """Room for the most rows there ever were serves fewer too."""
        if rows > self._rows:
            sizes = [len(bias) for bias in weights[1::2]]
            new = weights[0].new_empty
            self._rows = rows
            self._room = _Rows(
                outputs=[new(rows, size) for size in sizes],
                deltas=[new(rows, size) for size in sizes],
            )
            self._outer = [torch.empty_like(matrix) for matrix in weights[::2]]
        return _Rows(
            outputs=[each[:rows] for each in self._room.outputs],
            deltas=[each[:rows] for each in self._room.deltas],
        )


ACTIVATE: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid_,
    "relu": torch.relu_,
    "tanh": torch.tanh_,
}
# Each in one pass over memory, in place: (derivative by the activation's output, that output).
DERIVE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sigmoid": lambda delta, output: torch.ops.aten.sigmoid_backward.grad_input(delta, output, grad_input=delta),
    "relu": lambda delta, output: torch.ops.aten.threshold_backward.grad_input(delta, output, 0, grad_input=delta),
    "tanh": lambda delta, output: torch.ops.aten.tanh_backward.grad_input(delta, output, grad_input=delta),
}
