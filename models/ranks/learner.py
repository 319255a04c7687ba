"""A network whose weights are one vector, and so are its gradients: what a rank sends to shards, and gets from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from models.gradients import gradient
from models.networks import trained_network
from models.rows import Chunk, Rows
from models.spec import TrialSpec
from models.training import Share


@dataclass(frozen=True, slots=True)
class Batch:
    """A rank's part of a batch."""

    chunks: Iterable[Chunk]
    rows: int
    of: int  # rows of the whole batch


class Learner:
    def __init__(self, spec: TrialSpec) -> None:
        parameters, self._forward = trained_network(spec, torch.device("cpu"))
        self.weights = torch.cat([each.detach().flatten() for each in parameters])
        self.gradient = torch.zeros_like(self.weights)  # summed over the rows of a batch
        self._shapes = [each.shape for each in parameters]
        self._gradients = gradient(
            spec.hyperparameters.gradient,
            network=spec.network,
            forward=self._forward,
            dtype=getattr(torch, spec.hyperparameters.precision),
            device=self.weights.device,
        )
        self.library = self._gradients.library
        self._parts = self._split(self.gradient)
        self._batch_size = spec.hyperparameters.batch_size
        self._shuffle = torch.Generator().manual_seed(spec.seed)

    def steps(self, rows: int) -> int:
        """Of an epoch."""
        return 1 if self._batch_size is None else -(-rows // self._batch_size)

    def batches(self, rows: Rows, share: Share) -> Iterator[Batch]:
        """Of one epoch: the same batches as those of ranks in step, and of each the rows that are ours."""
        if self._batch_size is None:
            yield Batch(rows.chunks(), len(rows), share.of)
            return
        for batch in torch.randperm(share.of, generator=self._shuffle).split(self._batch_size):
            own = share.own(batch)
            yield Batch(rows.batch(own), len(own), len(batch))

    def learn(self, batch: Batch, *, dtype: torch.dtype) -> float:
        """Put the gradient by the weights as they are into `gradient`; the summed loss."""
        weights = self._cast(self.weights, dtype)
        self.gradient.zero_()
        loss = self.gradient.new_zeros(())
        for some, known in batch.chunks:
            loss += self._gradients.add(weights, some, known, sums=self._parts)
        return loss.item()

    def right(self, rows: Rows, weights: Tensor) -> int:
        """How many of these the network knows with such weights."""
        with torch.no_grad():
            cast = self._cast(weights, rows.dtype)
            return int(sum((self._forward(cast, some).argmax(1) == known).sum() for some, known in rows.chunks()))

    def _cast(self, weights: Tensor, dtype: torch.dtype) -> list[Tensor]:
        return [each.to(dtype) for each in self._split(weights)]

    def _split(self, flat: Tensor) -> list[Tensor]:
        """Views."""
        pieces = flat.split([shape.numel() for shape in self._shapes])
        return [piece.view(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]
