"""`make bench`: ratios of one run, as a table and in build/bench.json.

Exit code 1 when one is over its bound, 3 on a loaded machine. `python -m bench NAME...` runs some of them: training,
executors, unequal, data, report, replay, answers, memory, quick, and cluster where one is in the environment; network,
floor, fractions, stragglers, idle-cluster, memory-20 and memory-zeros by their names only.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bench import (
    answers,
    data,
    executors,
    fractions,
    idle_cluster,
    memory,
    network,
    on_cluster,
    quick,
    replay,
    report,
    stragglers,
    training,
    unequal,
)
from bench.beside_cluster import has_cluster, without_it
from bench.load import LoadedError, Part, check_quiet, watched
from models.probes import OtherLoad


def _floor(folder: Path) -> list[dict[str, Any]]:
    from bench import floor  # and with it torch, which others' memory is measured without

    return floor.rows(folder)


PARTS: dict[str, Part] = {
    "training": watched(training.rows, "training"),
    "executors": executors.rows,
    "unequal": unequal.rows,
    "data": watched(data.rows, "data"),
    "report": watched(report.rows, "report"),
    "replay": watched(replay.rows, "replay"),
    "answers": watched(answers.rows, "answers"),
    "memory": memory.of(6),
    "quick": quick.rows,
}
# On a cluster that is up; as root; what tells why and has no bound; and what needs much room.
BY_NAME_ONLY: dict[str, Part] = {
    "cluster": on_cluster.rows,
    "network": network.rows,
    "idle-cluster": idle_cluster.rows,
    "floor": watched(_floor, "floor"),
    "fractions": fractions.rows,
    "stragglers": stragglers.rows,
    "memory-20": memory.of(20),
    "memory-zeros": memory.of(6, zeros=0.8),  # about as many as MNIST has, which compress
}
CLUSTER = "cluster"  # where one is in the environment it needs no name
OUTPUT = Path(__file__).parent.parent / "build" / "bench.json"
LOOK_SECONDS = 3.0
LOADED = 3


def main(names: list[str]) -> int:
    parts = PARTS | BY_NAME_ONLY
    unknown = [name for name in names if name not in parts]
    if unknown:
        print(f"Error: no benchmark {unknown[0]}; known are {', '.join(parts)}", file=sys.stderr)
        return 2
    if CLUSTER in names and not has_cluster():
        print(
            "Error: benchmark cluster needs a cluster, and YARNSTICK_CLUSTER is not set; give make cluster-up and "
            ". build/cluster/env before it",
            file=sys.stderr,
        )
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what was begun is ended
    results: list[dict[str, Any]] = []
    try:
        load = OtherLoad(os.getpid())
        time.sleep(LOOK_SECONDS)
        check_quiet(load.cores(), "before the first benchmark")
        with tempfile.TemporaryDirectory(prefix="yarnstick-bench-", dir=_room()) as folder:
            for name in chosen(names):
                with nullcontext() if name == CLUSTER else without_it():
                    for row in parts[name](Path(folder) / name):
                        print(_line(row), flush=True)
                        results.append(row)
    except LoadedError as error:
        print(f"Error: {error}", file=sys.stderr)
        return LOADED
    OUTPUT.write_text(json.dumps(results, indent=1) + "\n")
    over = [row["name"] for row in results if row["bound"] is not None and row["ratio"] > row["bound"]]
    for name in over:
        print(f"over its bound: {name}", file=sys.stderr)
    return 1 if over else 0


def chosen(names: list[str]) -> list[str]:
    return names or [*PARTS, *([CLUSTER] if has_cluster() else [])]


def _room() -> str:
    """Beside the build and not in a small /tmp: ten million rows take gigabytes."""
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    return str(OUTPUT.parent)


def _line(row: dict[str, Any]) -> str:
    bound = "shown only" if row["bound"] is None else f"at most {row['bound']:.2f}x"
    width = max(40, shutil.get_terminal_size((100, 24)).columns - 46)
    sides = " ".join("" if row[side] is None else f"{row[side]:8.3f} s" for side in ("unit_seconds", "against_seconds"))
    return f"{row['name'][:width]:{width}} {row['ratio']:6.2f}x  {bound:>14}  {sides}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
