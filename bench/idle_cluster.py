"""The same torch program by itself, beside a Spark application that does nothing, and as a task of that application.

By its name only (`make bench ARGS=idle-cluster`): it answers a question and has no bound.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.executors import ON_SPARK
from bench.load import Watch, check_quiet
from bench.training import NETWORK, ROWS
from models.probes import usable_cores
from models.protocol import Surroundings
from models.spark_application import SparkApplication

ROUNDS = 3
EPOCHS = 5
Ran = tuple[float, int]  # the median of its epochs in seconds, and the threads that torch took
Program = Callable[[int | None], Ran]


def rows(folder: Path) -> list[dict[str, Any]]:
    folder.mkdir(parents=True, exist_ok=True)
    surroundings = Surroundings(work=folder, spark_conf={}, archives=folder / "eventlogs")
    watch = Watch(os.getpid())
    found: dict[str, list[Ran]] = {}
    for _ in range(ROUNDS):
        with watch.stretch():
            found.setdefault("by itself", []).append(_by_itself())
        application = SparkApplication(ON_SPARK, surroundings)
        try:
            with watch.stretch():
                found.setdefault("beside idle executors", []).append(_by_itself())
                found.setdefault("as a task", []).append(_as_task(application, None))
                name = f"as a task that asks for {usable_cores()} threads"
                found.setdefault(name, []).append(_as_task(application, usable_cores()))
        finally:
            application.stop()
    check_quiet(watch.cores(), "while the program ran")
    return list(_rows(found))


def _rows(found: dict[str, list[Ran]]) -> Iterator[dict[str, Any]]:
    medians = {name: statistics.median(seconds for seconds, _ in ran) for name, ran in found.items()}
    for name, ran in found.items():
        if name != "by itself":
            yield {
                "name": f"torch {name}, {_threads(ran)} / by itself, {_threads(found['by itself'])}",
                "ratio": medians[name] / medians["by itself"],
                "bound": None,
                "unit_seconds": medians[name],
                "against_seconds": medians["by itself"],
            }


def _threads(ran: list[Ran]) -> str:
    counts = sorted({threads for _, threads in ran})
    return f"{' or '.join(map(str, counts))} thread{'s' if counts != [1] else ''}"


def _by_itself() -> Ran:
    """In a new process, as somebody starts it who knows nothing of Spark."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_tell, args=(theirs,))
    process.start()
    ran: Ran = ours.recv()
    process.join()
    return ran


def _tell(end: Connection) -> None:
    end.send(_program()(None))


def _as_task(application: SparkApplication, threads: int | None) -> Ran:
    program = _program()
    [ran] = application.session.sparkContext.parallelize([threads], 1).map(program).collect()
    return ran


def _program() -> Program:
    """As a function of no module, which Spark sends whole."""
    rows, (inputs, hidden, classes), epochs = ROWS, NETWORK.sizes, EPOCHS

    def program(threads: int | None) -> Ran:
        import torch

        if threads is not None:
            torch.set_num_threads(threads)
        torch.manual_seed(0)
        values, known = torch.rand(rows, inputs), torch.randint(classes, (rows,))
        network = torch.nn.Sequential(
            torch.nn.Linear(inputs, hidden), torch.nn.Sigmoid(), torch.nn.Linear(hidden, classes)
        )
        took = []
        for _ in range(epochs + 1):
            began = time.perf_counter()
            network.zero_grad()
            torch.nn.functional.cross_entropy(network(values), known).backward()
            with torch.no_grad():
                for weights in network.parameters():
                    weights -= 0.05 * weights.grad  # type: ignore[operator]
            took.append(time.perf_counter() - began)
        return statistics.median(took[1:]), torch.get_num_threads()

    return program
