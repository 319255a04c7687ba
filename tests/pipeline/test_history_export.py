"""What `yarnstick history` exports for MLflow: the layout that MLflow documents for a directory, by names it takes."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipeline.history import export_mlflow
from report.history import history
from report.history_export import mlflow_name
from store.errors import SettingError
from tests.report.made import START
from tests.report.test_history import entries as made_entries
from tests.report.test_history import entry, measured, noisy

NAME = re.compile(r"[\w.\- ]{1,250}", re.ASCII)


def yaml(path: Path) -> dict[str, Any]:
    return {
        name: json.loads(value) for name, _, value in (line.partition(": ") for line in path.read_text().splitlines())
    }


def test_mlflow_finds_its_own_layout(tmp_path: Path) -> None:
    """As documented for a file store: meta.yaml of the experiment and of each run, and a file for each name."""
    evil = {"network": "mlp:784-1024-10", "platform": "<script>\n../..", "dataset": "csv:/a/ü", "threads": 2}
    runs = [
        entry(n, measured(noisy(n, 1.0)), measured(() if n else (1.0, 2.0), **evil), versions={"../up:x": "1\n2"})
        for n in range(2)
    ]
    folder = export_mlflow(history(runs, profile="quick"), tmp_path / "mlruns", store_url="file:///store")
    about = yaml(folder / "meta.yaml")
    assert about["experiment_id"] == folder.name
    assert re.fullmatch("[0-9]{1,19}", folder.name)
    assert about["lifecycle_stage"] == "active"
    assert about["name"] == "yarnstick quick file:///store"
    assert about["artifact_location"] == folder.as_uri()
    found = [path for path in folder.iterdir() if path.is_dir()]
    assert len(found) == 4
    by_status: Counter[int] = Counter()
    for run in found:
        meta = yaml(run / "meta.yaml")
        assert meta["run_id"] == meta["run_uuid"] == run.name
        assert re.fullmatch("[0-9a-f]{32}", run.name)
        assert meta["experiment_id"] == folder.name
        assert isinstance(meta["start_time"], int)
        assert meta["end_time"] >= meta["start_time"]
        assert meta["source_type"] == 4
        by_status[meta["status"]] += 1
        assert {each.name for each in run.iterdir()} == {"meta.yaml", "metrics", "params", "tags", "artifacts"}
        files = [path for path in run.rglob("*") if path.is_file() and path.name != "meta.yaml"]
        for path in files:
            assert NAME.fullmatch("/".join(path.relative_to(run).parts[1:])), path
            if path.parts[len(run.parts)] == "metrics":
                lines = path.read_text().splitlines()
                assert all(re.fullmatch(r"\d{13} -?[0-9.e+-]+ \d+", line) for line in lines)
                assert [int(line.split()[2]) for line in lines] == list(range(1, len(lines) + 1))
            else:
                assert "\n" not in path.read_text()
        assert (run / "tags" / "mlflow.runName").read_text() == meta["run_name"]
    assert by_status == {3: 3, 4: 1}
    seconds = [(run / "metrics" / "seconds").read_text() for run in found if (run / "metrics" / "seconds").exists()]
    stamp = round(START.timestamp() * 1000)
    assert f"{stamp} 1.0 1\n{stamp} 2.0 2\n" in seconds


def test_an_export_takes_the_place_of_the_one_before_and_of_nothing_else(tmp_path: Path) -> None:
    mine = tmp_path / "mlruns" / "0"
    mine.mkdir(parents=True)
    (mine / "meta.yaml").write_text("mine")
    folder = export_mlflow(history(made_entries([1.0] * 3), profile="quick"), tmp_path / "mlruns", store_url="s")
    export_mlflow(history(made_entries([1.0] * 2), profile="quick"), tmp_path / "mlruns", store_url="s")
    assert len([path for path in folder.iterdir() if path.is_dir()]) == 2
    assert (mine / "meta.yaml").read_text() == "mine"
    assert sorted(path.name for path in (tmp_path / "mlruns").iterdir()) == ["0", folder.name]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mlruns"]
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingError, match="cannot be written"):
        export_mlflow(history(made_entries([1.0]), profile="quick"), tmp_path / "file", store_url="s")


@pytest.mark.parametrize(
    ("given", "made"),
    [("learning_rate", "learning_rate"), ("version./x:y", "version._x_y"), ("..", "_"), ("", "_"), ("ü", "_")],
)
def test_names_are_those_that_mlflow_takes(given: str, made: str) -> None:
    assert mlflow_name(given) == made


def test_a_long_name_is_cut() -> None:
    assert len(mlflow_name("x" * 1000)) == 250
