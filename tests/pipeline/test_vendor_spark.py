"""A whole run on a vendor's Spark: its Java side, and the Python side that belongs to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.models.vendor_spark import VERSION, vendor_spark
from tests.pipeline.place import PROFILE, Place, assert_one_error

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place", PROFILE)


def test_the_record_says_what_really_trained(place: Place, tmp_path: Path) -> None:
    home = vendor_spark(tmp_path / "spark")
    smallest = {"platforms": "mllib", "cores": "1", "trials": "1", "executors": "1", "partitions": "1"}
    given = [part for key, value in smallest.items() for part in ("--set", f"profile.tiny.{key}={value}")]
    done = place.run("run", "--profile", "tiny", "--run-id", "R", "--set", f"spark.home={home}", *given)
    assert done.returncode == 0, done.stderr
    [slug] = place.trials("R")
    [record, *_] = place.outcome("R", slug)["records"]  # type: ignore[misc]
    versions = json.loads(record["versions"])
    assert versions["pyspark"] == VERSION
    assert versions["spark"] == "4.3.0"  # of the jars
    assert versions["java"].startswith(("17.", "21.", "25."))


def test_a_home_without_jars_is_one_sentence(place: Place, tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    done = place.run("run", "--profile", "tiny", "--run-id", "R", "--set", f"spark.home={tmp_path / 'spark'}")
    assert_one_error(done, f"yarnstick.spark.home = {tmp_path / 'spark'} has no jars/*.jar")
