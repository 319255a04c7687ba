"""How the answer moves with the network: two nodes and a driver on a switch, with fast links and slow ones.

By its name only, as root (`make bench ARGS=network`). Beside the ratios it prints what follows for more executors.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.executors import EXECUTORS, ON_SPARK
from bench.load import check_quiet
from bench.training import NETWORK
from cluster.network import Network, why_not
from cluster.spark_standalone import SparkStandalone

TOP = Path(__file__).parent.parent
DRIVER, NODES = "driver", ("node-1", "node-2")
LINKS: dict[str, float | None] = {"no limit": None, "1 Gbit/s": 1000, "100 Mbit/s": 100}
WORKER_MIB = 1024 + (ON_SPARK.memory_mib or 0)
GRADIENT_BYTES = 4 * ((NETWORK.parameters or 0) + 1)  # the loss goes along
CLUSTERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Seconds at one speed of the links, medians."""

    torch_spark: float  # an epoch on the two nodes
    communication: float  # of that, not hidden behind arithmetic
    halved: float  # an epoch whose gradients go in bfloat16
    mllib: float  # a gd pass on the same executors
    one_thread: float  # an epoch of torch-cpu on the driver, in alternation
    other_load: float  # cores that others used meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """Seconds of a sum over the two nodes and nothing else, medians."""

    smallest: float  # of one number
    gradient: float

    @property
    def latency(self) -> float:
        """Of a step: a sum has two of them."""
        return self.smallest / 2

    @property
    def bandwidth(self) -> float:
        """Bytes a second: over two nodes each sends as much as there is to sum."""
        return GRADIENT_BYTES / (self.gradient - self.smallest)


def rows(folder: Path) -> list[dict[str, Any]]:
    if why := why_not():
        print(f"{why}: the ratios of a slow network are left out")
        return []
    summed: dict[str, Summed] = {}
    trained: dict[str, Trained] = {}
    with (
        Network(DRIVER, *NODES) as network,
        SparkStandalone(
            network,
            directory=folder / "spark",
            master=DRIVER,
            workers=NODES,
            cores=ON_SPARK.cores or 1,
            memory_mib=WORKER_MIB,
        ) as spark,
    ):
        for number, (name, megabits) in enumerate(LINKS.items()):
            network.limit(megabits)
            summed[name] = _summed(network)
            trained[name] = _trained(network, folder / f"trained-{number}", spark.url)
            check_quiet(trained[name].other_load, f"while nodes trained with {name}")
    for line in _predictions(trained, summed):
        print(line)
    return [row for name in LINKS for row in _ratios(name, trained[name], summed[name])]


def predicted(executors: int, *, compute: float, summed: Summed) -> float:
    """Seconds of an epoch: the arithmetic of `compute` shared out, and the sum of the gradient with the others."""
    n = executors
    exchanged = 2 * (n - 1) / n * GRADIENT_BYTES / summed.bandwidth + 2 * summed.latency
    return compute / n + (exchanged if n > 1 else 0.0)


def _ratios(name: str, trained: Trained, summed: Summed) -> Iterator[dict[str, Any]]:
    yield _row(f"torch-spark epoch, {name} / torch-cpu, 1 thread", trained.torch_spark, trained.one_thread)
    yield _row(f"mllib gd pass, {name} / torch-cpu, 1 thread", trained.mllib, trained.one_thread)
    yield _row(f"torch-spark epoch / mllib gd pass, {name}", trained.torch_spark, trained.mllib)
    yield _row(f"torch-spark epoch, gradients in bfloat16 / float32, {name}", trained.halved, trained.torch_spark)
    yield _row(f"communication / torch-spark epoch, {name}", trained.communication, trained.torch_spark)
    size = f"sum of a gradient of {GRADIENT_BYTES / 1e6:.1f} MB, {name}"
    if megabits := LINKS[name]:
        yield _row(f"{size} / at the link's speed", summed.gradient, GRADIENT_BYTES * 8 / (megabits * 1e6))
    else:
        yield _row(f"{size} / torch-spark epoch", summed.gradient, trained.torch_spark)


def _predictions(trained: dict[str, Trained], summed: dict[str, Summed]) -> Iterator[str]:
    """Tables for docs/findings.md: what was measured, and seconds of an epoch beside how many times faster."""
    one = trained["no limit"].one_thread
    yield (
        "| links | torch-spark | communication | bfloat16 gradients | mllib | torch-cpu, 1 thread "
        "| sum of the gradient | sum of one number | bandwidth |"
    )
    yield f"|---|{'---|' * 8}"
    for name, each in trained.items():
        alone = summed[name]
        seconds = (each.torch_spark, each.communication, each.halved, each.mllib, each.one_thread)
        yield (
            f"| {name} | {' | '.join(f'{value:.3f} s' for value in seconds)} | {alone.gradient * 1e3:.1f} ms "
            f"| {alone.smallest * 1e3:.3f} ms | {alone.bandwidth * 8 / 1e6:.0f} Mbit/s |"
        )
    # The links change nothing of the arithmetic.
    fastest = trained["no limit"]
    compute = EXECUTORS * (fastest.torch_spark - fastest.communication)
    yield f"| executors | {' | '.join(LINKS)} |"
    yield f"|---|{'---|' * len(LINKS)}"
    for executors in CLUSTERS:
        found = [predicted(executors, compute=compute, summed=summed[name]) for name in LINKS]
        yield _against(one, f"{executors}, calculated", found)
        if executors == EXECUTORS:
            yield _against(one, f"{executors}, measured", [trained[name].torch_spark for name in LINKS])


def _against(one: float, name: str, seconds: list[float]) -> str:
    return f"| {name} | {' | '.join(f'{each:.3f} s, {one / each:.2f}x' for each in seconds)} |"


def _summed(network: Network) -> Summed:
    command = [sys.executable, "-m", "bench.on_hosts", "sum", network.address(NODES[0])]
    quiet = os.environ | {"TORCH_CPP_LOG_LEVEL": "ERROR"}  # else it says that addresses here have no names
    ranks = [
        subprocess.Popen(network.command(host, [*command, str(rank)]), cwd=TOP, env=quiet, stdout=subprocess.PIPE)
        for rank, host in enumerate(NODES)
    ]
    answers = [rank.communicate()[0] for rank in ranks]
    ends = zip(NODES, (rank.returncode for rank in ranks), strict=True)
    if failed := [f"on {host} with {code}" for host, code in ends if code]:
        raise RuntimeError(f"summing ended {' and '.join(failed)}; what it said stands above")
    return Summed(**json.loads(answers[0]))


def _trained(network: Network, folder: Path, url: str) -> Trained:
    command = [sys.executable, "-m", "bench.on_hosts", "train", str(folder), url]
    done = subprocess.run(network.command(DRIVER, command), cwd=TOP, check=True, stdout=subprocess.PIPE)
    return Trained(**json.loads(done.stdout.splitlines()[-1]))


def _row(name: str, ours: float, against: float) -> dict[str, Any]:
    return {"name": name, "ratio": ours / against, "bound": None, "unit_seconds": ours, "against_seconds": against}
