"""What arithmetic runs on, and when it has done what it was given: before a clock is read."""

from __future__ import annotations

import torch


def wait(device: torch.device) -> None:
    """A GPU is given work faster than it does it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
