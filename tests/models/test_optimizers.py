"""The steps of optimizers: those of torch.optim's own classes, without what these import."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
import torch

from models.optimizers import MOMENTUM, l_bfgs, optimizer
from models.spec import Hyperparameters

RATE = 0.1
CLASSES = {
    "gd": lambda weights: torch.optim.SGD(weights, lr=RATE),
    "momentum": lambda weights: torch.optim.SGD(weights, lr=RATE, momentum=MOMENTUM),
    "adam": lambda weights: torch.optim.Adam(weights, lr=RATE),
}


def weights() -> list[torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    return [torch.randn(4, 3, generator=random).requires_grad_(), torch.randn(5, generator=random)]


@pytest.mark.parametrize("solver", CLASSES)
def test_they_are_those_of_torch(solver: str) -> None:
    ours, known = weights(), weights()
    hyperparameters = Hyperparameters(
        solver=solver, learning_rate=RATE, precision="float32", gradient="manual", batch_size=None, epochs=1
    )
    steps, theirs = optimizer(ours, hyperparameters), CLASSES[solver](known)
    for part in (1.0, 1.0, 0.25):
        for mine, other in zip(ours, known, strict=True):
            mine.grad = other.grad = torch.sin(other.detach())
        theirs.param_groups[0]["lr"] = RATE * part
        steps.step(of=part)
        theirs.step()
    for mine, other in zip(ours, known, strict=True):
        assert torch.equal(mine, other)


PROGRAM = """
import sys
{}
assert not {{"torch._dynamo", "sympy", "pandas"}} & set(sys.modules), "seconds of start-up for nothing"
"""
TRAINS = """
import torch
from models.networks import trained_network
from models.rows import Values
from models.spec import Hyperparameters, Network, Resources, TrialSpec
from models.training import Training
h = Hyperparameters(
    solver="adam", learning_rate=0.1, precision="float32", gradient="autograd", batch_size=None, epochs=1
)
spec = TrialSpec(
    platform="torch-cpu", dataset="d", data="d", network=Network(sizes=(3, 4, 2)), resources=Resources(),
    hyperparameters=h, data_fraction=1.0, trial=1, attempt=1, seed=1,
)
parameters, forward = trained_network(spec, torch.device("cpu"))
rows = Values(torch.zeros(5, 3), torch.zeros(5, dtype=torch.int64))
training = Training(network=spec.network, parameters=parameters, forward=forward, hyperparameters=h, rows=rows, seed=1)
training.epoch()
training.right(rows)
"""
ASKS = """
from models.gradient_check import unavailable
from models.platforms import torch_cpu, torch_spark
assert "torch" not in sys.modules, "the driver of torch-spark has no use for it"
"""


@pytest.mark.parametrize("does", [TRAINS, ASKS])
def test_a_process_loads_no_more_than_it_needs(does: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(does)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_l_bfgs_goes_on_where_its_first_step_is_too_long() -> None:
    """Rosenbrock's valley bends: only who looks for the length of a step arrives at (1, 1)."""
    at = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    steps = l_bfgs([at])
    losses: list[float] = []

    def closure() -> torch.Tensor:
        at.grad = None
        loss = (1 - at[0]) ** 2 + 100 * (at[1] - at[0] ** 2) ** 2
        loss.backward()
        return loss.detach()

    for _ in range(60):
        losses.append(steps.step(closure).item())
    assert all(later < before or later < 1e-12 for before, later in pairwise(losses))
    assert losses[-1] < 1e-12
    assert torch.allclose(at, torch.ones(2, dtype=torch.float64), atol=1e-5)
