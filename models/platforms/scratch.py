"""The network from scratch in numpy: forward and backward pass, loss and update, to be read in one sitting."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from models.dataset import Dataset
from models.networks import Layer, accuracy, initial_weights
from models.protocol import Epoch, Surroundings
from models.spec import TrialSpec

Values = NDArray[np.floating]
Labels = NDArray[np.int64]
# What is known of so many rows stays in the processor's cache; the sum over chunks is the full batch's gradient.
CHUNK_ROWS = 1024
SOLVERS = ("gd", "sgd")


class Scratch:
    name: ClassVar[str] = "numpy"
    # There is one way to its gradient, the one below: `gradients` is no axis of it, and null in its records.
    axes: ClassVar[frozenset[str]] = frozenset(
        {"threads", "solvers", "learning_rates", "batch_sizes", "precisions", "initial_weights", "fractions"}
    )
    fixed: ClassVar[dict[str, str]] = {}

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def unavailable(self, spec: TrialSpec) -> str | None:
        solver, precision = spec.hyperparameters.solver, spec.hyperparameters.precision
        if spec.network.source is not None:
            return f"the network in numpy is an mlp, and {spec.network.name} is a module of torch"
        if solver not in SOLVERS:
            return f"the network in numpy has the solvers {' and '.join(SOLVERS)}, not {solver}"
        return f"numpy has no {precision}" if precision == "bfloat16" else None

    def train(self, spec: TrialSpec, data: Dataset) -> Iterator[Epoch]:
        began = time.perf_counter()
        from threadpoolctl import threadpool_limits

        startup_seconds = time.perf_counter() - began
        h, activations = spec.hyperparameters, spec.network.layer_activations
        began = time.perf_counter()
        features, labels = data.read_train(spec.data_fraction)
        values = data.values(features, h.precision)
        load_seconds = time.perf_counter() - began
        test_features, test_labels = data.read_test()
        test_values = data.values(test_features, h.precision)
        layers = initial_weights(spec.network, spec.seed, drawn=h.initial_weights)
        network = Perceptron(layers, activations=activations, dtype=h.precision)
        shuffle = np.random.default_rng(spec.seed)
        with threadpool_limits(spec.resources.threads, user_api="blas"):
            threads, blas = _blas()
            for epoch in range(1, h.epochs + 1):
                began, cpu = time.perf_counter(), time.process_time()
                loss, updates = 0.0, 0
                for batch in _batches(len(labels), h.batch_size, shuffle):
                    loss += network.find_gradient(values[batch], labels[batch])
                    network.step(h.learning_rate or 1.0)
                    updates += 1
                seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
                layers, last = network.layers, epoch == h.epochs
                yield Epoch(
                    epoch=epoch,
                    seconds=seconds,
                    cpu_seconds=cpu_seconds,
                    updates=updates,
                    samples=len(labels),
                    loss=loss / len(labels),
                    train_accuracy=accuracy(layers, values, labels, activations=activations) if last else None,
                    test_accuracy=accuracy(layers, test_values, test_labels, activations=activations),
                    startup_seconds=startup_seconds,
                    load_seconds=load_seconds,
                    bytes_read=data.train_bytes,
                    granted_cores=threads,
                    blas=blas,
                )

    def close(self) -> None:
        """Nothing outlives a trial."""


def _batches(rows: int, size: int | None, shuffle: np.random.Generator) -> Iterator[slice | Labels]:
    """Each row once: all in their order, or in batches of a new order for each epoch, the last with what is left."""
    if size is None:
        yield slice(0, rows)
        return
    order = shuffle.permutation(rows)
    for start in range(0, rows, size):
        yield order[start : start + size]


def _blas() -> tuple[int | None, str | None]:
    """The threads and the name of numpy's BLAS; a process may hold those of others too."""
    from threadpoolctl import threadpool_info

    found = [each for each in threadpool_info() if each["user_api"] == "blas"]
    for each in sorted(found, key=lambda each: "numpy" not in each["filepath"]):
        named = (each.get(key) for key in ("internal_api", "version", "architecture"))
        return each["num_threads"], " ".join(filter(None, named))
    return None, None


class Perceptron:
    """Layers of `activation(inputs @ weights.T + bias)`, and softmax of the last one's outputs.

    All that a chunk of rows needs lies in arrays that are made once: fresh memory costs more than arithmetic on it.
    """

    def __init__(self, layers: list[Layer], *, activations: tuple[str | None, ...], dtype: DTypeLike) -> None:
        self.layers = [(weights.astype(dtype), bias.astype(dtype)) for weights, bias in layers]
        self.gradient = [(np.zeros_like(weights), np.zeros_like(bias)) for weights, bias in self.layers]
        self._activations = activations
        self._outputs, self._deltas, self._spare = (
            [np.empty((CHUNK_ROWS, len(bias)), dtype) for _, bias in self.layers] for _ in range(3)
        )
        self._products = [np.empty_like(weights) for weights, _ in self.layers]

    def find_gradient(self, values: Values, labels: Labels) -> float:
        """Put the gradient of the rows' mean loss into `gradient`; their summed loss."""
        for by_weights, by_bias in self.gradient:
            by_weights[:], by_bias[:] = 0, 0
        loss = 0.0
        with np.errstate(all="ignore"):  # a training that diverges is seen in its loss
            for start in range(0, len(labels), CHUNK_ROWS):
                some = values[start : start + CHUNK_ROWS]
                self._forward(some)
                loss += self._loss(labels[start : start + CHUNK_ROWS])
                self._backward(some)
            for by_weights, by_bias in self.gradient:
                by_weights /= len(labels)
                by_bias /= len(labels)
        return loss

    def step(self, rate: float) -> None:
        with np.errstate(all="ignore"):
            for (weights, bias), (by_weights, by_bias), room in zip(
                self.layers, self.gradient, self._products, strict=True
            ):
                weights -= np.multiply(by_weights, rate, out=room)
                bias -= by_bias * rate

    def _forward(self, values: Values) -> None:
        for (weights, bias), outputs, activation in zip(self.layers, self._outputs, self._activations, strict=True):
            outputs = outputs[: len(values)]
            np.matmul(values, weights.T, out=outputs)
            outputs += bias
            if activation == "sigmoid":  # 1 / (1 + exp(-x))
                np.exp(np.negative(outputs, out=outputs), out=outputs)
                np.reciprocal(np.add(outputs, 1, out=outputs), out=outputs)
            elif activation == "relu":
                np.maximum(outputs, 0, out=outputs)
            elif activation == "tanh":
                np.tanh(outputs, out=outputs)
            values = outputs

    def _loss(self, labels: Labels) -> float:
        """The summed cross-entropy; its derivative by the outputs, softmax - one-hot, goes into the last delta."""
        rows = np.arange(len(labels))
        outputs, scores = self._outputs[-1][: len(labels)], self._deltas[-1][: len(labels)]
        # Softmax stays the same, and exp can't overflow.
        np.subtract(outputs, outputs.max(1, keepdims=True), out=scores)
        of_labels = scores[rows, labels]
        np.exp(scores, out=scores)
        sums = scores.sum(1, keepdims=True)
        scores /= sums
        scores[rows, labels] -= 1
        return float(np.log(sums).sum(dtype=np.float64) - of_labels.sum(dtype=np.float64))

    def _backward(self, values: Values) -> None:
        """From the last layer to the first: by what it summed up, by its weights, and by what it was given."""
        rows = len(values)
        for layer in range(len(self.layers) - 1, -1, -1):
            delta, outputs = self._deltas[layer][:rows], self._outputs[layer][:rows]
            spare, activation = self._spare[layer][:rows], self._activations[layer]
            if activation == "sigmoid":  # y' = y * (1 - y)
                delta *= np.multiply(np.subtract(1, outputs, out=spare), outputs, out=spare)
            elif activation == "relu":  # y' = 1 where y > 0
                delta *= np.greater(outputs, 0, out=spare)
            elif activation == "tanh":  # y' = 1 - y * y
                delta *= np.subtract(1, np.multiply(outputs, outputs, out=spare), out=spare)
            inputs = self._outputs[layer - 1][:rows] if layer else values
            by_weights, by_bias = self.gradient[layer]
            by_weights += np.matmul(delta.T, inputs, out=self._products[layer])
            by_bias += delta.sum(0)
            if layer:
                np.matmul(delta, self.layers[layer][0], out=self._deltas[layer - 1][:rows])
