"""Prepares Spark's JVMs: an archive of the classes they load halves the time until a session can work.

`python -m pipeline.warm` belongs to set-up: it rehearses one small MLlib trial of each solver. The archives change how
classes are loaded and nothing in an epoch; a JVM that they do not fit leaves them aside.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from models.dataset import Dataset
from models.protocol import Surroundings
from models.run import Session, decode_event, encode_session
from models.spec import FULL_BATCH_SOLVERS, Hyperparameters, Network, Resources, TrialSpec
from store.errors import YarnstickError
from store.publish import temporary_name

KINDS = ("driver", "executor")
FOLDER = "spark-classes"
COLUMNS, CLASSES, ROWS = 4, 2, 64
DEADLINE_SECONDS = 300


def class_archives(cache: Path) -> dict[str, str]:
    """JVM options by which driver and executors use the archives, where they were made for this installation."""
    if not (cache / FOLDER).is_dir():
        return {}
    try:
        folder = cache / FOLDER / _installation()
    except YarnstickError:
        return {}  # platforms that need Java say so themselves, and others need none
    found = {kind: folder / f"{kind}.jsa" for kind in KINDS}
    return {kind: _options("SharedArchiveFile", path) for kind, path in found.items() if path.is_file()}


def make_archives(cache: Path) -> None:
    final = cache / FOLDER / _installation()
    if final.is_dir():
        return
    print("preparing Spark's class archives (once; about a minute)", flush=True)
    work = cache / FOLDER / temporary_name()
    work.mkdir(parents=True, mode=0o700)
    try:
        _rehearse(work)
        made = work / "made"
        made.mkdir()
        for kind in KINDS:
            # A JVM that was ended before it wrote its archive leaves none; the other one is worth having.
            if (work / f"{kind}.jsa").is_file():
                os.replace(work / f"{kind}.jsa", made / f"{kind}.jsa")
        try:
            os.rename(made, final)
        except OSError:
            if not final.is_dir():  # another set-up was first
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _rehearse(work: Path) -> None:
    """A trial of each solver on a few made rows, in a process as the real ones."""
    session = Session(
        run_id="rehearsal",
        machine="",
        machine_memory_gb=0.0,
        commit=None,
        session="shared",
        noisy_cores=0.0,
        datasets={"made": _made(work)},
        surroundings=Surroundings(
            work=work,
            spark_conf={},
            archives=work / "eventlogs",
            lets_jvms_end=True,
            class_archives={kind: _options("ArchiveClassesAtExit", work / f"{kind}.jsa") for kind in KINDS},
        ),
        parent=os.getpid(),
    )
    specs, events, log = work / "specs.jsonl", work / "events.jsonl", work / "log.txt"
    lines = [_spec(solver).encode().encode() + b"\n" for solver in FULL_BATCH_SOLVERS]
    specs.write_bytes(encode_session(session) + b"".join(lines) + b'"end"\n')
    with log.open("wb") as output:
        subprocess.run(
            [sys.executable, "-m", "models.run", str(specs), str(events)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=DEADLINE_SECONDS,
            start_new_session=True,
            check=False,
        )
    outcomes = [decode_event(line) for line in events.read_bytes().splitlines()] if events.exists() else []
    failed = [event.reason for event in outcomes if event.kind == "ended" and event.outcome != "ok"]
    if failed or not outcomes:
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        raise YarnstickError(f"Spark does not work here: {(failed or last or ['it said nothing'])[0]}")


def _options(what: str, archive: Path) -> str:
    return f"{shlex.quote(f'-XX:{what}={archive}')} -Xlog:disable"


def _made(work: Path) -> Dataset:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = np.random.default_rng(0).integers(0, 256, (ROWS, COLUMNS), dtype=np.uint8)
    features = pa.FixedSizeBinaryArray.from_buffers(pa.binary(COLUMNS), ROWS, [None, pa.py_buffer(values.tobytes())])
    part = work / "part.parquet"
    pq.write_table(pa.table({"features": features, "label": pa.array(np.arange(ROWS) % CLASSES)}), part)
    return Dataset(
        name="made",
        train=(str(part),),
        test=(str(part),),
        columns=COLUMNS,
        classes=CLASSES,
        dtype="uint8",
        offset=(0.0,),
        divisor=(255.0,),
        train_rows=ROWS,
        test_rows=ROWS,
        split_seed=0,
    )


def _spec(solver: str) -> TrialSpec:
    return TrialSpec(
        platform="mllib",
        dataset="made",
        data="made",
        network=Network(sizes=(COLUMNS, 8, CLASSES)),
        resources=Resources(executors=1, cores=1, memory_mib=1024, partitions=2, deploy_mode="client"),
        hyperparameters=Hyperparameters(
            solver=solver,
            learning_rate=None if solver == "l-bfgs" else 0.1,
            precision="float64",
            gradient=None,
            batch_size=None,
            epochs=3,
        ),
        data_fraction=1.0,
        trial=1,
        attempt=1,
        seed=1,
    )


def _installation() -> str:
    """The archives are of one Java and one Spark."""
    from importlib.metadata import version

    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if os.environ.get("JAVA_HOME") else shutil.which("java")
    if java is None:
        raise YarnstickError("no Java: install Java 17 or newer, or set JAVA_HOME")
    try:
        told = subprocess.run([str(java), "-version"], capture_output=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        raise YarnstickError(f"{java} does not run: install Java 17 or newer, or set JAVA_HOME") from None
    return hashlib.sha256(told + version("pyspark").encode() + sys.prefix.encode()).hexdigest()[:12]


def main() -> None:
    from pipeline.config import read_settings

    try:
        make_archives(read_settings("quick").main.cache)
    except YarnstickError as error:
        raise SystemExit(f"Error: {error}") from None


if __name__ == "__main__":
    main()
