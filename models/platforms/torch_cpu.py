"""The reference: the network in PyTorch, in one process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from models.dataset import Dataset
from models.gradient_check import unavailable
from models.networks import trained_network
from models.protocol import Epoch, Surroundings
from models.spec import TrialSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from models.rows import Values
    from models.training import Training

    Packed = tuple[NDArray[np.generic], NDArray[np.int64]]


class TorchCpu:
    name: ClassVar[str] = "torch-cpu"
    axes: ClassVar[frozenset[str]] = frozenset(
        {
            *("threads", "precisions", "gradients", "fractions"),
            *("solvers", "learning_rates", "initial_weights", "batch_sizes"),
        }
    )
    fixed: ClassVar[dict[str, str]] = {}

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def unavailable(self, spec: TrialSpec) -> str | None:
        return unavailable(spec.hyperparameters.gradient, spec.network)

    def train(self, spec: TrialSpec, data: Dataset) -> Iterator[Epoch]:
        startup_seconds = self._start()
        import torch

        from models.device import wait
        from models.training import Training

        if spec.resources.threads is not None:
            torch.set_num_threads(spec.resources.threads)
        device = torch.device(spec.resources.device)
        began = time.perf_counter()
        rows = self._load(data, data.read_train(spec.data_fraction), spec)
        wait(device)
        load_seconds = time.perf_counter() - began
        test_rows = self._load(data, data.read_test(), spec)
        parameters, forward = trained_network(spec, device)
        training = Training(
            network=spec.network,
            parameters=parameters,
            forward=forward,
            hyperparameters=spec.hyperparameters,
            rows=rows,
            seed=spec.seed,
        )
        if spec.hyperparameters.gradient == "compile":
            began = time.perf_counter()
            training.prepare()
            startup_seconds += time.perf_counter() - began
        for epoch in range(1, spec.hyperparameters.epochs + 1):
            wait(device)
            began, cpu = time.perf_counter(), time.process_time()
            done = training.epoch()
            wait(device)
            seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
            last = epoch == spec.hyperparameters.epochs
            yield Epoch(
                epoch=epoch,
                seconds=seconds,
                cpu_seconds=cpu_seconds,
                passes=done.passes,
                updates=done.updates,
                samples=done.passes * len(rows),
                loss=done.loss,
                train_accuracy=training.right(rows) / len(rows) if last else None,
                test_accuracy=training.right(test_rows) / len(test_rows),
                startup_seconds=startup_seconds,
                load_seconds=load_seconds,
                bytes_read=data.train_bytes,
                granted_cores=torch.get_num_threads(),
                parameters=sum(each.numel() for each in parameters),
                blas=self._blas(training),
            )

    def close(self) -> None:
        """Nothing outlives a trial."""

    def _start(self) -> float:
        """The import is what this platform starts with; a later trial of the same process has it for nothing."""
        began = time.perf_counter()
        import torch.optim  # noqa: F401

        return time.perf_counter() - began

    def _load(self, data: Dataset, packed: Packed, spec: TrialSpec) -> Values:
        import torch

        from models.rows import Values

        features, labels = packed
        precision = spec.hyperparameters.precision
        exact = "float64" if precision == "float64" else "float32"
        values = torch.from_numpy(data.values(features, exact))
        device = torch.device(spec.resources.device)
        return Values(values.to(device, getattr(torch, precision)), torch.from_numpy(labels).to(device))

    def _blas(self, training: Training) -> str:
        import torch

        return f"{training.library} {torch.backends.cpu.get_cpu_capability()}"
