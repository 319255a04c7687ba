"""What the cluster of the environment costs: HDFS against curl, a Spark session's start, the whole chain on YARN,
torch on its executors, and rows beyond the memory of its containers.

Only where one is up: `make cluster-up`, `. build/cluster/env`, then `make bench ARGS=cluster`.
"""

from __future__ import annotations

import io
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from bench import answers, contained
from bench.executors import (
    EXECUTORS,
    FLOOR_BOUND,
    HALVED_BOUND,
    MLLIB_BOUND,
    ONE_PROCESS_BOUND,
    PRECISIONS,
    exchange_row,
    memory_row,
    where_had,
)
from bench.load import check_quiet
from pipeline.config import read_settings
from pipeline.opening import open_store
from store.addresses import place_of

TOP = Path(__file__).parent.parent
FILE_MB, ROUNDS = 500, 3
MEMORY_MB, CHAIN_SECONDS = 200.0, 600.0
SWEEPS = (("1 2", "1"), ("1", "2"))  # executors and cores: 1x1 and 2x1, then 1x2
CHAIN = {
    "profile.quick.platforms": "mllib",
    "profile.quick.fractions": "1.0",
    "profile.quick.epochs": "3",
    "profile.quick.trials": "1",
    "noisy_repeats": "0",
    "mapreduce.runner": "hadoop",
    "spark.master": "yarn",
}
# What bench.executors measures of local executors, by a run as users have it.
TRAINED = {
    "profile.quick.platforms": "torch-cpu mllib torch-spark",
    "profile.quick.executors": str(EXECUTORS),
    "profile.quick.cores": "1",
    "profile.quick.threads": str(EXECUTORS),
    "profile.quick.precisions": " ".join(PRECISIONS),
    "profile.quick.gradients": "manual",
    "profile.quick.fractions": "1.0",
    "profile.quick.epochs": "4",
    "noisy_repeats": "0",
    "spark.master": "yarn",
}
# Processes of their own, each with its own memory.
WRITE = """
    with opened.create("bench/ours") as target, open(sys.argv[1], "rb") as file:
        shutil.copyfileobj(file, target, 1 << 20)
"""
READ = """
    with opened.open("bench/ours") as file:
        while file.read(1 << 20):
            pass
"""
AROUND = """
import json, shutil, sys, time
from pipeline.config import read_settings
from pipeline.opening import open_store
opened = open_store(read_settings("quick", store=sys.argv[2]))
opened.exists("bench")
began = time.perf_counter()
if True:
{work}
seconds = time.perf_counter() - began
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(json.dumps(dict(seconds=seconds, megabytes=peak / 1e3)))
"""
SESSION = """
import json, sys, time
from pathlib import Path
from models import spark_conf
from models.protocol import Surroundings
from models.spark_application import SparkApplication
from models.spec import Resources
from pipeline.config import read_settings
from pipeline.on_yarn import prepared
from pipeline.opening import open_store
settings = read_settings("quick", store=sys.argv[2], overrides=["spark.master=yarn"])
yarn = prepared(settings, open_store(settings), folder="bench")
work = Path(sys.argv[1])
asked = spark_conf.on_yarn
if sys.argv[3] == "none":
    spark_conf.on_yarn = lambda *given, **more: {
        key: value for key, value in asked(*given, **more).items() if key != "spark.yarn.archive"
    }
around = Surroundings(work=work, spark_conf={}, archives=work / "logs", yarn=yarn)
began = time.perf_counter()
application = SparkApplication(Resources(executors=2, cores=1, memory_mib=1024), around)
seconds = time.perf_counter() - began
application.stop()
print(json.dumps(dict(seconds=seconds)))
"""


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    folder.mkdir(parents=True)
    store = f"{os.environ['YARNSTICK_STORE']}-bench"
    opened = open_store(read_settings("quick", store=store))
    opened.remove("")
    try:
        yield from _hdfs(folder, store)
        yield answers.history(f"{store}/history", "HDFS")
        yield from _session(folder, store)
        yield from _chain(store)
        yield from _trained(store)
        yield from contained.rows(folder / "contained", f"{store}/contained")
    finally:
        opened.remove("")


def _hdfs(folder: Path, store: str) -> list[dict[str, Any]]:
    file = folder / "file"
    with file.open("wb") as target:
        for _ in range(FILE_MB):
            target.write(os.urandom(1 << 20))
    opened = open_store(read_settings("quick", store=store))
    found: dict[str, list[dict[str, float]]] = {"write": [], "read": []}
    against: dict[str, list[float]] = {"write": [], "read": []}
    for _ in range(ROUNDS):
        opened.remove("bench")
        found["write"].append(_child(AROUND.format(work=WRITE), file, store))
        found["read"].append(_child(AROUND.format(work=READ), file, store))
        for kind, command in _curl(file, store).items():
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            against[kind].append(time.perf_counter() - began)
    made = []
    for kind in ("write", "read"):
        ours = statistics.median(each["seconds"] for each in found[kind])
        made.append(_row(f"HDFS, {kind} {FILE_MB} MB / curl", ours, statistics.median(against[kind]), bound=1.5))
    peak = max(each["megabytes"] for kind in found.values() for each in kind)
    made.append(
        _row(f"memory while {FILE_MB} MB go to HDFS and back / 200 MB", peak, MEMORY_MB, bound=1.0, seconds=False)
    )
    return made


def _curl(file: Path, store: str) -> dict[str, list[str]]:
    place = place_of(store, namenodes=())
    user = os.environ.get("USER") or "root"
    at = f"{place.namenodes[0]}/webhdfs/v1{place.root}/bench/curl?user.name={user}&op="
    return {
        "write": ["curl", "-sfL", "-X", "PUT", "-T", str(file), f"{at}CREATE&overwrite=true"],
        "read": ["curl", "-sfL", f"{at}OPEN"],
    }


def _session(folder: Path, store: str) -> list[dict[str, Any]]:
    """One session before the clock: the archive is sent once."""
    seconds: dict[str, list[float]] = {"archive": [], "none": []}
    for number in range(ROUNDS):
        for kind, found in seconds.items():
            work = folder / f"session-{kind}-{number}"
            work.mkdir()
            found.append(_child(SESSION, work, store, kind)["seconds"])
    with_it, without = (statistics.median(seconds[kind][1:]) for kind in ("archive", "none"))
    return [_row("Spark session on YARN, with its jars on HDFS / without", with_it, without, bound=0.8)]


def _chain(store: str) -> list[dict[str, Any]]:
    """From the raw files to the report, both jobs and all trials on YARN."""
    store = f"{store}-chain"
    opened = open_store(read_settings("quick", store=store))
    opened.remove("")
    began = time.perf_counter()
    for number, (executors, cores) in enumerate(SWEEPS):
        chosen = {"profile.quick.executors": executors, "profile.quick.cores": cores}
        _run(store, f"bench-{number}", CHAIN | chosen)
    seconds = time.perf_counter() - began
    opened.remove("")
    return [_row("MNIST, the whole chain on YARN / 10 minutes", seconds, CHAIN_SECONDS, bound=1.0)]


def _trained(store: str) -> Iterator[dict[str, Any]]:
    """Torch on executors of YARN: against the floor, one process on this machine, and MLlib on equal executors."""
    store = f"{store}-trained"
    opened = open_store(read_settings("quick", store=store))
    opened.remove("")
    try:
        _run(store, "bench", TRAINED)
        records = pl.read_parquet(io.BytesIO(opened.read("runs/bench/report/epochs.parquet")))
    finally:
        opened.remove("")
    check_quiet(records["other_load"].mean(), "while YARN trained")
    lasting = records.filter(~pl.col("warmup"))
    spark, one, mllib = (lasting.filter(platform=name) for name in ("torch-spark", "torch-cpu", "mllib"))
    epochs = {}
    for precision in PRECISIONS:
        mine, peer = (each.filter(precision=precision) for each in (spark, one))
        epoch = epochs[precision] = _middle(mine)
        what = f"on YARN: torch-spark epoch, {precision}, {EXECUTORS} x 1"
        floor = mine["floor_seconds"][0]
        if floor is not None:  # else nodes are other machines than the one that was probed
            yield _row(f"{what} / floor", epoch, floor, bound=FLOOR_BOUND)
        yield _row(
            f"{what} / torch-cpu, {EXECUTORS} threads",
            epoch,
            _middle(peer),
            bound=ONE_PROCESS_BOUND,
        )
    blas = " and ".join(sorted(set(mllib["blas"].drop_nulls())))
    yield _row(
        f"on YARN: torch-spark epoch / mllib gd pass ({blas})",
        epochs["float32"],
        _middle(mllib),
        bound=MLLIB_BOUND.get(blas),
    )
    bound = where_had("bfloat16", HALVED_BOUND)
    what = "on YARN: torch-spark bfloat16 epoch / its float32 epoch"
    yield _row(what, epochs["bfloat16"], epochs["float32"], bound=bound)
    single = spark.filter(precision="float32")
    yield memory_row("on YARN: torch-spark", single["peak_memory_mib"].max())
    exchange = statistics.median(single["exchange_seconds"].to_list())
    yield exchange_row("on YARN: sum", exchange)


def _middle(records: pl.DataFrame) -> float:
    return statistics.median(records["seconds"].to_list())


def _run(store: str, run_id: str, settings: dict[str, str]) -> None:
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", "run", "--store", store]
    given = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    subprocess.run([*command, "--run-id", run_id, *given], cwd=TOP, check=True, stdout=sys.stderr)


def _row(name: str, ours: float, against: float, *, bound: float | None, seconds: bool = True) -> dict[str, Any]:
    sides = (ours, against) if seconds else (None, None)
    return {
        "name": name,
        "ratio": ours / against,
        "bound": bound,
        "unit_seconds": sides[0],
        "against_seconds": sides[1],
    }


def _child(code: str, *arguments: object) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=TOP, check=True, stdout=subprocess.PIPE
    )
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer
