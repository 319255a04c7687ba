"""Whether a gradient is to be had here, asked before torch is loaded: that takes seconds."""

from __future__ import annotations

import shutil

from models.spec import Network


def unavailable(name: str | None, network: Network) -> str | None:
    """Why a gradient is not to be had here, or None."""
    if name == "manual" and network.source is not None:
        return "the gradient written by hand is that of an mlp; gradients = autograd takes any network"
    if name == "compile" and network.source is not None:
        return f"torch.compile is tried with an mlp only; gradients = autograd takes {network.name} too"
    if name == "compile" and not (shutil.which("g++") or shutil.which("clang++")):
        return "torch.compile needs a C++ compiler (on Debian: apt-get install g++)"
    return None
