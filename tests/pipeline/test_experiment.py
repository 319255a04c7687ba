"""A run found again or begun: by its settings, the newest that is unfinished, and never with other values."""

from __future__ import annotations

import json
import resource
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from models.run import Event
from pipeline.config import read_settings
from pipeline.experiment import Experiment, parse_settings, unfinished_run
from pipeline.run_file import PUBLISHED, Published, RunFile, check_run_id, new_run_id, read_run
from pipeline.settings import Settings
from store.errors import SettingError, StoreError
from tests.pipeline.conftest import Finished
from tests.pipeline.place import Place
from tests.pipeline.test_trials import outcome


@pytest.fixture
def configured(place: Place, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of a place, in this process, with its platforms of another package."""
    monkeypatch.chdir(place.folder)
    monkeypatch.syspath_prepend(place.folder / "packages")
    for key in ("PYTHONPATH", "MADE_NOTES", "MADE_FAILS"):
        monkeypatch.setenv(key, place.environment[key])
    return read_settings("tiny")


def other(settings: Settings, **profile: object) -> Settings:
    return msgspec.structs.replace(settings, profile=msgspec.structs.replace(settings.profile, **profile))


def write(run: Experiment, run_file: RunFile) -> None:
    run.store.write(f"{run.path}/run.json", msgspec.json.encode(run_file))


def finish(run: Experiment, *, finished: bool) -> None:
    run.store.write(f"{run.path}/{PUBLISHED}", msgspec.json.encode(Published(trials=(), finished=finished)))


def test_a_run_is_begun_once(configured: Settings) -> None:
    begun = Experiment(configured, "R").begin()
    assert Experiment(configured, "R").begin() == begun
    assert (begun.run_id, begun.profile, begun.trials) == ("R", "tiny", 4)
    assert begun.rows == {"synthetic:200x6x3": 200}


def test_the_same_id_with_other_values_names_them(configured: Settings) -> None:
    Experiment(configured, "R").begin()
    with pytest.raises(SettingError, match=r"run R .* other values of profile.tiny.epochs, profile.tiny.trials; "):
        Experiment(other(configured, epochs=3, trials=3), "R").begin()


def test_where_a_result_does_not_depend_on_a_setting_it_may_differ(configured: Settings, tmp_path: Path) -> None:
    Experiment(configured, "R").begin()
    main = msgspec.structs.replace(configured.main, cache=tmp_path / "c", lease=tmp_path / "l")
    Experiment(msgspec.structs.replace(configured, main=main), "R").begin()


def test_prices_are_no_part_of_what_was_measured_and_targets_only_where_mllib_fits_again(configured: Settings) -> None:
    price = msgspec.structs.replace(configured.price, core_hour=0.05)
    target = msgspec.structs.replace(configured.target, accuracies=("synthetic:200x6x3=0.9",))
    judged = msgspec.structs.replace(configured, price=price, target=target)
    begun = Experiment(configured, "R").begin()
    assert Experiment(judged, "R").begin() == begun, "it goes on as it was begun"
    assert unfinished_run(judged) == "R"
    with_mllib = {"platforms": ("torch-cpu", "mllib")}
    Experiment(other(configured, **with_mllib), "M").begin()
    Experiment(other(msgspec.structs.replace(configured, price=price), **with_mllib), "M").begin()
    with pytest.raises(SettingError, match=r"other values of yarnstick\.target\.accuracies; "):
        Experiment(other(judged, **with_mllib), "M").begin()
    for settings in (configured, judged):
        alone = msgspec.structs.replace(settings, target=msgspec.structs.replace(settings.target, refits=False))
        Experiment(other(alone, **with_mllib), "N").begin()
    baseline = msgspec.structs.replace(configured.baseline, precision="float64")
    with pytest.raises(SettingError, match=r"other values of yarnstick\.baseline\.precision; "):
        Experiment(msgspec.structs.replace(configured, baseline=baseline), "R").begin()


def on_another_machine(monkeypatch: pytest.MonkeyPatch, *, mib: int, cores: int = 4, cpu: str = "EPYC") -> None:
    monkeypatch.setattr("pipeline.experiment.gethostname", lambda: f"edge-{mib}")
    monkeypatch.setattr("pipeline.experiment.cpu_name", lambda: cpu)
    monkeypatch.setattr("pipeline.experiment.usable_cores", lambda: cores)
    monkeypatch.setattr("pipeline.experiment.memory_mib", lambda: mib)


def test_what_is_timed_here_is_of_one_machine(configured: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    on_another_machine(monkeypatch, mib=16384)
    begun = Experiment(configured, "R").begin()
    on_another_machine(monkeypatch, mib=16000)
    assert Experiment(configured, "R").begin() == begun, "a spare one that is alike"
    for other_one in ({"cpu": "Xeon"}, {"cores": 8}, {"mib": 32768}):
        on_another_machine(monkeypatch, **{"mib": 16384} | other_one)
        with pytest.raises(SettingError) as error:
            Experiment(configured, "R").begin()
        for part in ("begun on edge-16384 (EPYC, 4 cores, 16 GB)", "would be timed on edge-", "yarnstick runs merge"):
            assert part in str(error.value)
        assert unfinished_run(configured) is None, "another one begins"
    for planned in (run := Experiment(configured, "R")).planned:
        run.trials.publish(outcome("ok", spec=planned.spec), events=b"", logs={})
    assert Experiment(configured, "R").begin() == begun, "its report can be made anywhere"


def test_trials_on_a_cluster_may_be_continued_on_any_machine(
    configured: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = msgspec.structs.replace(configured.spark, master="spark://master:7077")
    there = msgspec.structs.replace(configured, spark=spark)
    mixed = other(there, platforms=("torch-cpu", "steady"), solvers=("gd",))
    on_another_machine(monkeypatch, mib=16384)
    Experiment(there, "R").begin()
    Experiment(mixed, "M").begin()
    on_another_machine(monkeypatch, mib=32768, cpu="Xeon")
    Experiment(there, "R").begin()
    assert unfinished_run(there) == "R"
    with pytest.raises(SettingError, match=r"run M was begun on edge-16384 .* would be timed on edge-32768 \(Xeon, "):
        Experiment(mixed, "M").begin()
    for planned in (run := Experiment(mixed, "M")).planned:
        if planned.spec.platform == "torch-cpu":
            run.trials.publish(outcome("ok", spec=planned.spec), events=b"", logs={})
    Experiment(mixed, "M").begin()


def test_the_same_file_with_other_rows_is_named(configured: Settings, place: Place) -> None:
    data = place.folder / "mine.csv"
    mine = other(configured, datasets=(f"csv:{data}",))
    data.write_text("".join(f"{n},{n * 7 % 11},{n % 2}\n" for n in range(50)))
    Experiment(mine, "R").begin()
    data.write_text("".join(f"{n},{n * 5 % 11},{n % 2}\n" for n in range(50)))
    with pytest.raises(SettingError, match=r"other values of the rows of csv:.*mine.csv"):
        Experiment(mine, "R").begin()


def test_the_newest_unfinished_run_of_the_same_settings_is_continued(configured: Settings) -> None:
    assert unfinished_run(configured) is None
    begun = Experiment(configured, "middle").begin()
    for name, later in (("oldest", -2), ("newest", 2), ("finished", 3), ("of-other-settings", 4)):
        run = Experiment(configured, name)
        write(run, replace(begun, run_id=name, begun_at=begun.begun_at + timedelta(hours=later)))
        finish(run, finished=name == "finished")
    changed = replace(begun, settings=begun.settings | {"profile.tiny.epochs": 9})
    write(Experiment(configured, "of-other-settings"), changed)
    assert unfinished_run(configured) == "newest"
    finish(Experiment(configured, "newest"), finished=True)
    assert unfinished_run(configured) == "middle", "its report was not published at all"
    assert unfinished_run(other(configured, epochs=3)) is None


def test_a_damaged_run_is_none_to_continue_and_a_sentence_where_it_is_asked_for(configured: Settings) -> None:
    Experiment(configured, "good").begin()
    store = Experiment(configured, "x").store
    store.write("runs/bad/run.json", b'{"run_id": 1}')
    store.write("runs/-strange name/run.json", b"{}")
    assert unfinished_run(configured) == "good"
    with pytest.raises(StoreError, match=r"runs/bad/run.json is damaged .*remove it"):
        read_run(store, "bad")
    store.write(f"runs/good/{PUBLISHED}", b"[")
    with pytest.raises(StoreError, match=rf"{PUBLISHED} is damaged"):
        Experiment(configured, "good").marker(PUBLISHED)


def test_what_stops_a_run_stops_it_before_the_next_trial(
    configured: Settings, place: Place, finished: Finished
) -> None:
    """A trial whose outcome cannot be kept is measured for nothing; a second one is not begun."""
    shutil.copytree(finished.place.store / "data", place.store / "data")
    run = Experiment(configured, "R")
    run.begin()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def no_file_can_grow(event: Event) -> None:
        if event.kind == "ended":
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))

    run.listener = no_file_can_grow
    try:
        with pytest.raises(StoreError, match=r"outcome\.json cannot be written: File too large"):
            run.measure(run.planned[0].spec)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with pytest.raises(StoreError, match=r"outcome\.json cannot be written: File too large"):
        run.measure(run.planned[1].spec)
    assert len(place.trained()) == 1
    run.abort()
    assert list((place.folder / "build" / "cache" / "work").iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "-x", "a/b", "a b", "ä", "a\n", "x" * 101, "../x"])
def test_a_run_id_is_a_name(name: str) -> None:
    with pytest.raises(SettingError, match="run id"):
        check_run_id(name)


def test_a_new_run_id_is_new_and_valid() -> None:
    made = {check_run_id(new_run_id("quick")) for _ in range(20)}
    assert len(made) == 20
    for profile in ("my profile é", "-x", "x" * 300, "é"):
        check_run_id(new_run_id(profile))


@pytest.mark.parametrize("text", ["", "{", "[1]", "1", '{"a": 1', "null"])
def test_settings_that_are_no_object_are_a_sentence(text: str) -> None:
    with pytest.raises(SettingError, match=r'--settings: .*; write a JSON object as {"section.key": "value"}'):
        parse_settings(text)


def test_settings_are_an_object() -> None:
    assert parse_settings(json.dumps({"a.b": 1})) == {"a.b": 1}


def test_what_an_invocation_published_is_done_for_it_whatever_another_measures(configured: Settings) -> None:
    run = Experiment(configured, "R")
    run.begin()
    run.mark(PUBLISHED)
    assert run.is_current(PUBLISHED)
    assert not Experiment(configured, "R").is_current(PUBLISHED), "the next one has trials to measure"
