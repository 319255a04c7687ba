"""`yarnstick predict` as a user types it: JSON on standard output, errors in one sentence, and an answer in 2 s."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.pipeline.conftest import Finished
from tests.pipeline.place import PROFILE, Place, assert_one_error

ASK = ("predict", "--run-id", "P", "--platform", "steady", "--executors", "2", "--cores", "1")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The run P of six sizes, whose epochs all take the same."""
    settings = PROFILE.replace("mlp:*-8-*", "mlp:*-8-* mlp:*-16-* mlp:*-64-*").replace("trials = 2", "trials = 1")
    place = Place(tmp_path_factory.mktemp("measured"), settings)
    done = place.run("run", "--profile", "tiny", "--run-id", "P")
    assert done.returncode == 0, done.stderr
    yield place
    place.end()


def test_a_prediction_is_json_on_standard_output(measured: Place) -> None:
    done = measured.run(*ASK, "--dataset", "synthetic:200x6x3", "--rows", "400", "--hidden", "32")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said = json.loads(done.stdout)
    assert (said["platform"], said["rows"], said["network"]) == ("steady", 400, "mlp:6-32-3")
    assert said["seconds"] > 0
    assert said["held_out_error"] >= 0
    assert said["extrapolated"]
    assert "executors 2 where only 1 was measured" in said["note"]


def test_errors_are_one_sentence(measured: Place, finished: Finished, tmp_path: Path) -> None:
    there = ("--dataset", "synthetic:200x6x3")
    assert_one_error(measured.run(*ASK, "--dataset", "mnist"), "dataset mnist", "known are synthetic:200x6x3")
    assert_one_error(measured.run(*ASK, *there, "--platform", "mllib"), "platform mllib", "known are steady")
    assert_one_error(measured.run(*ASK, *there, "--run-id", "Q"), "run Q", "known are P")
    few = finished.place.run(*ASK, *there, "--run-id", "R")
    assert_one_error(few, "no prediction", "2 configurations", "a model takes 5", "vary rows (fractions)")
    for wrong in (("--rows", "0"), ("--cores", "x"), ("--hidden", "12-"), ("--executors", "-1"), ("--rows", "9" * 400)):
        done = measured.run(*ASK, *there, *wrong)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_records_of_another_version_are_read_as_far_as_they_tell(measured: Place, tmp_path: Path) -> None:
    place = Place(tmp_path / "old", PROFILE)
    shutil.copytree(measured.store, place.store)
    path = place.store / "runs" / "P" / "report" / "epochs.parquet"
    ask = (*ASK, "--dataset", "synthetic:200x6x3")
    before = place.run(*ask)
    pq.write_table(pq.read_table(path).drop_columns(["staleness", "divergence"]), path)
    after = place.run(*ask)
    assert after.returncode == 0, after.stderr
    assert after.stdout == before.stdout
    about = place.store / "runs" / "P" / "run.json"
    whole = json.loads(about.read_text())
    del whole["settings"]["yarnstick.baseline.threads"]
    about.write_text(json.dumps(whole))
    assert_one_error(place.run(*ask), "run P", "no yarnstick.baseline.threads")
    path.write_bytes(b"PAR1")
    assert_one_error(place.run(*ask), "epochs.parquet cannot be read", "yarnstick report --run-id P")


def test_it_imports_nothing_that_trains_or_draws(measured: Place) -> None:
    """What would make it slow; `make bench` has the seconds."""
    heavy = "('torch', 'altair', 'pyspark', 'luigi', 'scipy.stats', 'pandas')"
    code = f"""
import atexit, sys
atexit.register(lambda: print([name for name in {heavy} if name in sys.modules], file=sys.stderr))
from pipeline.cli import main
main()
"""
    done = measured.run(*ASK, "--dataset", "synthetic:200x6x3", command=[sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    assert done.stderr == "[]\n"
