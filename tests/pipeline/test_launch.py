"""The processes that train: what comes of one that dies, who shares one, and that none outlives its run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

import pipeline.launch
from models.dataset import Dataset
from models.outcome import LOG
from models.protocol import Surroundings
from models.run import Event, Session, decode_event
from models.spec import Hyperparameters, Network, Resources, TrialSpec
from pipeline.launch import Launcher, Listener
from tests.pipeline.place import TOP, eventually, install

DATA = Dataset(
    name="made",
    train=(),
    test=(),
    columns=6,
    classes=3,
    dtype="uint8",
    offset=(0.0,),
    divisor=(1.0,),
    train_rows=200,
    test_rows=40,
    split_seed=0,
)


def spec(*, trial: int = 1, executors: int = 1, learning_rate: float = 0.5, platform: str = "steady") -> TrialSpec:
    return TrialSpec(
        platform=platform,
        dataset="made",
        data="made",
        network=Network(sizes=(6, 8, 3)),
        resources=Resources(executors=executors, cores=1),
        hyperparameters=Hyperparameters(
            solver="gd", learning_rate=learning_rate, precision="float64", gradient=None, batch_size=None, epochs=3
        ),
        data_fraction=1.0,
        trial=trial,
        attempt=1,
        seed=trial,
    )


def launcher(work: Path, *, shares_sessions: bool = True, listener: Listener = lambda event: None) -> Launcher:
    session = Session(
        run_id="R",
        machine="here",
        machine_memory_gb=1.0,
        commit=None,
        session="shared" if shares_sessions else "own",
        noisy_cores=1000.0,
        datasets={"made": DATA},
        surroundings=Surroundings(work=work, spark_conf={}, archives=work),
        parent=os.getpid(),
    )
    return Launcher(session=session, shares_sessions=shares_sessions, work=work, invocation="now", listener=listener)


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the platforms of made_platform.py write what they were started with."""
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "packages")))
    monkeypatch.setenv("MADE_NOTES", str(tmp_path / "notes"))
    return tmp_path / "notes"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def launch(work: Path, notes: Path) -> Iterator[Launcher]:
    made = launcher(work)
    yield made
    made.abort()


def started(notes: Path) -> list[list[str]]:
    """Of each training: process id, mode of its work directory, that directory, slug."""
    return [line.split() for line in notes.read_text().splitlines()] if notes.exists() else []


def group(leader: int) -> list[psutil.Process]:
    """Who of a process group still runs."""
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.Error):
            if os.getpgid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_a_trial_gives_its_epochs(launch: Launcher, notes: Path, work: Path) -> None:
    measured = launch.measure(spec(), position=7)
    outcome = measured.outcome
    assert (outcome.outcome, outcome.reason, outcome.position, outcome.invocation) == ("ok", None, 7, "now")
    assert [(record.epoch, record.seconds, record.warmup) for record in outcome.records] == [
        (1, 0.01, True),
        (2, 0.02, False),
        (3, 0.03, False),
    ]
    assert {(r.run_id, r.machine, r.rows, r.session, r.outcome, r.stopped_early) for r in outcome.records} == {
        ("R", "here", 200, "shared", "ok", False)
    }
    kinds = [decode_event(line).kind for line in measured.events.splitlines()]
    assert kinds == ["begun", "epoch", "epoch", "epoch", "ended"]
    [[_, mode, folder, slug]] = started(notes)
    assert mode == "700"
    assert slug == spec().slug
    assert Path(folder).is_dir()
    launch.close()
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    ("how", "outcome", "reason", "epochs"),
    [
        ("raise", "failed", "RuntimeError: boom", 1),
        ("refuse", "failed", "memory_mib=1 is too little; ask for 2", 1),
        ("exit", "failed", "the process that trained ended with exit code 3; its last words: the last words", 1),
        ("no epoch", "failed", "steady ended without an epoch", 0),
        ("diverge", "diverged", "diverged at epoch 2", 2),
        ("taint", "tainted", "an executor was lost", 3),
        ("unavailable", "unavailable", "it is not there", 0),
    ],
)
def test_how_a_trial_ends(
    how: str, outcome: str, reason: str, epochs: int, launch: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE_HOW", how)
    measured = launch.measure(spec(), position=1)
    assert (measured.outcome.outcome, measured.outcome.reason) == (outcome, reason)
    assert len([record for record in measured.outcome.records if record.seconds is not None]) == epochs
    assert measured.outcome.records, "there is always a record, to be shown in the tables"
    assert {(record.outcome, record.reason) for record in measured.outcome.records} == {(outcome, reason)}
    assert (LOG in measured.logs) == (outcome == "failed")
    assert how != "raise" or b"Traceback" in measured.logs[LOG]


def test_fewer_epochs_than_asked_for_are_told(launch: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADE_HOW", "stop early")
    measured = launch.measure(spec(), position=1)
    assert measured.outcome.outcome == "ok"
    assert [record.stopped_early for record in measured.outcome.records] == [True]


def test_a_platform_that_is_not_there_is_a_failed_trial(launch: Launcher) -> None:
    measured = launch.measure(spec(platform="nowhere"), position=1)
    assert measured.outcome.outcome == "failed"
    assert "platform 'nowhere' is not known" in (measured.outcome.reason or "")


def test_a_trial_whose_processes_are_killed_keeps_its_epochs(
    work: Path, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE_HOW", "hang")
    heard: list[Event] = []

    def kill_after_the_second_epoch(event: Event) -> None:
        heard.append(event)
        if event.record is not None and event.record.epoch == 2 and len(started(notes)) == 1:
            os.killpg(int(started(notes)[0][0]), signal.SIGKILL)

    launch = launcher(work, listener=kill_after_the_second_epoch)
    measured = launch.measure(spec(), position=1)
    assert measured.outcome.outcome == "failed"
    assert "SIGKILL" in (measured.outcome.reason or "")
    assert [record.epoch for record in measured.outcome.records] == [1, 2]
    assert {record.outcome for record in measured.outcome.records} == {"failed"}
    assert [event.kind for event in heard] == ["begun", "epoch", "epoch", "ended"]
    monkeypatch.setenv("MADE_HOW", "")
    assert launch.measure(spec(trial=1, learning_rate=0.1), position=2).outcome.outcome == "ok"
    assert started(notes)[0][0] != started(notes)[1][0]
    launch.close()
    assert list(work.iterdir()) == []


def test_trials_of_one_session_share_a_process_within_a_block(launch: Launcher, notes: Path) -> None:
    for each in (
        spec(trial=1),
        spec(trial=1, learning_rate=0.1),
        spec(trial=1, executors=2),
        spec(trial=2, executors=2),
        spec(trial=2),
    ):
        launch.measure(each, position=1)
    first, second, third, fourth, fifth = [line[0] for line in started(notes)]
    assert first == second
    assert len({second, third, fourth, fifth}) == 4
    assert psutil.pid_exists(int(fifth))
    assert not any(psutil.pid_exists(int(each)) for each in (first, third, fourth)), "one at a time"


def test_own_sessions_have_a_process_each(work: Path, notes: Path) -> None:
    launch = launcher(work, shares_sessions=False)
    measured = [launch.measure(spec(learning_rate=rate), position=1) for rate in (0.1, 0.2)]
    assert len({line[0] for line in started(notes)}) == 2
    assert list(work.iterdir()) == []
    assert {record.session for each in measured for record in each.outcome.records} == {"own"}


def test_a_trial_that_cannot_be_starts_nothing(work: Path, notes: Path) -> None:
    heard: list[Event] = []
    measured = launcher(work, listener=heard.append).impossible(spec(), "too large", position=1)
    assert (measured.outcome.outcome, measured.outcome.reason) == ("unavailable", "too large")
    assert [record.rows for record in measured.outcome.records] == [200]
    assert [event.reason for event in heard] == ["too large"]
    assert not work.exists()


def test_what_is_not_there_is_asked_for_once(launch: Launcher, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADE_HOW", "unavailable")
    first = launch.measure(spec(), position=1)
    monkeypatch.setenv("MADE_HOW", "")
    again = launch.measure(spec(trial=2), position=2)
    assert (again.outcome.outcome, again.outcome.reason) == ("unavailable", first.outcome.reason)
    assert (again.outcome.spec.trial, again.outcome.position) == (2, 2)
    assert started(notes) == []
    assert launch.measure(spec(trial=2, learning_rate=0.1), position=3).outcome.outcome == "ok"


def test_one_that_does_not_end_is_ended(launch: Launcher, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline.launch, "STOP_SECONDS", 0.3)
    monkeypatch.setenv("MADE_HOW", "never close")
    launch.measure(spec(), position=1)
    launch.close()
    assert not psutil.pid_exists(int(started(notes)[0][0]))


def test_what_a_trial_started_ends_with_it(launch: Launcher, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADE_HOW", "with a child")
    launch.measure(spec(), position=1)
    leader = int(started(notes)[0][0])
    assert len(group(leader)) == 2
    launch.close()
    eventually(lambda: not group(leader))


def test_nothing_outlives_a_killed_run(work: Path, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADE_SLEEP", "600")
    monkeypatch.setenv("MADE_HOW", "with a child")
    code = (
        "import sys; from pathlib import Path; from tests.pipeline.test_launch import launcher, spec;"
        "launcher(Path(sys.argv[1])).measure(spec(), position=1)"
    )
    path = os.pathsep.join([str(TOP), os.environ["PYTHONPATH"]])
    run = subprocess.Popen([sys.executable, "-c", code, str(work)], env=os.environ | {"PYTHONPATH": path})
    eventually(lambda: started(notes) and len(group(int(started(notes)[0][0]))) == 2)
    leader, _, left, _ = started(notes)[0]
    run.send_signal(signal.SIGKILL)
    # Not waited for: until then the dead run keeps its process id, and its children have to see all the same.
    eventually(lambda: not group(int(leader)), seconds=30)
    run.wait()
    assert Path(left).is_dir()
    monkeypatch.setenv("MADE_SLEEP", "0")
    launch = launcher(work)
    launch.measure(spec(), position=1)
    assert not Path(left).exists(), "the next one collects what a dead run left"
    launch.close()
    assert list(work.iterdir()) == []
