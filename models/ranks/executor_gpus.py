"""A GPU for each executor: asked of YARN, found by Spark, and why a trial that wants one cannot have it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from models.protocol import Surroundings
from models.spec import Resources
from yarn.resource_manager import ResourceManager

if TYPE_CHECKING:
    import torch

SCRIPT = "find_gpus.sh"
# Spark asks each executor which GPUs it has, and wants the answer as JSON.
FIND = """#!/bin/sh
found=$(nvidia-smi --query-gpu=index --format=csv,noheader | sed 's/.*/"&"/' | paste -sd, -)
echo "{\\"name\\": \\"gpu\\", \\"addresses\\": [$found]}"
"""


def lacking(resources: Resources, surroundings: Surroundings) -> str | None:
    """Why executors cannot have a GPU each, or None."""
    if resources.device != "cuda":
        return None
    if surroundings.yarn is None:
        import torch

        where, count = "this machine has", torch.cuda.device_count()
    else:
        manager = ResourceManager.of(surroundings.yarn.resource_managers, surroundings.yarn.reach.access)
        where, count = "YARN's nodes have", manager.gpus()
    executors = resources.executors or 1
    return None if count >= executors else f"{executors} executors need a GPU each, and {where} {count or 'none'}"


def script(work: Path) -> Path:
    """Goes to every container."""
    target = work / SCRIPT
    target.write_text(FIND, encoding="utf-8")
    target.chmod(0o755)
    return target


def conf(resources: Resources) -> dict[str, str]:
    """What Spark on YARN is told; the script has to be sent along."""
    if resources.device != "cuda":
        return {}
    return {
        "spark.executor.resource.gpu.amount": "1",
        "spark.executor.resource.gpu.vendor": "nvidia.com",
        "spark.executor.resource.gpu.discoveryScript": f"./{SCRIPT}",
    }


def device(resources: Resources, rank: int) -> torch.device:
    """Of a rank: a container of YARN sees its own GPU only, executors on one machine see all of them."""
    import torch

    if resources.device != "cuda":
        return torch.device("cpu")
    found = torch.device("cuda", rank % max(1, torch.cuda.device_count()))
    torch.cuda.set_device(found)
    return found
