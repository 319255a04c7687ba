"""MLlib's time over the share of the rows, with enough memory and too little: what is cached, spilled, collected."""

from __future__ import annotations

import json
import os
import random
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.executors import random_bytes
from bench.load import Watch, check_quiet
from models.dataset import Dataset
from models.event_files import Lines, LogFiles
from models.fits import OWN
from models.platforms.mllib import MLlib
from models.protocol import Surroundings
from models.spec import Hyperparameters, Network, Resources, TrialSpec

NETWORK = Network(sizes=(784, 64, 10))  # little arithmetic: that of the rows is what is looked at
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
HEAPS = (2048, 768)  # MiB: all rows fit into the first; with less than the second, arithmetic has no room
ROUNDS, EPOCHS = 3, 4
NEEDED = (b"JobStart", b"JobEnd", b"BlockUpdated", b"UnpersistRDD", b"TaskEnd")
CORES = Resources(executors=1, cores=2, memory_mib=HEAPS[0], partitions=2, deploy_mode="client")
BLOCKS = {"spark.eventLog.logBlockUpdates.enabled": "true"}


@dataclass(slots=True)
class Kept:
    """What a fit's rows took while it cached them, in bytes."""

    in_memory: int = 0
    on_disk: int = 0
    spilled: int = 0


@dataclass(slots=True)
class Found:
    """Of one share and heap, over the rounds."""

    seconds: list[float] = field(default_factory=list)
    collected: list[float] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)


def rows(folder: Path) -> list[dict[str, Any]]:
    data = random_bytes(folder)
    found = {(heap, share): Found() for heap in HEAPS for share in SHARES}
    watch = Watch(os.getpid())
    for number in range(ROUNDS):
        for heap in HEAPS if number % 2 else HEAPS[::-1]:
            _train(folder / f"{number}-{heap}", data, heap, number, found, watch)
    check_quiet(watch.cores(), "while fractions ran")
    for line in _table(found):
        print(line)
    return [
        {
            "name": f"{share:.0%} of MNIST's rows by MLlib: {HEAPS[1]} MiB of heap / {HEAPS[0]} MiB",
            "ratio": little / enough,
            "bound": None,
            "unit_seconds": little,
            "against_seconds": enough,
        }
        for share in SHARES
        for enough, little in [[statistics.median(found[heap, share].seconds) for heap in HEAPS]]
    ]


def _train(
    folder: Path, data: Dataset, heap: int, number: int, found: dict[tuple[int, float], Found], watch: Watch
) -> None:
    """Each share once, in one application and in an order of its own."""
    archives = folder / "eventlogs"
    archives.mkdir(parents=True)
    platform = MLlib(
        Surroundings(
            work=folder,
            spark_conf=BLOCKS,
            archives=archives,
            shares_applications=True,  # the first is rehearsed
        )
    )
    specs = [_spec(heap, share, number) for share in SHARES]
    random.Random(number).shuffle(specs)
    try:
        for spec in specs:
            with watch.stretch():
                epochs = list(platform.train(spec, data))[1:]
            each = found[heap, spec.data_fraction]
            each.seconds += [epoch.seconds for epoch in epochs]
            each.collected += [epoch.ledger["gc"] for epoch in epochs]
    finally:
        platform.close()
    [log] = archives.iterdir()
    kept = dict(_kept(line for _, _, line in Lines(LogFiles.at(log))))
    for spec in specs:
        found[heap, spec.data_fraction].kept.append(kept[spec.slug])


def _kept(lines: Iterable[bytes]) -> Iterator[tuple[str, Kept]]:
    """Of each fit: its cached blocks as they were when its last job ended, and what its tasks spilled."""
    blocks: dict[str, tuple[int, int]] = {}
    group = ""
    fits: dict[str, Kept] = {}
    for line in lines:
        if not any(kind in line[:60] for kind in NEEDED):
            continue
        event = json.loads(line)
        match event["Event"].removeprefix("SparkListener"):
            case "JobStart":
                group = event["Properties"].get("spark.jobGroup.id", "")
            case "BlockUpdated":
                block = event["Block Updated Info"]
                if block["Block ID"].startswith("rdd_"):
                    blocks[block["Block ID"]] = block["Memory Size"], block["Disk Size"]
            case "UnpersistRDD":  # whose blocks are dropped without a word about each
                gone = f"rdd_{event['RDD ID']}_"
                blocks = {name: sizes for name, sizes in blocks.items() if not name.startswith(gone)}
            case "TaskEnd":
                metrics = event.get("Task Metrics") or {}
                fits.setdefault(group, Kept()).spilled += metrics.get("Disk Bytes Spilled", 0)
            case "JobEnd":
                if any(sum(sizes) for sizes in blocks.values()):
                    fit = fits.setdefault(group, Kept())
                    fit.in_memory, fit.on_disk = (sum(sizes) for sizes in zip(*blocks.values(), strict=True))
    yield from ((name, fit) for name, fit in fits.items() if OWN.fullmatch(name))


def _table(found: dict[tuple[int, float], Found]) -> Iterator[str]:
    """For docs/findings.md."""
    head = " | ".join(f"{heap} MiB | gc | cached in memory | on disk | spilled" for heap in HEAPS)
    yield f"| rows | {head} |"
    yield f"|---{'|---' * 5 * len(HEAPS)}|"
    for share in SHARES:
        yield f"| {share:.0%} | {' | '.join(_cells(found[heap, share]) for heap in HEAPS)} |"


def _cells(found: Found) -> str:
    seconds, collected = (statistics.median(each) for each in (found.seconds, found.collected))
    sizes = (
        statistics.median(getattr(kept, name) for kept in found.kept) / 1e6
        for name in ("in_memory", "on_disk", "spilled")
    )
    return f"{seconds:.2f} s | {collected:.3f} s | {' | '.join(f'{size:.0f} MB' for size in sizes)}"


def _spec(heap: int, share: float, number: int) -> TrialSpec:
    return TrialSpec(
        platform="mllib",
        dataset="bench",
        data="bench",
        network=NETWORK,
        resources=replace(CORES, memory_mib=heap),
        hyperparameters=Hyperparameters(
            solver="gd", learning_rate=0.05, precision="float64", gradient=None, batch_size=None, epochs=EPOCHS
        ),
        data_fraction=share,
        trial=2 + number,  # the exchange is measured in the first, and is not looked at
        attempt=1,
        seed=1 + number,
    )
