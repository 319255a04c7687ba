"""Replay: a recorded run of ours, and made logs of other people's applications."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from models.outcome import Outcome
from models.record import LEDGER
from models.replayed import Names, memory_mib
from models.spec import Network
from pipeline.config import read_settings
from pipeline.importing import import_timings
from pipeline.replay import Source, find, replay, told, trials
from pipeline.reporting import again
from pipeline.settings import Settings
from report.merge import records_table
from store.errors import DataError, SettingError
from tests.models.spark_logs import (
    FORMS,
    GD,
    L_BFGS,
    RECORDED,
    START,
    added,
    application,
    application_end,
    ended,
    environment,
    gd_fit,
    job,
    lines,
    removed,
    started,
    unpersisted,
    whole,
)
from tests.pipeline.place import Place, assert_one_error
from tests.report.made import outcome, torch, with_records

TIMES = ("seconds", "cpu_seconds", *LEDGER)
GD_TRIAL = next(RECORDED.glob("trials/*-gd-*"))
L_BFGS_TRIAL = next(RECORDED.glob("trials/*-l-bfgs-*"))


@pytest.fixture
def records(tmp_path: Path) -> Callable[..., pl.DataFrame]:
    """Of each fit below a path, as they are merged; what is told of them lies in told.txt."""

    def replayed(path: Path, **names: Any) -> pl.DataFrame:
        found = trials(list(find(path)), "R", names=Names(**names))
        (tmp_path / "told.txt").write_text("\n".join(told(found)))
        if not found.outcomes:
            raise DataError(found.left_out[0])
        return pl.DataFrame(records_table(found.outcomes))

    return replayed


def recorded(trial: Path) -> list[dict[str, Any]]:
    return list(msgspec.to_builtins(Outcome.decode((trial / "outcome.json").read_bytes()).records))


def text_of(trial: Path) -> bytes:
    import pyarrow as pa

    (log,) = trial.glob("eventlog/*/events_*")
    with pa.CompressedInputStream(pa.OSFile(str(log)), "zstd") as stream:
        return bytes(stream.read())


@pytest.mark.parametrize("part", [".", "trials"])
def test_our_own_run_from_elsewhere_has_the_same_epochs(
    tmp_path: Path, records: Callable[..., pl.DataFrame], part: str
) -> None:
    """All that its records hold, but the name of the run: what was measured live is found again."""
    shutil.copytree(RECORDED, tmp_path / "elsewhere")
    found = records(tmp_path / "elsewhere" / part)
    before = [record for trial in (L_BFGS_TRIAL, GD_TRIAL) for record in recorded(trial)]
    assert found.height == len(before) == 8
    for now, then in zip(found.to_dicts(), before, strict=True):
        for column in TIMES:
            assert now[column] == pytest.approx(then[column], abs=1e-9), column
        for column in ("dataset", "network", "solver", "trial", "epoch", "passes", "rows", "clock", "loss", "machine"):
            assert now[column] == then[column], column


@pytest.mark.parametrize("suffix", FORMS)
def test_logs_alone_have_the_same_epochs_in_every_form(
    tmp_path: Path, records: Callable[..., pl.DataFrame], suffix: str
) -> None:
    """Without the outcomes: the job group names the trial. What an l-bfgs iteration was is then not known."""
    (tmp_path / f"app{suffix}").write_bytes(FORMS[suffix](text_of(GD_TRIAL)))
    found = records(tmp_path / f"app{suffix}", dataset="mine", rows=2000)
    gd = found.filter(solver="gd")
    assert gd["seconds"].to_list() == pytest.approx([record["seconds"] for record in recorded(GD_TRIAL)], abs=1e-9)
    assert set(gd["network"]) == {"mlp:40-32-4"}
    assert (gd["rows"][0], gd["executors"][0], gd["cores"][0], gd["memory_mib"][0], gd["partitions"][0]) == (
        2000, 2, 1, 1024, 4,
    )  # fmt: skip
    l_bfgs = found.filter(solver="l-bfgs")
    passes = sum(record["passes"] for record in recorded(L_BFGS_TRIAL))
    assert (l_bfgs.height, set(l_bfgs["clock"]), set(l_bfgs["passes"])) == (passes, {"amortized"}, {1})
    assert l_bfgs["seconds"].sum() == pytest.approx(sum(r["seconds"] for r in recorded(L_BFGS_TRIAL)), abs=1e-9)
    said = (tmp_path / "told.txt").read_text()
    assert "an epoch is a pass" in said
    assert "unknown" not in said


def test_a_rolled_log_is_one(tmp_path: Path, records: Callable[..., pl.DataFrame]) -> None:
    text = text_of(GD_TRIAL).splitlines(keepends=True)
    log = tmp_path / "eventlog_v2_app"
    log.mkdir()
    for number in range(11):
        piece = b"".join(text[number * 20 : (number + 1) * 20] if number < 10 else text[200:])
        (log / f"events_{number + 1}_app.zstd").write_bytes(FORMS[".zstd"](piece))
    found = records(log)
    assert found.filter(solver="gd")["seconds"].to_list() == pytest.approx(
        [record["seconds"] for record in recorded(GD_TRIAL)], abs=1e-9
    )


def test_logs_of_one_application_archived_twice_count_once(
    tmp_path: Path, records: Callable[..., pl.DataFrame]
) -> None:
    """Trials that share a session: the later one's log has the earlier one's jobs too."""
    for trial in (GD_TRIAL, L_BFGS_TRIAL):
        (tmp_path / "logs" / trial.name).mkdir(parents=True)
        (tmp_path / "logs" / trial.name / "app").write_bytes(text_of(trial))
    found = records(tmp_path / "logs")
    assert set(found["trial"]) == {1}
    assert found.filter(solver="gd").height == 4


def test_a_log_in_a_trials_directory_is_that_trials(records: Callable[..., pl.DataFrame]) -> None:
    (log,) = GD_TRIAL.glob("eventlog/*")
    for path in (log, log.parent, GD_TRIAL):
        assert records(path)["dataset"].unique().to_list() == ["synthetic:2000x40x4"]


def test_a_replayed_run_is_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its report can be made again, and says the same; nobody writes over it."""
    monkeypatch.chdir(tmp_path)
    settings = read_settings("default", store="store")
    lines = replay(RECORDED, "R", settings, names=Names())
    assert lines[0] == "2 trials, 8 epochs"
    assert lines[-1].startswith("Report: ")
    folder = tmp_path / "store" / "runs" / "R" / "report"
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    again(settings, "R")
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert json.loads(before["published.json"])["finished"]
    with pytest.raises(SettingError, match="run R is there already"):
        replay(RECORDED, "R", settings, names=Names())


def test_a_report_of_nothing_but_unknown_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = written(tmp_path / "app", *theirs(*gd_fit(3), unpersisted()))
    assert replay(log, "R", read_settings("default", store="store"), names=Names())[-1].startswith("Report: ")


def written(path: Path, *events: dict[str, Any]) -> Path:
    path.write_bytes(lines(list(events)))
    return path


def theirs(*fit: dict[str, Any]) -> list[dict[str, Any]]:
    about = environment(spark_executor_memory="2g", spark_submit_deployMode="cluster")
    return [START, application(at=100), about, added("1", cores=4, at=500), added("2", cores=4, at=600), *fit]


def test_a_fit_of_somebody_else(tmp_path: Path, records: Callable[..., pl.DataFrame]) -> None:
    log = written(
        tmp_path / "application_1_1", *theirs(*gd_fit(4, group=None), unpersisted(), application_end(at=9000))
    )
    found = records(log, dataset="mnist", network=Network.parse("mlp:784-100-10"), rows=60000, machine="theirs")
    first = found.to_dicts()[0]
    wanted = {
        "dataset": "mnist", "network": "mlp:784-100-10", "platform": "mllib", "solver": "gd", "machine": "theirs",
        "executors": 2, "cores": 4, "memory_mib": 2048, "deploy_mode": "cluster", "workers": 2, "granted_cores": 8,
        "partitions": 1, "outcome": "ok", "reason": None, "warmup": True, "clock": "eventlog", "passes": 1,
        "updates": 1, "samples": 60000, "startup_seconds": 0.5, "load_seconds": 0.2, "trial": 1, "seconds": 1.5,
        "driver": 0.5,
    }  # fmt: skip
    assert {name: first[name] for name in wanted} == wanted
    assert found.height == 3
    assert json.loads(first["versions"]) == {"spark": "3.5.1", "java": "17.0.1"}


def test_what_no_log_tells_is_called_unknown_with_the_options_that_name_it(
    tmp_path: Path, records: Callable[..., pl.DataFrame]
) -> None:
    found = records(written(tmp_path / "app", *theirs(*gd_fit(3), unpersisted())))
    assert (found["dataset"][0], found["network"][0], found["rows"][0]) == ("unknown", "unknown", None)
    said = (tmp_path / "told.txt").read_text()
    assert "does not tell dataset and network: called unknown; --dataset, --network and --rows name them" in said


def test_several_fits_of_one_configuration_are_its_trials(tmp_path: Path, records: Callable[..., pl.DataFrame]) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    events = theirs(*gd_fit(3), *gd_fit(3, first=20, at=20_000), unpersisted())
    written(folder / "application_1", *events)
    other = [event | ({"App ID": "app-2"} if "App ID" in event else {}) for event in events]
    written(folder / "application_2", *other)
    written(folder / "application_3", *theirs(*job(0, name="save at X.scala:7", at=1, until=2)))
    (folder / "notes.txt").write_text("not a log")
    found = records(folder)
    assert found["trial"].unique().sort().to_list() == [1, 2, 3, 4]
    assert "left out: " in (tmp_path / "told.txt").read_text()
    assert "'save at X.scala' (1)" in (tmp_path / "told.txt").read_text()


def test_a_local_master_has_threads_and_no_executors(tmp_path: Path, records: Callable[..., pl.DataFrame]) -> None:
    found = records(
        written(tmp_path / "local-1", START, application(), added("driver", cores=3), *gd_fit(3), unpersisted())
    )
    assert (found["threads"][0], found["executors"][0], found["cores"][0]) == (3, None, None)


@pytest.mark.parametrize("lines_left", [-1, -2, -3])
def test_a_killed_application_gives_the_epochs_it_had(
    tmp_path: Path, records: Callable[..., pl.DataFrame], lines_left: int
) -> None:
    """Cut in the middle of the last pass's end, of its task, and of its beginning."""
    text = lines(theirs(*gd_fit(4))).splitlines(keepends=True)
    log = tmp_path / "application_1_1.inprogress"
    log.write_bytes(b"".join(text[:lines_left]) + text[lines_left][:30])
    found = records(log)
    assert found["seconds"].to_list() == [1.5] * (3 if lines_left > -3 else 2)
    assert set(found["outcome"]) == {"failed"}
    assert set(found["reason"]) == {"killed after 3 of its passes"}
    assert "killed after 3 of its passes" in (tmp_path / "told.txt").read_text()


def test_one_killed_before_its_first_epoch_is_a_record_without_seconds(
    tmp_path: Path, records: Callable[..., pl.DataFrame]
) -> None:
    found = records(written(tmp_path / "app", *theirs(started(0, stage=0, name=L_BFGS, at=5000))))
    assert found.select("seconds", "outcome", "reason").rows() == [(None, "failed", "killed after 0 of its passes")]


def test_a_trial_of_ours_that_was_killed_has_its_epochs_from_the_log(
    tmp_path: Path, records: Callable[..., pl.DataFrame]
) -> None:
    """MLlib tells its epochs after the fit, so the outcome has none."""
    trial = tmp_path / GD_TRIAL.name
    shutil.copytree(GD_TRIAL, trial)
    outcome = json.loads((trial / "outcome.json").read_text())
    bare = {name: value for name, value in outcome["records"][0].items() if name not in TIMES}
    outcome |= {"outcome": "failed", "reason": "SIGKILL", "records": [bare | {"outcome": "failed", "epoch": None}]}
    (trial / "outcome.json").write_text(json.dumps(outcome))
    (log,) = trial.glob("eventlog/*/events_*")
    text = text_of(GD_TRIAL)
    released = text.index(b'"Event":"SparkListenerUnpersistRDD"', text.rindex(GD.encode()))
    cut = text.rindex(b'"Completion Time"', 0, released)
    log.unlink()
    log.with_suffix("").write_bytes(text[:cut])
    found = records(trial)
    assert found["seconds"].to_list() == pytest.approx([r["seconds"] for r in recorded(GD_TRIAL)], abs=1e-9)
    assert set(found["reason"]) == {"killed after 4 of its passes; SIGKILL"}
    assert set(found["dataset"]) == {"synthetic:2000x40x4"}


def of_run(run: str, trial: int, attempt: int, factor: float, *, noisy: bool = False) -> Source:
    began = {"A": 0, "B": 100}[run] + 10 * trial + attempt
    made = outcome(torch(1, 0.5), trial=trial, attempt=attempt, factor=factor, position=began)
    return Source(logs=(), outcome=replace(with_records(made, run_id=run), noisy=noisy))


def test_a_trial_of_several_runs_keeps_its_own_attempts() -> None:
    one = [of_run("A", trial, 1, 1.0) for trial in (1, 2, 3)]
    other = [of_run("B", 1, 1, 5.0, noisy=True), *(of_run("B", trial, 1 + (trial == 1), 1.1) for trial in (1, 2, 3))]
    found = trials([*one, *other], "R", names=Names()).outcomes
    assert [(each.spec.trial, each.spec.attempt, each.noisy) for each in found] == [
        (1, 1, False), (2, 1, False), (3, 1, False), (4, 1, True), (4, 2, False), (5, 1, False), (6, 1, False),
    ]  # fmt: skip
    assert [each.position for each in found] == [1, 2, 3, 4, 5, 6, 7]
    assert {(record.trial, each.spec.trial) for each in found for record in each.records} == {
        (n, n) for n in range(1, 7)
    }
    again_alone = trials(other, "R", names=Names()).outcomes
    assert [each.spec.trial for each in again_alone] == [1, 1, 2, 3], "one run has the numbers that it had"


def test_attempts_in_logs_alone_stay_with_their_trial(tmp_path: Path, records: Callable[..., pl.DataFrame]) -> None:
    """The run of a log is not told: a first attempt is of another trial."""
    named = GD_TRIAL.name.removesuffix("-t1-a1")
    for session, attempts in (("a", [1]), ("b", [1, 2])):
        for attempt in attempts:
            group = f"{named}-t1-a{attempt}"
            at = 5000 + 100_000 * (2 * (session == "b") + attempt)
            events = theirs(*gd_fit(3, at=at, group=group), unpersisted())
            name = f"app-{session}{attempt}"
            written(tmp_path / name, *(each | ({"App ID": name} if "App ID" in each else {}) for each in events))
    found = records(tmp_path).select("trial", "attempt").unique(maintain_order=True)
    assert found.rows() == [(1, 1), (2, 1), (2, 2)]


def another_run(folder: Path) -> Path:
    """The recorded one, as if it had been measured another day."""
    shutil.copytree(RECORDED, folder)
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(about | {"run_id": "other", "begun_at": "2026-11-19T00:00:00Z"}))
    for path in folder.glob("trials/*/outcome.json"):
        before = Outcome.decode(path.read_bytes())
        began = before.records[0].started_at
        assert began is not None
        path.write_bytes(with_records(before, run_id="other", started_at=began + timedelta(days=1)).encode())
    return folder


def test_each_trial_of_several_runs_has_its_own_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is found in it, when what was replayed is replayed."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(RECORDED, tmp_path / "both" / "a")
    another_run(tmp_path / "both" / "b")
    found = trials(list(find(tmp_path / "both")), "R", names=Names())
    assert [(slug[-5:], logs[0].parents[3].name) for slug, logs in found.logs.items()] == [
        ("t1-a1", "a"), ("t1-a1", "a"), ("t2-a1", "b"), ("t2-a1", "b"),
    ]  # fmt: skip
    settings = read_settings("default", store="store")
    assert replay_as_r(tmp_path / "both", settings)[0] == "4 trials, 16 epochs"
    noisy = tmp_path / "store" / "runs" / "R" / "trials"
    for path in noisy.glob("*-t1-a1/outcome.json"):
        path.write_text(path.read_text().replace('"noisy": false', '"noisy": true', 1))
    again(settings, "R")
    tasks = pl.read_csv(tmp_path / "store" / "runs" / "R" / "report" / "timeline.csv")
    assert set(tasks["trial"]) == {2}
    once_more = trials(list(find(tmp_path / "store" / "runs" / "R")), "S", names=Names())
    assert (len(once_more.outcomes), once_more.left_out) == (4, [])


def test_a_copy_of_a_run_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = archived(tmp_path / "all", **{"yarnstick.price.core_hour": 36.0})
    settings = read_settings("default", store="all/store")
    assert replay_as_r(run, settings)[0] == "3 trials, 12 epochs"
    shutil.copytree(run, tmp_path / "all" / "backup")
    shutil.rmtree(tmp_path / "all" / "backup" / "trials" / GD_TRIAL.name)
    said = replay(tmp_path / "all", "S", read_settings("default", store="store"), names=Names())
    assert said[0] == "3 trials, 12 epochs"
    assert "left out: 5 trials found again, as in a copy of a run: each counts once" in said
    about = json.loads(Path("store/runs/S/run.json").read_text())["settings"]
    assert about["yarnstick.price.core_hour"] == 36, "one run is judged as it was, wherever its copies lie"


def test_a_damaged_copy_leaves_the_other_one(tmp_path: Path, records: Callable[..., pl.DataFrame]) -> None:
    for name in ("a", "b"):
        shutil.copytree(RECORDED, tmp_path / "both" / name)
    (log,) = (tmp_path / "both" / "a" / "trials" / GD_TRIAL.name).glob("eventlog/*/events_*")
    log.with_suffix("").write_bytes(lines(theirs(*gd_fit(3))))
    log.unlink()
    assert records(tmp_path / "both").filter(solver="gd").height == 4


def test_a_lost_executor_taints(tmp_path: Path, records: Callable[..., pl.DataFrame]) -> None:
    events = theirs(*gd_fit(4), unpersisted())
    found = records(written(tmp_path / "app", *events[:-4], removed("2", at=5000), *events[-4:]))
    assert set(found["outcome"]) == {"tainted"}
    assert set(found["reason"]) == {"executor 2 was lost while it trained"}


def test_a_failed_pass_is_the_reason(tmp_path: Path, records: Callable[..., pl.DataFrame]) -> None:
    failing = [started(9, stage=9, name=GD, at=90_000), ended(9, at=91_000, failure="Job aborted\nstack")]
    found = records(written(tmp_path / "app", *theirs(*gd_fit(2), *failing)))
    assert set(found["reason"]) == {"Spark job 9 failed after 2 finished passes: Job aborted"}


def test_a_log_that_is_not_of_the_trial_beside_it_is_refused(
    tmp_path: Path, records: Callable[..., pl.DataFrame]
) -> None:
    trial = tmp_path / GD_TRIAL.name
    shutil.copytree(GD_TRIAL, trial)
    outcome = (trial / "outcome.json").read_text()
    (trial / "outcome.json").write_text(outcome.replace('"passes": 1', '"passes": 2', 1))
    with pytest.raises(DataError, match=r"has 5 gradient passes of the trial .*, and its outcome tells of 6"):
        records(trial)
    (trial / "outcome.json").write_text("{")
    with pytest.raises(DataError, match=r"outcome\.json is damaged"):
        records(trial)


def archived(folder: Path, **settings: Any) -> Path:
    """The recorded run with other settings, and a trial of torch-cpu of a tenth of gd's seconds beside it."""
    run = folder / "archived"
    shutil.copytree(RECORDED, run)
    about = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(about | {"settings": about["settings"] | settings}))
    outcome = json.loads((GD_TRIAL / "outcome.json").read_text())
    alone = dict.fromkeys(("executors", "cores", "memory_mib", "partitions", "deploy_mode")) | {"threads": 1}
    how = {"precision": "float32", "gradient": "manual"}
    outcome["spec"]["platform"] = "torch-cpu"
    outcome["spec"]["resources"] |= alone
    outcome["spec"]["hyperparameters"] |= how
    for record in outcome["records"]:
        record |= {"platform": "torch-cpu", "clock": "measured", **alone, **how, **dict.fromkeys(LEDGER)}
        record["seconds"] /= 10
    (run / "trials" / "torch").mkdir()
    (run / "trials" / "torch" / "outcome.json").write_text(json.dumps(outcome))
    return run


def replay_as_r(path: Path, settings: Settings) -> list[str]:
    return replay(path, "R", settings, names=Names())


def test_trials_that_spark_did_not_run_are_as_they_were_recorded(
    tmp_path: Path, records: Callable[..., pl.DataFrame]
) -> None:
    found = records(archived(tmp_path))
    alone = found.filter(platform="torch-cpu")
    assert (found.height, set(alone["run_id"]), set(alone["clock"])) == (12, {"R"}, {"measured"})
    assert alone["seconds"].to_list() == [record["seconds"] / 10 for record in recorded(GD_TRIAL)]
    said = "as recorded, not timed again: 1 trial of torch-cpu, as no event log of MLlib has their times"
    assert said in (tmp_path / "told.txt").read_text()


def test_the_whole_report_of_an_archived_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Target, prices and baseline are the archived run's, MLlib's epochs are timed from its logs, and all is compared.

    The outcomes of MLlib are spoilt before: its seconds come from nowhere but the logs.
    """
    monkeypatch.chdir(tmp_path)
    own = {"yarnstick.target.accuracies": ["synthetic:2000x40x4=0.6"], "yarnstick.price.core_hour": 36.0}
    run = archived(tmp_path, **own)
    for trial in (GD_TRIAL, L_BFGS_TRIAL):
        path = run / "trials" / trial.name / "outcome.json"
        outcome = json.loads(path.read_text())
        for record in outcome["records"]:
            record["seconds"] = 99.0
        path.write_text(json.dumps(outcome))
    settings = read_settings("default", store="store")
    said = "as recorded, not timed again: 1 trial of torch-cpu"
    assert any(said in line for line in replay_as_r(run, settings))
    folder = tmp_path / "store" / "runs" / "R" / "report"
    rows = pl.read_csv(folder / "comparison.csv", infer_schema_length=None)
    l_bfgs = rows.row(by_predicate=pl.col("solver") == "l-bfgs", named=True)
    assert l_bfgs["seconds_to_target"] == pytest.approx(sum(each["seconds"] for each in recorded(L_BFGS_TRIAL)))
    gd = rows.row(by_predicate=(pl.col("platform") == "mllib") & (pl.col("solver") == "gd"), named=True)
    warm = [each["seconds"] for each in recorded(GD_TRIAL)[1:]]
    assert gd["mean_seconds"] == pytest.approx(sum(warm) / 3, abs=1e-9)
    assert gd["relative_to_one_thread"] == pytest.approx(10)
    assert gd["price_per_hour"] == 36 * 3, "two executors of one core, and the driver"
    verdict = json.loads((folder / "verdict.json").read_text())
    assert {each["baseline"]["platform"] for each in verdict["comparisons"] if each["solver"] == "gd"} == {"torch-cpu"}
    assert said in (folder / "report.html").read_text()
    assert json.loads((folder / "environment.json").read_text())["settings"].items() >= own.items()
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    again(settings, "R")
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_what_is_given_with_a_replay_counts_before_what_the_archived_run_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = archived(tmp_path, **{"yarnstick.price.core_hour": 36.0, "yarnstick.price.currency": "EUR"})
    Path("luigi.cfg").write_text("[yarnstick.price]\ncurrency = USD\n")
    said = replay_as_r(run, read_settings("default", store="store", overrides=["price.core_hour=9"]))
    about = json.loads(Path("store/runs/R/report/environment.json").read_text())["settings"]
    assert (about["yarnstick.price.core_hour"], about["yarnstick.price.currency"]) == (9, "EUR")
    assert said[-1].startswith("Run R is judged by its own yarnstick.price.currency, ")


def test_timings_imported_into_an_archived_run_come_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = read_settings("default", store="store")
    shutil.copytree(archived(tmp_path), tmp_path / "store" / "runs" / "tiny")
    Path("theirs.csv").write_text("platform,dataset,trial,seconds\nelsewhere,mnist,1,1.5\nelsewhere,mnist,2,1.6\n")
    import_timings(Path("theirs.csv"), "tiny", settings)
    said = replay_as_r(tmp_path / "store" / "runs" / "tiny", settings)
    assert "2 imported timings of tiny as imported" in said
    table = pl.read_csv("store/runs/R/report/epochs.csv", infer_schema_length=None)
    there = table.filter(pl.col("origin") == "theirs.csv")
    assert (set(there["run_id"]), sorted(there["seconds"])) == ({"R"}, [1.5, 1.6])
    one = tmp_path / "store" / "runs" / "tiny" / "trials" / GD_TRIAL.name
    assert not any("as imported" in line for line in replay(one, "one", settings, names=Names()))


def test_a_replay_that_was_killed_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = read_settings("default", store="store")
    before = replay_as_r(RECORDED, settings)
    run = tmp_path / "store" / "runs" / "R"
    shutil.rmtree(run / "report")
    shutil.rmtree(next((run / "trials").iterdir()))
    with pytest.raises(SettingError, match="run R is there already"):
        replay_as_r(GD_TRIAL, settings)
    assert replay_as_r(RECORDED, settings) == before
    with pytest.raises(SettingError, match="run R is there already"):
        replay_as_r(RECORDED, settings)


def test_one_sentence_on_the_command_line(place: Place) -> None:
    log = place.folder / "app"
    for events, words in (
        (whole(*job(0, name="count at X.scala:1", at=1, until=2)), ("no gradient pass", "'count at X.scala' (1)")),
        ([], ("is empty",)),
    ):
        log.write_bytes(lines(events))
        assert_one_error(place.run("replay", str(log), "--run-id", "R"), *words)
    assert place.runs() == []
    log.write_bytes(lines(theirs(*gd_fit(4), unpersisted())))
    done = place.run(
        "replay", str(log), "--run-id", "R", "--dataset", "theirs", "--network", "mlp:9-8-2", "--rows", "7"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 trial, 3 epochs\n")
    assert b"theirs,mlp:9-8-2,mllib,gd" in place.report("R")["epochs.csv"]


def test_nothing_to_replay_is_told(tmp_path: Path, records: Callable[..., pl.DataFrame]) -> None:
    with pytest.raises(DataError, match="nowhere: no such file or directory"):
        records(tmp_path / "nowhere")
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="none holds no event log"):
        records(tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "mib"),
    [("2g", 2048), ("512m", 512), ("1024", 1024), ("2GB", 2048), ("2048k", 2), ("1t", 1 << 20), ("?", None)],
)
def test_memory_as_spark_writes_it(text: str, mib: int | None) -> None:
    assert memory_mib(text) == mib
