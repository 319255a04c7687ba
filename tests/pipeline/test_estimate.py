"""What a plan would take, by the last time the same configurations ran."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from models.outcome import Outcome
from models.run import base_record
from models.spec import Hyperparameters, Network, Resources, TrialSpec
from pipeline.estimate import estimate
from pipeline.trials import Trials
from store.local import LocalStore

SPEC = TrialSpec(
    platform="mllib",
    dataset="made",
    data="made",
    network=Network(sizes=(6, 8, 3)),
    resources=Resources(executors=2, cores=3),
    hyperparameters=Hyperparameters(
        solver="gd", learning_rate=0.5, precision="float64", gradient=None, batch_size=None, epochs=2
    ),
    data_fraction=1.0,
    trial=1,
    attempt=1,
    seed=1,
)
OTHER = replace(SPEC, resources=Resources(executors=1, cores=1))


def ran(store: LocalStore, run: str, *, seconds: float) -> None:
    record = replace(base_record(SPEC, run_id=run, machine="m"), startup_seconds=10.0, load_seconds=5.0)
    records = tuple(replace(record, epoch=epoch, seconds=seconds) for epoch in (1, 2))
    done = Outcome(
        spec=SPEC,
        outcome="ok",
        reason=None,
        noisy=False,
        invocation="",
        position=1,
        note=None,
        records=records,
    )
    Trials(store, f"runs/{run}/trials", invocation="", noisy_repeats=0).publish(done, events=b"", logs={})


def test_start_up_load_and_epochs_of_the_last_time(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    ran(store, "a", seconds=22.5)
    found = estimate(store, [SPEC, replace(SPEC, trial=2, seed=2)])
    assert found.seconds == 2 * (10 + 5 + 2 * 22.5)
    assert found.core_hours == pytest.approx(120 * 6 / 3600)
    assert found.unknown == 0
    assert str(found).endswith("core-hours, by the last time the same ran here")


def test_what_never_ran_is_said_and_not_guessed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    assert str(estimate(store, [SPEC])).startswith("no estimate: 1 configuration never ran")
    ran(store, "a", seconds=22.5)
    found = estimate(store, [SPEC, OTHER, replace(OTHER, trial=2)])
    assert (found.seconds, found.unknown) == (60.0, 1)
    assert "1 configuration never ran in this store" in str(found)
