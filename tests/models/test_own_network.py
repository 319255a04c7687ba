"""A user's own network: the documented example trained by the platform, and every way to get it wrong as a sentence."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from models.dataset import Dataset
from models.platforms.torch_cpu import TorchCpu
from models.protocol import Epoch
from models.spec import SOLVERS, Network, TrialSpec
from store.errors import TrialError
from tests.models.made import CLASSES, COLUMNS, packed, spec, surroundings

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
MANUAL = EXAMPLES.parent / "own-network.md"
IMPORTS = "import torch\nfrom torch import nn\n"
DEAD = """
class Dead(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.used, self.idle = nn.Linear(inputs, classes), nn.Linear(inputs, classes)
    def forward(self, values):
        return self.used(values)
"""
RAISES = """
class Raises(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.layer = nn.Linear(inputs, classes)
    def forward(self, values):
        if self.training:
            raise RuntimeError("too \\n deep")
        return self.layer(values)
"""
FICKLE = """
class Fickle(nn.Linear):
    def forward(self, values):
        return super().forward(values)[:90]
"""
DROPOUT = """
def make(inputs, classes):
    return nn.Sequential(nn.Linear(inputs, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, classes))
"""


@pytest.fixture(autouse=True)
def _modules_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the child process has: the working directory on its path. And modules that no other test sees."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("my_nets", "small_cnn")):
            del sys.modules[name]


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    return packed(tmp_path / "packed")


def own(source: str, *, inputs: int = COLUMNS, classes: int = CLASSES, **changes: object) -> TrialSpec:
    network = Network.parse(f"torch:{source}", inputs=inputs, classes=classes)
    return replace(spec("torch-cpu", gradient="autograd", **changes), network=network)


def train(trial: TrialSpec, data: Dataset, place: Path) -> list[Epoch]:
    platform = TorchCpu(surroundings(place / "session"))
    assert platform.unavailable(trial) is None
    return list(platform.train(trial, data))


def sentence(trial: TrialSpec, data: Dataset, place: Path) -> str:
    with pytest.raises(TrialError) as told:
        train(trial, data, place)
    said = str(told.value)
    assert "\n" not in said
    assert trial.network.name in said
    return said


@pytest.mark.parametrize("columns", [64, 192])
def test_the_documented_example_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    assert "(examples/small_cnn.py)" in MANUAL.read_text()
    assert "torch:small_cnn:make" in MANUAL.read_text()
    monkeypatch.syspath_prepend(str(EXAMPLES))
    data = packed(tmp_path / "packed", columns=columns)
    epochs = train(
        own("small_cnn:make", inputs=columns, solver="adam", learning_rate=0.01, batch_size=32, epochs=5),
        data,
        tmp_path,
    )
    assert epochs[-1].test_accuracy is not None
    assert epochs[-1].test_accuracy > 0.8
    channels, side = (3, 8) if columns == 192 else (1, 8)
    convolutions = 16 * (9 * channels + 1) + 32 * (9 * 16 + 1)
    assert {epoch.parameters for epoch in epochs} == {convolutions + (32 * (side // 4) ** 2 + 1) * CLASSES}


def test_the_manuals_first_network_is_one(tmp_path: Path, data: Dataset) -> None:
    [code] = re.findall(r"```python\n(.*?)```", MANUAL.read_text(), re.DOTALL)
    (tmp_path / "my_nets.py").write_text(code)
    assert train(own("my_nets:make"), data, tmp_path)[0].parameters == 64 * (COLUMNS + 1) + CLASSES * 65


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
def test_every_solver_and_precision_trains_it(tmp_path: Path, data: Dataset, solver: str, precision: str) -> None:
    (tmp_path / "my_nets.py").write_text(
        IMPORTS + "def make(i, c): return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, c))"
    )
    batch = None if solver in ("gd", "l-bfgs") else 64
    rate = {"l-bfgs": None, "adam": 0.01}.get(solver, 0.1)
    trial = own("my_nets:make", solver=solver, learning_rate=rate, batch_size=batch, precision=precision)
    losses = [epoch.loss for epoch in train(trial, data, tmp_path)]
    assert losses[-1] < losses[0]  # type: ignore[operator]
    assert losses == [epoch.loss for epoch in train(trial, data, tmp_path)]
    assert losses != [epoch.loss for epoch in train(replace(trial, seed=12), data, tmp_path)]


def test_its_seed_is_all_that_is_random(tmp_path: Path, data: Dataset) -> None:
    import torch

    (tmp_path / "my_nets.py").write_text(IMPORTS + DROPOUT)
    trial = own("my_nets:make", solver="adam", learning_rate=0.05, batch_size=40, epochs=6)
    first = train(trial, data, tmp_path)
    torch.rand(17)
    again = train(trial, data, tmp_path)
    assert [(each.loss, each.test_accuracy) for each in first] == [(each.loss, each.test_accuracy) for each in again]


def test_dropout_is_for_training_only(tmp_path: Path) -> None:
    import torch

    from models.own_network import own_network

    (tmp_path / "my_nets.py").write_text(IMPORTS + DROPOUT)
    network, single = Network.parse("torch:my_nets:make", inputs=COLUMNS, classes=CLASSES), torch.float32
    weights, forward = own_network(network, seed=1, device=torch.device("cpu"), dtype=single, kept=single)
    values = torch.rand(50, COLUMNS)
    trained = [forward(weights, values) for _ in range(2)]
    with torch.no_grad():
        evaluated = [forward(weights, values) for _ in range(2)]
    assert not torch.equal(*trained)
    assert torch.equal(*evaluated)


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("def make(inputs, classes):\n    raise ValueError('no such\\nsize')", 4, ["could not make", "Error: no such"]),
        ("def make(inputs): return nn.Linear(inputs, 3)", 3, ["TypeError", "takes 1 positional argument"]),
        ("raise OSError('early')", 3, ["could not import my_nets", "OSError: early"]),
        ("def make(:", 3, ["could not import my_nets", "SyntaxError"]),
        ("import not_installed_here", 3, ["could not import my_nets", "No module named 'not_installed_here'"]),
        ("import sys\nsys.exit('bye')", 4, ["SystemExit: bye"]),
        ("def make(inputs, classes): return [inputs]", 3, ["gave a list; it must give a torch.nn.Module"]),
        ("def make(inputs, classes): return nn.Linear(inputs, 7)", 3, ["gives 2 x 7 for 2 rows", "2 x 3", "3 classes"]),
        ("def make(inputs, classes): return nn.Flatten(0)", 3, ["gives 24 for 2 rows", "2 x 3"]),
        ("def make(inputs, classes): return nn.LSTM(inputs, 3)", 3, ["gives a tuple for 2 rows"]),
        ("def make(inputs, classes): return nn.Linear(5, classes)", 3, ["could not take 2 rows of 12", "12 and 5x3"]),
        ("def make(inputs, classes): return nn.Linear(inputs, 3).requires_grad_(False)", 3, ["no parameter"]),
        (DEAD + "make = Dead", 4, ["depends on its parameter idle.weight"]),
        (RAISES + "make = Raises", 10, ["could not take 400 rows of 12 values", "RuntimeError: too"]),
        (FICKLE + "make = Fickle", 4, ["gives 90 x 3 for 400 rows", "400 x 3"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_it_is_a_sentence_with_the_users_own_line(
    tmp_path: Path, data: Dataset, code: str, line: int, words: list[str]
) -> None:
    (tmp_path / "my_nets.py").write_text(IMPORTS + code)
    said = sentence(own("my_nets:make"), data, tmp_path)
    for word in (f"{tmp_path / 'my_nets.py'} line {line}", *words):
        assert word in said, said


def test_an_installed_networks_line_is_told_too(tmp_path: Path, data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of libraries are passed over, and the user's network may be one."""
    (tmp_path / "my_nets.py").write_text("def make(inputs, classes):\n    return one / 0\n")
    monkeypatch.setattr("models.own_network.FOREIGN", (str(tmp_path),))
    assert f"{tmp_path / 'my_nets.py'} line 2: NameError" in sentence(own("my_nets:make"), data, tmp_path)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("my_nets_nowhere:make", "there is no module my_nets_nowhere in the working directory"),
        ("my_nets.small:make", "there is no module my_nets.small in the working directory"),
        ("my_nets:makes", "makes is not there in "),
        ("my_nets:SIZE", "SIZE is not callable in "),
        ("models:make", "make is not there in "),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, data: Dataset, source: str, words: str) -> None:
    (tmp_path / "my_nets.py").write_text("SIZE = 3\n")
    assert words in sentence(own(source), data, tmp_path)


@pytest.mark.parametrize("gradient", ["manual", "compile"])
def test_only_autograd_takes_it(tmp_path: Path, gradient: str) -> None:
    trial = own("my_nets:make")
    trial = replace(trial, hyperparameters=replace(trial.hyperparameters, gradient=gradient))
    assert "autograd" in (TorchCpu(surroundings(tmp_path)).unavailable(trial) or "")
