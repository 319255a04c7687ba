"""The data's way against polars and against itself: whole processes, in alternation, medians."""

from __future__ import annotations

import contextlib
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mapreduce.rows import to_csv
from mapreduce.scaling import number_texts
from pipeline.config import read_settings
from pipeline.datasets.ingest import ingest
from pipeline.datasets.normalize import find_range
from pipeline.datasets.sources import source
from pipeline.settings import Settings
from store.errors import YarnstickError
from store.local import LocalStore
from store.publish import Staging

TOP = Path(__file__).parent.parent
REPEATS = 5
IMAGE_REPEATS = 3
SAMPLE_SECONDS = 0.05
PACK_ROWS, PACK_COLUMNS = 10_000_000, 100
PACK_BYTES = 12 << 30  # the disk that packing them takes
MEMORY_MIB = 1000

POLARS_RANGE = """
import sys, polars
frame = polars.read_csv(sys.argv[1], has_header=False)
low, high = frame.min().row(0), frame.max().row(0)
assert len(low) == len(high) == 785
"""
POLARS_PACK = """
import sys, polars
for split in ("train", "test"):
    frame = polars.read_csv(f"{sys.argv[1]}/{split}.csv", has_header=False)
    *pixels, label = frame.columns
    frame.select(polars.col(pixels) / 255, label).write_parquet(f"{sys.argv[1]}/{split}.parquet")
"""
NORMALIZE_AND_PACK = """
import sys
from pathlib import Path
from pipeline.config import read_settings
from pipeline.datasets.normalize import normalize
from pipeline.datasets.pack import pack
from store.local import LocalStore
settings, store = read_settings("quick", overrides=["mapreduce.runner=inline"]), LocalStore(Path(sys.argv[1]))
normalize(store, "x", settings)
pack(store, "x", settings)
"""
RAW_TO_PACKED = """
import sys
from pathlib import Path
from pipeline.config import read_settings
from pipeline.datasets.ingest import ingest
from pipeline.datasets.normalize import find_range, normalize
from pipeline.datasets.pack import pack
from pipeline.datasets.sources import source
from store.local import LocalStore
settings, store = read_settings("quick", overrides=["mapreduce.runner=inline"]), LocalStore(Path(sys.argv[1]))
ingest(source(sys.argv[2], settings), store, "x")
find_range(store, "x", settings)
normalize(store, "x", settings)
pack(store, "x", settings)
"""
PACK = NORMALIZE_AND_PACK.replace('normalize(store, "x", settings)\n', "")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """One child process."""

    seconds: float
    peak_mib: float


def rows(folder: Path) -> list[Row]:
    """All of the data's rows; `folder` is for files that are removed again."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = read_settings("quick", overrides=["mapreduce.runner=inline"])
    try:
        return [
            *range_job(folder, settings),
            *normalize_and_pack(folder, settings),
            *image_sets(folder, settings),
            *pack_memory(folder),
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def range_job(folder: Path, settings: Settings) -> list[Row]:
    """MRPixelRange over MNIST, and over ten times MNIST."""
    once, ten_times = folder / "train.csv", folder / "ten.csv"
    _write_mnist(once, "train", settings)
    with ten_times.open("wb") as file:
        for _ in range(10):
            file.write(once.read_bytes())
    job = ["-m", "mapreduce.mr_pixel_range", "--no-conf", "-q"]
    runs = _alternately({"ours": [*job, str(once)], "polars": ["-c", POLARS_RANGE, str(once)]})
    large = _alternately({"ten times": [*job, str(ten_times)], "once": [*job, str(once)]}, repeats=3)
    ten_times.unlink()
    return [
        _row("range job: inline, 60,000 x 785 CSV / polars", runs["ours"], runs["polars"], bound=2.0),
        _row("range job: ten times the rows / once", large["ten times"], large["once"], bound=10.0),
        _memory_row("range job: memory of ten times the rows / of once", large["ten times"], large["once"], bound=1.25),
    ]


def normalize_and_pack(folder: Path, settings: Settings) -> list[Row]:
    """From CSV in the store to Parquet, train and test."""
    for split in ("train", "test"):
        _write_mnist(folder / f"{split}.csv", split, settings)
    store = LocalStore(folder / "store")
    ingest(source("mnist", settings), store, "x")
    find_range(store, "x", settings)
    runs: dict[str, list[Run]] = {"ours": [], "polars": []}
    for _ in range(REPEATS):
        store.remove("data/x/normalized")
        store.remove("data/x/packed")
        runs["ours"].append(_run(["-c", NORMALIZE_AND_PACK, str(folder / "store")]))
        runs["polars"].append(_run(["-c", POLARS_PACK, str(folder)]))
    return [_row("normalize + pack: inline, MNIST / polars", runs["ours"], runs["polars"], bound=6.0)]


def image_sets(folder: Path, settings: Settings) -> list[Row]:
    """CIFAR-10 from raw to packed against MNIST, by the byte of CSV that each writes; nothing where it can't be had."""
    names = {"cifar10": "cifar", "mnist": "mnist"}
    try:
        for name in names:
            source(name, settings).fetch()  # what is measured begins with the raw files at hand
    except YarnstickError as error:
        print(f"no row for CIFAR-10: {error}", file=sys.stderr)
        return []
    runs: dict[str, list[Run]] = {name: [] for name in names}
    written = {}
    for _ in range(IMAGE_REPEATS):
        for name, place in names.items():
            root = folder / place
            run = _run(["-c", RAW_TO_PACKED, str(root), name])
            written[name] = sum(path.stat().st_size for path in root.glob("data/x/*/*/part-*[0-9]"))
            runs[name].append(run)
            shutil.rmtree(root)
    row = _row("cifar10: raw to packed / mnist, by the byte of CSV", runs["cifar10"], runs["mnist"], bound=1.3)
    row["ratio"] /= written["cifar10"] / written["mnist"]
    memory = _memory_row("cifar10: memory of raw to packed / mnist", runs["cifar10"], runs["mnist"], bound=1.25)
    return [row, memory]


def pack_memory(folder: Path) -> list[Row]:
    """Ten million rows; no row where the disk has no room for them."""
    if shutil.disk_usage(folder).free < PACK_BYTES:
        return []
    store = LocalStore(folder / "large")
    _write_normalized(store)
    run = _run(["-c", PACK, str(folder / "large")])
    return [
        {
            "name": f"pack: memory of {PACK_ROWS:,} x {PACK_COLUMNS} rows / 1 GB",
            "ratio": run.peak_mib / (MEMORY_MIB / 1.048576),
            "bound": 1.0,
            "unit_seconds": run.seconds,
            "against_seconds": None,
        }
    ]


def _write_mnist(path: Path, split: Any, settings: Settings) -> None:
    with path.open("wb") as file:
        file.writelines(source("mnist", settings).rows(split))


def _write_normalized(store: LocalStore) -> None:
    """Rows as MRNormalize would have left them: of fifths, so that they take little room."""
    import pyarrow as pa

    texts = pa.array(
        [f"{text}," for text in number_texts(np.arange(6) / 5).to_pylist()] + [f"{label}\n" for label in range(10)]
    )
    facts = {"name": "bench", "columns": PACK_COLUMNS, "classes": 10, "labels": None, "pixel_range": [0, 5]}
    for split, count in (("train", PACK_ROWS), ("test", 8192)):
        with Staging(store, f"data/x/normalized/{split}") as staging:
            with staging.create("part-00000") as part:
                for codes in _codes(count):
                    part.write(to_csv(codes, texts))
                    part.rows += len(codes)
            staging.commit(**facts)
    limits = {"minimum": [0] * PACK_COLUMNS, "maximum": [5] * PACK_COLUMNS}
    store.write("data/x/range.json", str({"rows": PACK_ROWS, **limits}).replace("'", '"').encode())


def _codes(count: int) -> Iterator[np.ndarray]:
    random = np.random.default_rng(0)
    for start in range(0, count, 8192):
        block = min(8192, count - start)
        codes = random.integers(0, 6, (block, PACK_COLUMNS + 1), np.uint8)
        codes[:, -1] = random.integers(6, 16, block)
        yield codes


def _alternately(commands: Mapping[str, list[str]], *, repeats: int = REPEATS) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, arguments in commands.items():
            runs[name].append(_run(arguments))
    return runs


def _run(arguments: list[str]) -> Run:
    peak = 0
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=TOP, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as child:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                _, said = child.communicate(timeout=SAMPLE_SECONDS)
                break
            peak = max(peak, _peak_kib(child.pid))
        seconds = time.perf_counter() - start
    if child.returncode:
        raise RuntimeError(f"{arguments[:2]} ended with {child.returncode}: {said[-500:]}")
    return Run(seconds, peak / 1024)


def _peak_kib(pid: int) -> int:
    """What wait4 tells of a child begins with the memory of its parent; this is the child's own."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


def _row(name: str, unit: list[Run], against: list[Run], *, bound: float) -> Row:
    one, other = (statistics.median(run.seconds for run in runs) for runs in (unit, against))
    return {"name": name, "ratio": one / other, "bound": bound, "unit_seconds": one, "against_seconds": other}


def _memory_row(name: str, unit: list[Run], against: list[Run], *, bound: float) -> Row:
    ratio = statistics.median(run.peak_mib for run in unit) / statistics.median(run.peak_mib for run in against)
    return _row(name, unit, against, bound=bound) | {"ratio": ratio}
