"""One of those who train together: loads its share of the rows, and does epoch after epoch in step with the others."""

from __future__ import annotations

import math
import sys
import time
import zlib
from collections.abc import Iterator

import torch

from models.device import wait
from models.networks import trained_network
from models.ranks.balance import SPEED, Span, moved, spans, weights
from models.ranks.group import Group
from models.ranks.local_rows import LocalRows
from models.ranks.peak_memory import forget_peak, peak_mib
from models.ranks.worker import Clocks, Errand, Told
from models.training import Done, Share, Training
from store.errors import TrialError

WORTH_HIDING = 0.98  # of the seconds without: less is noise


class Rank:
    def __init__(self, group: Group, errand: Errand, device: torch.device) -> None:
        forget_peak()
        self._group = group
        self._spec = spec = errand.spec
        self._device = device
        began = time.perf_counter()
        self._local = LocalRows(errand, device=device)
        self._rows = self._local.count
        self._spans = spans(self._rows, weights(spec.resources.balance, group.size))
        tested = spans(self._local.data.test_rows, [1.0] * group.size)[group.rank]
        self._local.hold(self._own, tested, moves=self._balances)
        self._train = self._local.train(self._own)
        self._load_seconds = time.perf_counter() - began
        self._test = self._local.test(tested)
        parameters, forward = trained_network(spec, device)
        self._training = Training(
            network=spec.network,
            parameters=parameters,
            forward=forward,
            hyperparameters=spec.hyperparameters,
            rows=self._train,
            seed=spec.seed,
            share=self._share(),
            together=group,
        )

    def epochs(self) -> Iterator[Told]:
        began = time.perf_counter()
        if self._balances:
            self._balance(self._training.probe_seconds())
        self._load_seconds += time.perf_counter() - began
        if self._spec.hyperparameters.gradient == "compile":
            self._training.prepare()
        exchange = self._training.exchange_seconds() if self._group.size > 1 else None
        self._training.overlaps = self._hides()
        yield self._ready(exchange)
        compute = 0.0
        for epoch in range(1, self._spec.hyperparameters.epochs + 1):
            self._group.gather([0.0])  # all begin at once
            wall, cpu = time.perf_counter(), time.process_time()
            if self._balances and epoch > 1:
                self._balance(compute)
            moving = time.perf_counter() - wall
            self._group.seconds = 0.0
            done = self._training.epoch()
            wait(self._device)
            seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
            comm = self._group.seconds
            compute = (seconds - comm - moving) / max(1, done.passes)
            clocks = Clocks(
                seconds=seconds,
                comm=comm,
                moving=moving,
                cpu_seconds=cpu_seconds,
                peak_memory_mib=peak_mib(),
                rows=self._own[1] - self._own[0],
            )
            told = self._told(epoch, done, clocks)
            if self._group.rank == 0:
                yield told
            if told.loss is None:
                return

    @property
    def _own(self) -> Span:
        return self._spans[self._group.rank]

    @property
    def _balances(self) -> bool:
        return self._spec.resources.balance == SPEED and self._group.size > 1

    def _hides(self) -> bool:
        """Whether sums go out while others are found: tried, as only what waits can be hidden, and each costs its way.

        All come to the same, and to the same bits either way.
        """
        if self._group.size == 1 or self._spec.hyperparameters.gradient != "manual":
            return False
        tried = self._group.gather([self._training.last_chunk_seconds(overlaps=each) for each in (True, False)])
        early, late = (max(each[way] for each in tried) for way in (0, 1))
        return early < WORTH_HIDING * late

    def _ready(self, exchange: float | None) -> Told:
        return Told(
            kind="ready",
            rank=self._group.rank,
            host=self._group.host,
            load_seconds=self._load_seconds,
            threads=torch.get_num_threads(),
            parameters=sum(each.numel() for each in self._training.parameters),
            exchange_seconds=exchange,
            blas=f"{self._training.library} {torch.backends.cpu.get_cpu_capability()}",
            versions={"python": sys.version.partition(" ")[0], "torch": str(torch.__version__)},
        )

    def _told(self, epoch: int, done: Done, clocks: Clocks) -> Told:
        """What rank 0 tells of all; outside every clock."""
        is_finite = math.isfinite(done.loss)
        last = epoch == self._spec.hyperparameters.epochs or not is_finite
        numbers = [getattr(clocks, name) for name in Clocks.__dataclass_fields__]
        known = self._training.right(self._train) if last else math.nan
        every = self._group.gather([*numbers, known, self._training.right(self._test), self._checksum()])
        if len({each[-1] for each in every}) > 1:
            raise TrialError(
                f"after epoch {epoch} the weights differ between executors; do their processors differ? Train with "
                f"equal nodes, or another precision"
            )
        return Told(
            kind="epoch",
            rank=0,
            epoch=epoch,
            passes=done.passes,
            updates=done.updates,
            loss=done.loss if is_finite else None,
            train_accuracy=sum(each[-3] for each in every) / self._rows if last else None,
            test_accuracy=sum(each[-2] for each in every) / self._local.data.test_rows,
            clocks=tuple(Clocks(**dict(zip(Clocks.__dataclass_fields__, each, strict=False))) for each in every),
        )

    def _checksum(self) -> float:
        sum_ = 0
        for each in self._training.parameters:
            sum_ = zlib.crc32(each.detach().cpu().contiguous().view(-1).numpy().data, sum_)
        return float(sum_)

    def _balance(self, compute: float) -> None:
        """By what each took for its share. All come to the same, as they know the same numbers."""
        found = moved(self._spans, [seconds for [seconds] in self._group.gather([compute])])
        if found is not None:
            before, self._spans = self._own, found
            self._train = self._local.moved(self._train, before=before, now=self._own)
            self._training.take(self._train, self._share())

    def _share(self) -> Share:
        return Share(*self._own, self._rows)
