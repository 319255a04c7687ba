"""Training knows how long a gradient takes before it has found one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.gradients import Manual
from models.networks import trained_network
from models.rows import Packed
from models.training import Training
from tests.models.made import packed, spec


@pytest.mark.parametrize("rows", [101, 100, 30])
def test_it_is_judged_by_a_whole_chunk_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Of 101 rows the first chunk is one row, which tells nothing of the others."""
    monkeypatch.setattr("models.rows.CHUNK_ROWS", 50)
    data = packed(tmp_path)
    features, labels = (torch.from_numpy(each) for each in data.read_span(1.0, 0, rows))
    trial = spec("torch-cpu", gradient="manual")
    parameters, forward = trained_network(trial, torch.device("cpu"))
    training = Training(
        network=trial.network,
        parameters=parameters,
        forward=forward,
        hyperparameters=trial.hyperparameters,
        rows=Packed(features, labels, data, dtype=torch.float32),
        seed=1,
    )
    looked: list[int] = []
    found = Manual.add

    def add(self: Manual, weights: list[torch.Tensor], values: torch.Tensor, *rest: object, **more: object) -> object:
        looked.append(len(values))
        return found(self, weights, values, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Manual, "add", add)
    before = [each.clone() for each in parameters]
    assert training.probe_seconds() > 0
    assert set(looked) == {min(rows, 50)}
    assert all(torch.equal(*pair) for pair in zip(before, parameters, strict=True))
