"""The reference on a GPU: the same training, with the device waited for before the clock is read."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from models.dataset import Dataset
from models.platforms.torch_cpu import TorchCpu
from models.protocol import Epoch
from models.spec import TrialSpec
from store.errors import TrialError

if TYPE_CHECKING:
    from models.training import Training

NONE = "no CUDA device"
DRIVERS = ("libcuda.so.1", "libamdhip64.so")  # of torch's two builds for GPUs


class TorchCuda(TorchCpu):
    name: ClassVar[str] = "torch-cuda"
    axes: ClassVar[frozenset[str]] = TorchCpu.axes - {"threads"}
    fixed: ClassVar[dict[str, str]] = {"device": "cuda"}

    def unavailable(self, spec: TrialSpec) -> str | None:
        if not _has_driver():
            return NONE
        import torch

        return super().unavailable(spec) if torch.cuda.is_available() else NONE

    def train(self, spec: TrialSpec, data: Dataset) -> Iterator[Epoch]:
        import torch

        try:
            yield from super().train(spec, data)
        except torch.cuda.OutOfMemoryError:
            batch = spec.hyperparameters.batch_size
            raise TrialError(
                f"the GPU's memory does not hold {data.rows(spec.data_fraction)} rows with batch_size="
                f"{batch or 'full'}; lower the profile's fractions or batch_sizes"
            ) from None

    def _blas(self, training: Training) -> str:
        import torch

        return f"cublas {torch.version.cuda} {torch.cuda.get_device_name()}"


def _has_driver() -> bool:
    """Without one torch finds no GPU either, and takes a second to say so."""
    for name in DRIVERS:
        with suppress(OSError):
            ctypes.CDLL(name)
            return True
    return False
