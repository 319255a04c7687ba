"""That a history of many runs is as few requests as one of few, with as many configurations as a real profile has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.answers import CONFIGURATIONS, noted
from pipeline.config import read_settings
from pipeline.opening import open_store
from tests.pipeline.place import Place
from tests.store.wrong_hdfs import serving

SETTINGS = "[yarnstick.store]\nurl = webhdfs://{authority}/ours\nsecurity = insecure\n"


def asked_of(folder: Path, monkeypatch: pytest.MonkeyPatch, *, runs: int) -> list[str]:
    """What HDFS is asked for a history of so many runs."""
    with serving() as hdfs:
        place = Place(folder, SETTINGS.format(authority=hdfs.address.removeprefix("http://")))
        monkeypatch.chdir(place.folder)
        noted(open_store(read_settings("quick")), runs=runs)
        hdfs.asked.clear()
        done = place.run("history", "--profile", "quick", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (len(found["runs"]), len(found["series"])) == (runs, CONFIGURATIONS)
        return [operation for operation, _, _ in hdfs.asked]


def test_a_history_of_many_runs_is_no_more_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (asked_of(tmp_path / str(runs), monkeypatch, runs=runs) for runs in (2, 40))
    assert few == many
    assert many.count("LISTSTATUS") <= 2
    assert many.count("OPEN") == 1
