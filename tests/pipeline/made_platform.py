"""Platforms of another package: they train nothing, and do what the environment asks for. Installed by `Place`."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from models.dataset import Dataset
from models.protocol import Epoch, Surroundings
from models.spec import TrialSpec
from store.errors import TrialError


def _await_turn() -> None:
    """As long as a file is there, trainings beyond so many as it says wait; each has a line of the notes."""
    notes = Path(os.environ["MADE_NOTES"])
    most = notes.with_name("most")
    with suppress(FileNotFoundError):
        while len(notes.read_text().splitlines()) > int(most.read_text()):
            time.sleep(0.02)


class Steady:
    name: ClassVar[str] = "steady"
    axes: ClassVar[frozenset[str]] = frozenset({"executors", "cores", "learning_rates", "partitions"})
    fixed: ClassVar[dict[str, str]] = {"solver": "gd", "precision": "float64"}

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def unavailable(self, spec: TrialSpec) -> str | None:
        return "it is not there" if self._how() == "unavailable" else None

    def train(self, spec: TrialSpec, data: Dataset) -> Iterator[Epoch]:
        how = self._how()
        mode = self._surroundings.work.stat().st_mode & 0o777
        with Path(os.environ["MADE_NOTES"]).open("a") as notes:
            notes.write(f"{os.getpid()} {mode:o} {self._surroundings.work} {spec.slug}\n")
        _await_turn()
        if how == "with a child":
            subprocess.Popen(["sleep", "600"])
        if how == "no epoch":
            return
        for epoch in range(1, spec.hyperparameters.epochs + 1):
            time.sleep(float(os.environ.get("MADE_SLEEP", "0")))
            if epoch == 2 and how == "raise":
                raise RuntimeError("boom\nand more")
            if epoch == 2 and how == "refuse":
                raise TrialError("memory_mib=1 is too little; ask for 2")
            if epoch == 2 and how == "exit":
                print("the last words", flush=True)
                os._exit(3)
            if epoch == 2 and how == "stop early":
                return
            if epoch == 3 and how == "hang":
                time.sleep(600)
            yield Epoch(
                epoch=epoch,
                seconds=float(os.environ.get("MADE_SECONDS", 0.01 * epoch)),
                samples=data.rows(spec.data_fraction),
                loss=float("nan") if epoch == 2 and how == "diverge" else 1.0 / epoch,
                test_accuracy=0.5,
                tainted="an executor was lost" if epoch == 1 and how == "taint" else None,
            )

    def close(self) -> None:
        if self._how() == "never close":
            time.sleep(600)

    def _how(self) -> str:
        return os.environ.get("MADE_HOW", "")


class Fickle(Steady):
    """Fails as long as a file is there."""

    name: ClassVar[str] = "fickle"

    def _how(self) -> str:
        return "raise" if Path(os.environ["MADE_FAILS"]).exists() else ""
