"""The process that trains: what it adds to the records of a platform."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from models.dataset import Dataset
from models.probes import Peak, usable_cores
from models.record import EpochRecord
from models.run import Event, Session, base_record, decode_event, encode_session
from models.spec import Network, Resources, TrialSpec
from tests.models.made import NETWORK, packed, spec, surroundings

PEAKS = (
    Peak(precision="float32", threads=1, flops=2e9),
    Peak(precision="float64", threads=1, flops=1e9),
)


def records(folder: Path, *specs: TrialSpec, peaks: tuple[Peak, ...] = PEAKS, path: str = "") -> list[EpochRecord]:
    datasets = {"made": packed(folder / "data")}
    found = events(folder, *specs, datasets=datasets, peaks=peaks, path=path)
    return [event.record for event in found if event.record]


def events(
    folder: Path, *specs: TrialSpec, datasets: dict[str, Dataset], peaks: tuple[Peak, ...] = PEAKS, path: str = ""
) -> list[Event]:
    """What the process writes of some trials."""
    session = Session(
        run_id="R",
        machine="here",
        machine_memory_gb=1.0,
        commit=None,
        session="shared",
        noisy_cores=99.0,
        datasets=datasets,
        surroundings=surroundings(folder / "work"),
        parent=os.getpid(),
        peaks=peaks,
    )
    lines, told = folder / "specs.jsonl", folder / "events.jsonl"
    lines.write_bytes(encode_session(session) + b"".join(each.encode().encode() + b"\n" for each in specs) + b'"end"\n')
    done = subprocess.run(
        [sys.executable, "-m", "models.run", str(lines), str(told)],
        capture_output=True,
        check=False,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), path]))},
    )
    assert done.returncode == 0, done.stderr.decode()
    return [decode_event(line) for line in told.read_bytes().splitlines()]


def test_every_epoch_has_its_floor_at_its_own_precision(tmp_path: Path) -> None:
    fine = replace(spec("torch-cpu").hyperparameters, precision="float64")
    found = records(tmp_path, spec("torch-cpu"), replace(spec("torch-cpu"), hyperparameters=fine))
    flop = 400 * (4 * 12 * 8 + 6 * 8 * 3)
    assert flop == 400 * (NETWORK.flop_per_row() or 0)
    assert len(found) == 8
    for record in found:
        peak = {"float32": 2e9, "float64": 1e9}[record.precision or ""]
        assert record.peak_flops == peak
        assert record.floor_seconds == pytest.approx(flop / peak)


def test_an_epoch_of_several_passes_has_the_arithmetic_of_all(tmp_path: Path) -> None:
    found = records(tmp_path, spec("torch-cpu", solver="l-bfgs", learning_rate=None, epochs=3))
    assert [each.floor_seconds for each in found] == [
        pytest.approx(each.samples * (NETWORK.flop_per_row() or 0) / 2e9) for each in found if each.samples
    ]


def test_more_cores_than_were_probed_have_no_floor(tmp_path: Path) -> None:
    """Though a peak of as many threads is there: it is of another machine."""
    many = usable_cores() + 1
    wide = spec("torch-cpu", resources=Resources(threads=many))
    found = records(tmp_path, wide, peaks=(Peak(precision="float32", threads=many, flops=2e9),))
    assert {(each.peak_flops, each.floor_seconds) for each in found} == {(None, None)}


def test_a_users_own_network_is_told_by_the_code_that_was_imported(tmp_path: Path) -> None:
    """Its file's SHA-256, as another file of the same name and as many parameters is another network."""
    (tmp_path / "told_nets.py").write_text("from torch import nn\ndef make(i, c):\n    return nn.Linear(i, c)\n")
    network = Network.parse("torch:told_nets:make", inputs=12, classes=3)
    hyper = replace(spec("torch-cpu").hyperparameters, gradient="autograd", epochs=1)
    own = replace(spec("torch-cpu"), network=network, hyperparameters=hyper)
    found = records(tmp_path, own, spec("torch-cpu"), path=str(tmp_path))
    digest = hashlib.sha256((tmp_path / "told_nets.py").read_bytes()).hexdigest()[:16]
    told = [json.loads(each.versions or "").get("torch:told_nets:make") for each in found]
    assert told == [f"sha256:{digest}", None, None, None, None]


@pytest.mark.parametrize(
    ("platform", "spark_url", "asked", "machines"),
    [
        ("torch-cpu", "spark://there:7077", None, (1, 1)),
        ("mllib", None, None, (1, 1)),
        ("mllib", "spark://there:7077", None, (None, None)),
        ("mllib", "spark://there:7077", 5, (5, None)),
    ],
)
def test_machines_are_counted_where_they_are_known(
    platform: str, spark_url: str | None, asked: int | None, machines: tuple[int | None, int | None], tmp_path: Path
) -> None:
    made = spec(platform)
    made = replace(made, resources=replace(made.resources, workers=asked))
    around = surroundings(tmp_path, spark_url=spark_url)
    found = base_record(made, run_id="R", machine="here", surroundings=around)
    assert (found.workers, found.nodes) == machines


def test_without_a_peak_there_is_no_floor(tmp_path: Path) -> None:
    found = records(tmp_path, spec("torch-cpu"), peaks=())
    assert {(each.peak_flops, each.floor_seconds) for each in found} == {(None, None)}
    bare = records(tmp_path, spec("torch-cpu", resources=Resources()))
    assert {(each.peak_flops, each.floor_seconds) for each in bare[-4:]} == {(None, None)}
