"""Timings of others in a run: all rows or none, beside one's own, and the report is the same each time it is made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from pipeline.config import read_settings
from pipeline.importing import import_timings
from pipeline.reporting import again, known_run
from pipeline.settings import Settings
from store.errors import DataError, SettingError, StoreError
from store.local import LocalStore
from tests.pipeline.conftest import Finished
from tests.pipeline.place import TOP, Place, assert_one_error, eventually

STUDY = TOP / "docs" / "examples" / "study-c.csv"
GOOD = "platform,dataset,seconds,executors,cores\nalone,d,10,,\nspark,d,12,1,1\nspark,d,8,2,1\n"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return read_settings("default", store="store")


def written(text: str, name: str = "theirs.csv") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def report_of(run_id: str, store: Path = Path("store")) -> dict[str, bytes]:
    folder = store / "runs" / run_id / "report"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def copied(finished: Finished, folder: Path) -> Place:
    place = Place(folder, (finished.place.folder / "luigi.cfg").read_text())
    shutil.copytree(finished.place.store, place.store)
    return place


def test_a_run_of_imports_alone_is_a_run(settings: Settings) -> None:
    lines = import_timings(written(GOOD), "R", settings)
    assert lines[0] == "imported 3 timings of 3 configurations from theirs.csv"
    assert lines[-1].startswith("Report: ")
    before = report_of("R")
    verdict = json.loads(before["verdict.json"])["comparisons"][0]
    assert (verdict["baseline"]["platform"], verdict["platforms"]["spark"]["cost_cores"]) == ("alone", 2)
    assert json.loads(before["published.json"]) == {"trials": [], "finished": True}
    assert b"not finished" not in before["report.html"]
    again(settings, "R")
    assert report_of("R") == before
    for name in before:
        if name not in ("published.json", "merged.json"):
            (Path("store/runs/R/report") / name).unlink()
    again(settings, "R")
    assert report_of("R") == before, "from the records alone"


@pytest.mark.parametrize("bad", ["spark,d,9 s,3,1\n", "spark,d,-9,3,1\n", "spark,d,9,2,1\n", "spark,d,9\n"])
def test_one_bad_row_and_nothing_is_imported(settings: Settings, bad: str) -> None:
    with pytest.raises(DataError, match=r"theirs\.csv, line 5"):
        import_timings(written(GOOD + bad), "R", settings)
    assert not Path("store").exists()


def test_the_ends_of_what_is_allowed_have_a_report(settings: Settings) -> None:
    """What is in a run stays there: no report of it may fail for the size of a number."""
    least, most = "1e-9,1,1,0.001,1e-9,1,0,1e-30", "1e9,1000000,1000000,1e6,1e9,1000000000000,1,1e30"
    head = "seconds,executors,cores,memory_gb,price_per_hour,rows,accuracy,loss,platform,dataset,trial\n"
    rows = (f"{of},{name},d,{trial}\n" for of, name in ((least, "a"), (most, "b")) for trial in (1, 1_000_000_000))
    said = import_timings(written(head + "".join(rows)), "R", settings)
    assert said[-1].startswith("Report: ")
    with pytest.raises(DataError, match=r"line 2, column seconds: '1e-310' is not allowed; write a number from 1e-9"):
        import_timings(written("platform,dataset,seconds\na,x,1e-310\nb,x,1000\n"), "S", settings)
    assert not Path("store/runs/S").exists()


def test_a_second_file_comes_beside_the_first_and_the_same_timings_are_refused(settings: Settings) -> None:
    import_timings(written(GOOD), "R", settings)
    before = report_of("R")
    other = "platform,dataset,seconds,executors,cores\ndask,d,7,2,1\n"
    with pytest.raises(DataError, match=r"copy\.csv, line 3 is a duplicate of what was imported from theirs\.csv"):
        import_timings(written(other + "spark,d,3,2,1\n", "copy.csv"), "R", settings)
    assert report_of("R") == before
    assert len(list(Path("store/runs/R/brought").iterdir())) == 1
    import_timings(written(other, "others.csv"), "R", settings)
    verdict = json.loads(report_of("R")["verdict.json"])["comparisons"][0]
    assert verdict["platforms"].keys() == {"alone", "spark", "dask"}


def test_what_a_killed_import_left_does_not_come_back(settings: Settings) -> None:
    """A run begins with its file."""
    import_timings(written(GOOD), "R", settings)
    Path("store/runs/R/run.json").unlink()
    import_timings(written(GOOD.replace("spark", "dask")), "R", settings)
    assert b"spark" not in report_of("R")["epochs.csv"]


@pytest.mark.parametrize("left", [("run.json",), (), ("run.json", "report/epochs.parquet")])
def test_a_killed_import_is_repeated_and_there_once(settings: Settings, left: tuple[str, ...]) -> None:
    """Killed before the file that a run begins with, after it, and within the report: nothing marks its end."""
    import_timings(written(GOOD), "R", settings)
    before = report_of("R")
    keep_of("R", *left)
    told = import_timings(written(GOOD), "R", settings)
    assert told[0].endswith("none was added" if "run.json" in left else "3 timings of 3 configurations from theirs.csv")
    assert report_of("R") == before
    assert json.loads(before["published.json"])["finished"]


def test_a_report_finishes_what_a_killed_import_began(settings: Settings) -> None:
    import_timings(written(GOOD), "R", settings)
    before = report_of("R")
    keep_of("R", "run.json")
    again(settings, "R")
    assert report_of("R") == before


def test_an_import_that_was_killed_while_it_reported_is_there_once(settings: Settings) -> None:
    """Into a run that has others: what it is asked for again is there, and what differs in one time is not the same."""
    import_timings(written(GOOD), "R", settings)
    other = written("platform,dataset,seconds,executors,cores\ndask,d,7,2,1\n", "others.csv")
    import_timings(other, "R", settings)
    before = report_of("R")
    keep_of("R", "run.json", "report/published.json", "report/merged.json")
    import_timings(other, "R", settings)
    assert report_of("R") == before
    changed = written("platform,dataset,seconds,executors,cores\ndask,d,8,2,1\n", "others.csv")
    with pytest.raises(DataError, match=r"line 2 is a duplicate of what was imported from others\.csv"):
        import_timings(changed, "R", settings)


def test_a_real_kill_of_an_import(place: Place) -> None:
    """As soon as its run is there; whatever it had come to by then."""
    (place.folder / "theirs.csv").write_text(GOOD)
    process = place.start("import", "theirs.csv", "--run-id", "R")
    eventually((place.store / "runs" / "R" / "run.json").exists)
    process.kill()
    process.communicate()
    for command in (("import", "theirs.csv", "--run-id", "R"), ("runs", "list")):
        done = place.run(*command)
        assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split()[:3] == ["R", "import", "finished"]
    assert pl.read_csv(place.report("R")["epochs.csv"]).height == 3


def keep_of(run_id: str, *left: str) -> None:
    """Of a run nothing but what was brought, and these."""
    folder = Path("store/runs") / run_id
    for path in [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "brought"]:
        if str(path.relative_to(folder)) not in left:
            path.unlink()


def test_a_damaged_file_of_records_is_named(settings: Settings) -> None:
    import_timings(written(GOOD), "R", settings)
    (file,) = Path("store/runs/R/brought").iterdir()
    file.write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=rf"{file.name} is damaged"):
        again(settings, "R")


def test_a_run_id_and_a_file_that_cannot_be_are_told(settings: Settings) -> None:
    with pytest.raises(SettingError, match="run id"):
        import_timings(written(GOOD), "../R", settings)
    with pytest.raises(DataError, match=r"none\.csv cannot be read: No such file.*; name a CSV file of timings"):
        import_timings(Path("none.csv"), "R", settings)
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        import_timings(Path(), "R", settings)
    with pytest.raises(DataError, match=r"'a\\nb\.csv' stands in every row"):
        import_timings(written(GOOD, "a\nb.csv"), "R", settings)


def test_study_c_is_imported_whole(settings: Settings) -> None:
    """All 24 published timings, as whole trainings of so many epochs, accuracy as a share."""
    import_timings(STUDY, "study-c", settings)
    rows = pl.read_csv(report_of("study-c")["comparison.csv"])
    assert (rows.height, set(rows["unit"]), set(rows["trials"])) == (24, {"training"}, {1})
    spark = rows.filter(platform="sklearn-spark", executors=5, whole_epochs=10000)
    assert spark.select("mean_seconds", "final_accuracy", "cores", "total_cores").rows() == [(1093.0, 0.973, 6, 30)]
    dask = rows.filter(platform="sklearn-dask", executors=9).sort("whole_epochs")
    assert dask["mean_seconds"].to_list() == [9.45, 92.0, 312.0, 312.0]
    verdict = json.loads(report_of("study-c")["verdict.json"])
    assert {each["fastest"] for each in verdict["comparisons"]} == {"sklearn-dask"}
    assert {each["baseline"] for each in verdict["comparisons"]} == {None}, "nobody had one executor"


def test_into_a_run_that_was_measured(finished: Finished, tmp_path: Path) -> None:
    """Its own numbers stay, it is as finished as before, and goes on being one that can be resumed and compared."""
    place = copied(finished, tmp_path / "copied")
    before = pl.read_csv(place.report("R")["comparison.csv"])
    text = (
        "platform,dataset,network,solver,rows,seconds,executors,cores,epoch,machine\n"
        "dl4j,synthetic:200x6x3,mlp:6-8-3,gd,200,0.5,1,1,1,theirs\n"
    )
    (place.folder / "theirs.csv").write_text(text)
    done = place.run("import", "theirs.csv", "--run-id", "R")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("imported 1 timing of 1 configuration from theirs.csv\n")
    after = pl.read_csv(place.report("R")["comparison.csv"])
    columns = ["platform", "executors", "cores", "threads", "mean_seconds", "ci_low", "ci_high", "trials", "status"]
    own = after.filter(pl.col("origin").is_null())
    assert own.sort(columns).select(columns).rows() == before.sort(columns).select(columns).rows()
    verdict = json.loads(place.report("R")["verdict.json"])
    assert len(verdict["comparisons"]) == 1, "of equal work with what was measured"
    assert verdict["comparisons"][0]["platforms"]["dl4j"]["seconds"] == 0.5
    (state,) = json.loads(place.run("runs", "list", "--json").stdout)
    assert (state["status"], state["done"], state["planned"]) == ("finished", 6, 6)
    resumed = place.run("run", "--profile", "tiny", "--run-id", "R")
    assert resumed.returncode == 0, resumed.stderr
    assert b"dl4j" in place.report("R")["epochs.csv"]
    compared = place.run("runs", "compare", "R", "R")
    assert "dl4j" in compared.stdout


def test_the_commands_know_a_run_of_imports(place: Place) -> None:
    place.folder.joinpath("bad.csv").write_text("platform,dataset\n")
    assert_one_error(place.run("import", "bad.csv", "--run-id", "R"), "bad.csv, line 1: column seconds is missing")
    assert place.runs() == []
    done = place.run("import", str(STUDY), "--run-id", "study-c")
    assert done.returncode == 0, done.stderr
    listed = place.run("runs", "list").stdout.splitlines()
    assert listed[1].split()[:4] == ["study-c", "import", "finished", "-"]
    shown = place.run("runs", "show", "study-c").stdout
    assert shown.startswith("run study-c (import): finished, no trial of its own\n")
    compared = place.run("runs", "compare", "study-c", "study-c").stdout
    assert compared.count("both take the same") == 24
    reported = place.run("report", "--run-id", "study-c")
    assert reported.returncode == 0, reported.stderr
    assert known_run(LocalStore(place.store), "study-c").profile == "import"
