"""A user's own network, `torch:module:callable`: found, made by the trial's seed, and tried on two rows of zeros.

Whatever goes wrong inside it is one sentence with the user's own file and line, and never a traceback.
"""

from __future__ import annotations

import inspect
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from models.gradients import Forward
from models.spec import Network
from store.errors import TrialError

ROWS = 2  # that it is tried on
# Lines of these are not the user's, unless the user's module itself is installed there.
FOREIGN = (str(Path(__file__).parent), *{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}, "<")


def own_network(
    network: Network, *, seed: int, device: torch.device, dtype: torch.dtype, kept: torch.dtype
) -> tuple[list[Tensor], Forward]:
    """Its weights at the precision they are kept in, and the way from values to what softmax is taken of.

    Where no gradient is wanted, it is as for evaluation: without dropout, and with the averages of its batch norms.
    """
    make, place = _callable(network)
    torch.manual_seed(seed)
    with _told(network, place, "could not make a network"):
        module = make(network.inputs, network.classes)
    if not isinstance(module, nn.Module):
        raise TrialError(f"{network.name} ({place}) gave {_kind(module)}; it must give a torch.nn.Module")
    module.to(device, kept).eval()
    zeros = torch.zeros(ROWS, network.inputs, device=device, dtype=kept)
    with _told(network, place, f"could not take {ROWS} rows of {network.inputs} values"):
        outputs = module(zeros)  # layers that find out their sizes by themselves know them now
    _check(network, place, outputs)
    learning = {name: each for name, each in module.named_parameters() if each.requires_grad}
    _check_learning(network, place, outputs, learning)
    parameters = [each.detach().requires_grad_() for each in learning.values()]
    module.to(dtype)

    def forward(weights: list[Tensor], values: Tensor) -> Tensor:
        if module.training != torch.is_grad_enabled():
            module.train(torch.is_grad_enabled())
        with _told(network, place, f"could not take {len(values)} rows of {network.inputs} values"):
            outputs: Tensor = functional_call(module, dict(zip(learning, weights, strict=True)), (values,))
        _check(network, place, outputs, rows=len(values))
        return outputs

    return parameters, forward


def _callable(network: Network) -> tuple[Callable[[int, int], Any], str]:
    """What the name says, and where the user wrote it."""
    name, _, attribute = str(network.source).partition(":")
    try:
        with _told(network, "", f"could not import {name}"):
            module = import_module(name)
    except ModuleNotFoundError:
        raise TrialError(
            f"{network.name}: there is no module {name} in the working directory {Path.cwd()} or on PYTHONPATH; "
            "copy it there, or correct the name in networks"
        ) from None
    make = getattr(module, attribute, None)
    if not callable(make):
        found = "is not callable" if hasattr(module, attribute) else "is not there"
        raise TrialError(
            f"{network.name}: {attribute} {found} in {module.__file__ or name}; name a function "
            f"of it that makes the network, as torch:{name}:make"
        )
    try:
        return make, f"{inspect.getsourcefile(make)} line {inspect.getsourcelines(make)[1]}"
    except (OSError, TypeError):
        return make, str(module.__file__ or name)


def _check(network: Network, place: str, outputs: Any, *, rows: int = ROWS) -> None:
    classes = network.classes
    wanted = f"it must give a tensor of {rows} x {classes}, a number for each of the dataset's {classes} classes"
    if not isinstance(outputs, Tensor) or not outputs.is_floating_point():
        raise TrialError(f"{network.name} ({place}) gives {_kind(outputs)} for {rows} rows; {wanted}")
    if outputs.shape != (rows, network.classes):
        shape = " x ".join(map(str, outputs.shape)) or "a single number"
        raise TrialError(f"{network.name} ({place}) gives {shape} for {rows} rows; {wanted}")


def _check_learning(network: Network, place: str, outputs: Tensor, learning: Mapping[str, Tensor]) -> None:
    """A weight that no output depends on has no gradient."""
    if not learning:
        raise TrialError(f"{network.name} ({place}) has no parameter that learns; give it a layer with weights")
    idle = list(learning)
    if outputs.requires_grad:
        found = torch.autograd.grad(outputs.sum(), list(learning.values()), allow_unused=True)
        idle = [name for name, gradient in zip(learning, found, strict=True) if gradient is None]
    if idle:
        raise TrialError(
            f"{network.name} ({place}): no output depends on its parameter {idle[0]}; use it in forward or leave it out"
        )


@contextmanager
def _told(network: Network, place: str, what: str) -> Iterator[None]:
    """Whatever the user's code raises becomes a sentence that names its line."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (Exception, SystemExit) as error:
        name = str(network.source).partition(":")[0]
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise
        said = (str(error).strip() or "no message").splitlines()[0]
        where = _line(error, name) or place or name
        raise TrialError(f"{network.name} {what}: {where}: {type(error).__name__}: {said}") from None


def _line(error: BaseException, name: str) -> str | None:
    """The innermost line of the user's own code that an error went through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename} line {error.lineno}"
    top = name.partition(".")[0]
    origin = getattr(find_spec(top), "origin", None) or ""
    root = str(Path(origin).parent) if origin.endswith("__init__.py") else origin
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(FOREIGN) or (root and frame.filename.startswith(root)):
            return f"{frame.filename} line {frame.lineno}"
    return None


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}" if not isinstance(value, Tensor) else f"a tensor of {value.dtype}"
