"""Reading event logs for `yarnstick replay`, against orjson's parse of the same lines and against 500 MB."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from models.event_files import Lines, LogFiles

RECORDED = Path(__file__).parent.parent / "tests" / "data" / "recorded" / "trials"
TIMED_MB, LARGE_MB = 200, 1000
BOUND, MEMORY_MB = 2.0, 500.0
# What differs from one application's job to another's: ids, and times in milliseconds.
RENUMBERED = re.compile(rb'"(?:Stage|Job|Task|RDD) ID":(\d+)|(?<=:)(\d{13})(?=[,}])')
LASTS_MILLIS = 10_000_000

# Processes of their own: each with its own memory, and with nothing warm.
OURS = """
    import json, sys, time
    from pathlib import Path
    from models.replayed import Names, foreign_trials
    start = time.perf_counter()
    found = foreign_trials(Path(sys.argv[1]), Names(), run_id="bench")
    seconds = time.perf_counter() - start
    assert all(outcome.outcome == "ok" for outcome in found)
    # Not getrusage: what it tells of a child begins with the memory of its parent.
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
    print(json.dumps(dict(seconds=seconds, megabytes=peak / 1e3)))
"""
THEIRS = """
    import json, sys, time
    import orjson
    lines = open(sys.argv[1], "rb").read().splitlines()
    start = time.perf_counter()
    for line in lines:
        orjson.loads(line)
    print(json.dumps(dict(seconds=time.perf_counter() - start)))
"""


def rows(folder: Path, *, timed_mb: float = TIMED_MB, large_mb: float = LARGE_MB) -> list[dict[str, Any]]:
    folder.mkdir(parents=True, exist_ok=True)
    plain = _written(folder / "timed", timed_mb)
    packed = _compressed(plain)
    theirs = _child(THEIRS, plain)["seconds"]
    timed = [
        {
            "name": f"replay reads {what} event log / orjson parses its lines",
            "ratio": seconds / theirs,
            "bound": BOUND,
            "unit_seconds": seconds,
            "against_seconds": theirs,
        }
        for what, log in (("a plain", plain), ("a zstd", packed))
        for seconds in (_child(OURS, log)["seconds"],)
    ]
    large = _compressed(_written(folder / "large", large_mb))
    memory = {
        "name": f"peak memory of reading {large_mb / 1000:g} GB of events, of {MEMORY_MB:.0f} MB",
        "ratio": _child(OURS, large)["megabytes"] / MEMORY_MB,
        "bound": 1.0,
        "unit_seconds": None,
        "against_seconds": None,
    }
    return [*timed, memory]


def _written(path: Path, megabytes: float) -> Path:
    """The recorded application over and over, its jobs numbered on and later each time."""
    (log,) = RECORDED.glob("*-gd-*/eventlog/*")
    whole = b"".join(line + b"\n" for _, _, line in Lines(LogFiles.at(log)))
    begin = whole.index(b'{"Event":"SparkListenerJobStart"')
    with path.open("wb") as written:
        written.write(whole[:begin])
        for again in _renumbered(whole[begin:]):
            if written.tell() >= megabytes * 1e6:
                return path
            written.write(again)
    raise AssertionError("there is always another one")


def _renumbered(jobs: bytes) -> Iterator[bytes]:
    pieces, numbers, end = [], [], 0
    for match in RENUMBERED.finditer(jobs):
        group = 1 if match[1] else 2
        pieces.append(jobs[end : match.start(group)])
        numbers.append((int(match[group]), 10_000 if group == 1 else LASTS_MILLIS))
        end = match.end(group)
    turn = 0
    while True:
        parts = [piece + b"%d" % (value + step * turn) for piece, (value, step) in zip(pieces, numbers, strict=True)]
        yield b"".join(parts) + jobs[end:]
        turn += 1


def _compressed(plain: Path) -> Path:
    packed = plain.with_suffix(".zstd")
    with plain.open("rb") as source, pa.CompressedOutputStream(pa.OSFile(str(packed), "wb"), "zstd") as target:
        while chunk := source.read(1 << 20):
            target.write(chunk)
    return packed


def _child(code: str, log: Path) -> dict[str, float]:
    command = [sys.executable, "-c", textwrap.dedent(code), str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
