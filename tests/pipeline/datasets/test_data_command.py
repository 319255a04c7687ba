"""`yarnstick data` as a user types it: a line for each dataset, and exit code 1 where one could not be had."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.pipeline.place import Place, assert_one_error

WAYS = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "PIP_INDEX_URL", "npm_config_registry")
OUT_OF_REACH = dict.fromkeys(WAYS, "http://127.0.0.1:9/") | {"PIP_NO_CACHE_DIR": "1", "no_proxy": "", "NO_PROXY": ""}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place", settings="")


def test_real_data_is_fetched_checked_and_found_again(place: Place, mnist_cache: Path) -> None:
    cached = ("--set", f"cache={mnist_cache}")
    done = place.run("data", "mnist", "mnist", *cached)
    assert (done.returncode, done.stderr) == (0, "")
    [kept] = (mnist_cache / "mnist").iterdir()
    expected = f"mnist: ok, 60000 rows to train and 10000 to test, 784 columns, 10 classes, in {kept}\n"
    assert done.stdout == expected
    study = place.run("data", "mnist", *cached, "--set", "mnist.train_rows=50000")
    assert study.stdout == expected.replace("60000", "50000")


def test_what_cannot_be_had_does_not_keep_the_others(place: Place) -> None:
    (place.folder / "own.csv").write_text("1,0\n2,1\n3,1\n")
    names = ("emnist", "csv:own.csv", "synthetic:50x4x3", "csv:none.csv")
    done = place.run("data", *names, "--set", "emnist.source_seconds=1", **OUT_OF_REACH)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("emnist: EMNIST (digits) could not be fetched (the official site (https://")
    assert lines[0].endswith("into a directory and set yarnstick.emnist.path to it")
    assert lines[1] == "csv:own.csv: ok, 2 rows to train and 1 to test, 1 columns, 2 classes, in own.csv"
    assert lines[2] == (
        "synthetic:50x4x3: ok, 50 rows to train and 10 to test, 4 columns, 3 classes, generated when it is needed"
    )
    assert lines[3] == "csv:none.csv: none.csv: no such file"
    assert done.stderr.splitlines()[-1] == "Error: 2 of 4 datasets could not be had: emnist, csv:none.csv"
    assert "Traceback" not in done.stderr


def test_without_a_name_it_is_every_real_one(place: Place) -> None:
    nowhere = place.folder / "nowhere"
    paths = [f"{name}.path={nowhere}" for name in ("mnist", "cifar10", "fashion-mnist", "emnist")]
    done = place.run("data", "--json", *(word for path in paths for word in ("--set", path)))
    assert_one_error(done, "4 of 4 datasets could not be had: mnist, cifar10, fashion-mnist, emnist")
    found = json.loads(done.stdout)
    assert [each["name"] for each in found] == ["mnist", "cifar10", "fashion-mnist", "emnist"]
    assert [each["ok"] for each in found] == [False] * 4
    assert all(f"{nowhere} is not a directory; put " in each["problem"] for each in found)


def test_json_says_what_the_line_says(place: Place) -> None:
    done = place.run("data", "--json", "synthetic:50x4x3")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [
        {
            "name": "synthetic:50x4x3",
            "ok": True,
            "problem": None,
            "train_rows": 50,
            "test_rows": 10,
            "columns": 4,
            "classes": 3,
            "place": None,
        }
    ]


def test_an_unknown_name_is_told_before_anything_is_fetched(place: Place) -> None:
    done = place.run("data", "mnist", "mnits")
    assert_one_error(done, "'mnits'", "known are mnist, cifar10, fashion-mnist, emnist, csv:PATH, parquet:PATH")
    assert done.stdout == ""
    assert "build" not in os.listdir(place.folder)
