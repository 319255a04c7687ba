"""Scheduled runs against a real luigid: one process trains, others leave it alone, and a killed one is continued."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from luigi.worker import KeepAliveThread

import pipeline.luigid
from tests.pipeline.place import LUIGI, PROFILE, Place, assert_one_error, eventually, finish

LUIGID = [sys.executable, "-c", "from luigi.cmdline import luigid; luigid()"]
LINE = ("--profile", "tiny", "--run-id", "R")
PATIENT_SECONDS, IMPATIENT_SECONDS = 60, 10  # after which luigid takes a silent worker for dead
ALREADY_RUNNING = 10
MINE = "".join(f"{first},{second},{int(first > second)}\n" for first in range(8) for second in range(8))


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Luigid:
    """A central scheduler on loopback, and two places that it serves, as two hosts with one store have it."""

    def __init__(self, folder: Path, *, disconnected_seconds: int = PATIENT_SECONDS) -> None:
        self.folder = folder
        self.port = free_port()
        self.asked = pipeline.luigid.Luigid(f"http://127.0.0.1:{self.port}")
        self.places = [self._place(folder / name) for name in ("one", "two")]
        (folder / "luigid").mkdir()
        # Otherwise it looks for dead workers once a minute.
        settings = f"[scheduler]\nworker_disconnect_delay = {disconnected_seconds}\nprune_on_get_work = true\n"
        (folder / "luigid" / "luigi.cfg").write_text(settings)
        self.process: subprocess.Popen[bytes] | None = None

    def _place(self, folder: Path) -> Place:
        settings = PROFILE.replace("cores = 1 2", "cores = 1").replace("trials = 2", "trials = 3")
        settings = settings.replace("synthetic:200x6x3", f"csv:{self.folder / 'mine.csv'}")
        (self.folder / "mine.csv").write_text(MINE)
        place = Place(folder, settings)
        with (folder / "luigi.cfg").open("a") as file:
            file.write(f"[yarnstick.csv]\nclasses = 2\n[yarnstick.store]\nurl = {self.folder / 'store'}\n")
            file.write("[core]\nlocal_scheduler = false\ndefault_scheduler_host = 127.0.0.1\n")
            file.write(f"default_scheduler_port = {self.port}\nrpc-retry-attempts = 1\nrpc-retry-wait = 1\n")
        place.store = self.folder / "store"
        place.notes = self.folder / "notes.txt"
        place.environment["MADE_NOTES"] = str(place.notes)
        return place

    def start(self) -> None:
        arguments = ["--address", "127.0.0.1", "--port", str(self.port), "--state-path", str(self.folder / "state")]
        with (self.folder / "luigid.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*LUIGID, *arguments],
                cwd=self.folder / "luigid",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        eventually(self.listens)

    def listens(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "luigid.log").read_text()
        with socket.socket() as asked:
            return asked.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture
def luigid(tmp_path: Path) -> Iterator[Luigid]:
    with running(Luigid(tmp_path)) as made:
        yield made


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Luigid]:
    with running(Luigid(tmp_path, disconnected_seconds=IMPATIENT_SECONDS)) as made:
        yield made


@contextmanager
def running(luigid: Luigid) -> Iterator[Luigid]:
    luigid.start()
    try:
        yield luigid
    finally:
        luigid.stop()
        for place in luigid.places:
            place.end()


def workers(asked: pipeline.luigid.Luigid) -> list[str]:
    return [each["name"] for each in asked.ask("worker_list", include_running=False)]


@contextmanager
def pinged(asked: pipeline.luigid.Luigid, *names: str) -> Iterator[None]:
    """So that luigid cannot know that they are dead."""
    pings = [KeepAliveThread(asked, name, 0.5, lambda message: None) for name in names]
    for each in pings:
        each.start()
    try:
        yield
    finally:
        for each in pings:
            each.stop()
            each.join()


def await_first_trial(place: Place, *processes: subprocess.Popen[str]) -> None:
    eventually(lambda: place.trials("R") or all(each.poll() is not None for each in processes))
    if not place.trials("R"):
        pytest.fail(finish(processes[0]).stderr)


def killed_after_a_trial(luigid: Luigid) -> tuple[int, list[str]]:
    """Its process, and the names of its workers."""
    [place, _] = luigid.places
    place.hold()
    process = place.start(*LINE, command=LUIGI)
    await_first_trial(place, process)
    names = workers(luigid.asked)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    place.go_on()
    return process.pid, names


def assert_leaves_it(done: subprocess.CompletedProcess[str], *, process: int) -> None:
    assert done.returncode == ALREADY_RUNNING, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    [sentence] = [line for line in done.stderr.splitlines() if line.startswith("run R is being measured by")]
    assert f"pid={process}, " in sentence
    assert "Asking scheduler for work" not in done.stderr


def test_one_trains_and_the_others_end_cleanly(luigid: Luigid) -> None:
    one, two = luigid.places
    one.hold()
    both = [place.start(*LINE, command=LUIGI) for place in (one, two)]
    await_first_trial(one, *both)
    late = two.run(*LINE, command=LUIGI)
    one.go_on()
    done = [finish(process) for process in both]
    trained, left = sorted(done, key=lambda each: each.returncode)
    assert trained.returncode == 0, trained.stderr
    assert "Traceback" not in trained.stdout + trained.stderr
    process = both[done.index(trained)].pid
    assert_leaves_it(left, process=process)
    assert_leaves_it(late, process=process)
    trials = one.trials("R")
    assert len(trials) == 3
    assert all(name.endswith("-a1") for name in trials)
    assert "report.html" in one.report("R")
    # Once it is over anybody may ask again, and nothing is measured.
    again = two.run(*LINE, command=LUIGI)
    assert again.returncode == 0, again.stderr
    assert one.trials("R") == trials


@pytest.mark.parametrize("comes_back", [True, False])
def test_who_asks_while_another_begins_to_ask_learns_who_has_it(luigid: Luigid, comes_back: bool) -> None:
    """The other's UNKNOWN comes between our PENDING and our asking for work; its own asking after ours, or never."""

    class Beside(pipeline.luigid.Luigid):
        asked = 0

        def ask(self, method: str, **arguments: Any) -> Any:
            if method != "get_work":
                return super().ask(method, **arguments)
            self.asked += 1
            if self.asked == 1:
                super().ask("add_task", worker="other", task_id="run", status="UNKNOWN")
            answer = super().ask(method, **arguments)
            if self.asked == 1:
                assert answer["task_id"] is None
                if comes_back:
                    super().ask("add_task", worker="other", task_id="run", status="PENDING")
                    assert super().ask("get_work", worker="other", host="elsewhere")["task_id"] == "run"
            return answer

    beside = Beside(f"http://127.0.0.1:{luigid.port}")
    assert pipeline.luigid._holder(beside, "run", "mine") == ("other" if comes_back else "mine")


def test_a_killed_one_is_continued_by_a_later_one(impatient: Luigid) -> None:
    one, two = impatient.places
    killed, names = killed_after_a_trial(impatient)
    before = one.trials("R")
    with pinged(impatient.asked, *names):
        assert_leaves_it(two.run(*LINE, command=LUIGI), process=killed)

    def continues() -> bool:
        done = two.run(*LINE, command=LUIGI)
        assert done.returncode in (0, ALREADY_RUNNING), done.stderr
        return done.returncode == 0

    eventually(continues)
    after = one.trials("R")
    assert len(after) == 3
    assert before.items() <= after.items(), "what was published is measured again by nobody"
    assert "report.html" in one.report("R")


def test_one_whose_trials_luigid_misses_later_than_its_claim_is_continued_at_once(impatient: Luigid) -> None:
    one, two = impatient.places
    [trials] = [name for name in killed_after_a_trial(impatient)[1] if name.startswith("Worker(")]

    def has_missed_the_claim() -> bool:
        impatient.asked.ping(trials)
        return workers(impatient.asked) == [trials]

    eventually(has_missed_the_claim)
    done = two.run(*LINE, command=LUIGI)
    assert done.returncode == 0, done.stderr
    assert len(one.trials("R")) == 3


def test_a_run_whose_trials_another_worker_has_is_left_to_it(luigid: Luigid) -> None:
    """As one of the same name that goes to another store."""
    [place, _] = luigid.places
    asked = luigid.asked
    asked.ask("add_task", worker="other", task_id="Trial_R", status="PENDING", family="Trial", params={"run_id": "R"})
    assert asked.ask("get_work", worker="other", host="elsewhere")["task_id"] == "Trial_R"
    with pinged(asked, "other"):
        done = place.run(*LINE, command=LUIGI)
    assert done.returncode == ALREADY_RUNNING, done.stderr
    assert "run R is being measured by other, says luigid" in done.stderr
    assert not place.trials("R")
    # It has given the run up, too.
    running = asked.ask("task_list", status="RUNNING", limit=False)
    assert list(running) == ["Trial_R"]


def test_without_luigid_it_is_one_sentence(luigid: Luigid) -> None:
    luigid.stop()
    [place, _] = luigid.places
    done = place.run(*LINE, command=LUIGI)
    assert_one_error(done, f"no luigid answers at http://127.0.0.1:{luigid.port} (connection refused)", "start it")
    assert not place.store.exists()
    alone = place.run(*LINE, "--local-scheduler", command=LUIGI)
    assert alone.returncode == 0, alone.stderr


def test_a_luigid_that_ends_is_one_sentence_and_the_same_command_continues(luigid: Luigid) -> None:
    [place, _] = luigid.places
    place.hold()
    process = place.start(*LINE, command=LUIGI)
    await_first_trial(place, process)
    luigid.stop()
    place.go_on()
    done = finish(process)
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    [error] = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert "luigid went away" in error
    before = place.trials("R")
    luigid.start()
    again = place.run(*LINE, command=LUIGI)
    assert again.returncode == 0, again.stderr
    assert before.items() <= place.trials("R").items()


def test_an_address_with_a_password_is_told_without_it(luigid: Luigid) -> None:
    [place, _] = luigid.places
    secret = ("--scheduler-url", f"http://me:canary@127.0.0.1:{free_port()}")
    done = place.run(*LINE, *secret, command=LUIGI)
    assert_one_error(done, "no luigid answers at http://127.0.0.1:")
    assert "canary" not in done.stdout + done.stderr


def test_luigid_is_not_asked_through_a_proxy(luigid: Luigid) -> None:
    """Neither by us nor by Luigi itself."""
    [place, _] = luigid.places
    nobody = f"http://127.0.0.1:{free_port()}"
    proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"), nobody)
    done = place.run(*LINE, command=LUIGI, **proxies, no_proxy="", NO_PROXY="elsewhere.example.org")
    assert done.returncode == 0, done.stderr
    assert len(place.trials("R")) == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, "luigid.lan"),
        ({"no_proxy": "a.lan,luigid.lan"}, "a.lan,luigid.lan"),
        ({"no_proxy": "a.lan", "NO_PROXY": "b.lan"}, "a.lan,luigid.lan"),
        ({"NO_PROXY": "b.lan,c.lan"}, "b.lan,c.lan,luigid.lan"),
    ],
)
def test_what_else_needs_no_proxy_stays(before: dict[str, str], after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in before.items():
        monkeypatch.setenv(name, value)
    pipeline.luigid._ask_directly("luigid.lan")
    assert os.environ["no_proxy"] == after


def test_a_date_is_a_run_id(luigid: Luigid) -> None:
    """As a crontab's $(date +%F) gives it; the shell is a real one."""
    [place, _] = luigid.places
    before = datetime.now().astimezone().date()
    line = " ".join([*LUIGI, "--profile tiny --run-id $(date +%F) --local-scheduler"])
    done = place.run(command=["sh", "-c", line])
    assert done.returncode == 0, done.stderr
    days = {str(before), str(datetime.now().astimezone().date()), str(datetime.now(UTC).date())}
    [run] = place.runs()
    assert run in days
