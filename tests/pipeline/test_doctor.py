"""`yarnstick doctor`: every check on this machine, and each made to fail by a real fault, with what to do about it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.checks import machine, places, programs
from pipeline.checks.check import Check, bad, checked, fine
from pipeline.config import read_settings
from pipeline.doctor import line
from pipeline.experiment import Experiment
from pipeline.lease import measuring_lease
from pipeline.settings import Settings
from store.errors import DataError
from tests.pipeline.conftest import Finished
from tests.pipeline.place import TOP, Place

NO_PROCESS = 2**22 + 1  # above the largest id that Linux gives


@pytest.fixture
def configured(place: Place, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Settings of a place, in this process, with its platforms of another package."""
    monkeypatch.chdir(place.folder)
    monkeypatch.syspath_prepend(place.folder / "packages")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return lambda *overrides: read_settings("tiny", overrides=overrides)


def examined(place: Place, *arguments: str, **environment: str) -> tuple[dict[str, dict[str, object]], int]:
    done = place.run("doctor", "--json", *arguments, **environment)
    assert done.stderr == ""
    return {each["check"]: each for each in json.loads(done.stdout)}, done.returncode


def java_that_says(folder: Path, *, version: str = "17.0.1", bits: str = "64", modules: str = programs.MODULE) -> None:
    """A small real program on PATH in Java's place."""
    folder.mkdir()
    shown = f"    java.version = {version}\n    java.vendor = Made\n    sun.arch.data.model = {bits}"
    program = folder / "java"
    program.write_text(f'#!/bin/sh\ncase "$1" in --list-modules) echo "{modules}@17";; *) echo "{shown}" >&2;; esac\n')
    program.chmod(0o755)


def test_a_profile_without_spark_is_checked_all_through(finished: Finished) -> None:
    found, code = examined(finished.place, "--profile", "tiny")
    failed = {name for name, check in found.items() if not check["ok"]}
    assert failed <= {"other load"}, "whoever else uses this machine is no matter of this test"
    assert code == bool(failed)
    assert all(set(check) == {"check", "ok", "detail", "advice"} for check in found.values())
    assert found["settings files"]["detail"].endswith(str(finished.place.folder / "luigi.cfg"))  # type: ignore[attr-defined]
    assert "synthetic:200x6x3, 200 and 40 rows of 6 columns, 3 classes: packed" in str(found["dataset"]["detail"])
    assert "GFLOP/s in float32 with 1 thread" in str(found["matrix product"]["detail"])
    assert str(found["measuring lease"]["detail"]).startswith("free")
    assert found.keys() >= {"python", "java", "store", "disk", "leftovers", "clock", "blas", "cuda", "other load"}
    assert "spark" not in found, "no platform of this profile needs it"
    assert finished.place.runs() == ["R"]
    assert sorted(path.name for path in finished.place.store.iterdir()) == ["data", "history", "runs"], "nothing stays"


@pytest.mark.spark
@pytest.mark.skipif(shutil.which("java") is None, reason="no java on PATH")
@pytest.mark.timeout(600)
def test_a_real_spark_session_is_begun_and_ended(
    configured: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    monkeypatch.setattr(programs, "SPARK_SECONDS", 500)  # a busy machine is no matter of this test
    settings = configured("profile.tiny.memory_mib=1024")
    found = programs.spark(settings)
    assert found.ok, found.detail
    assert "a session with one executor in " in found.detail
    assert "BLAS" in found.detail
    assert list((settings.main.cache / "work").iterdir()) == []
    assert programs.archives(settings).advice == "python -m pipeline.warm makes them, as set-up does"


def test_a_failed_check_is_exit_code_1_and_a_line_with_what_to_do(place: Place) -> None:
    done = place.run("doctor", "--profile", "tiny", "--set", "profile.tiny.executors=4096")
    assert done.returncode == 1
    assert done.stderr == ""
    [told] = [text for text in done.stdout.splitlines() if text.startswith("FAIL  cores and memory  ")]
    assert "steady: executors=4096" in told
    assert told.endswith("lower the values of profile.tiny, or give several to sweep")
    assert "\nok    python " in f"\n{done.stdout}"


def test_settings_that_cannot_be_read_do_not_hide_the_rest(place: Place) -> None:
    found, code = examined(place, "--profile", "tiny", "--set", "sed=3")
    assert code == 1
    assert [name for name, check in found.items() if not check["ok"]] == ["settings"]
    assert "the nearest is" in f"{found['settings']['detail']}; {found['settings']['advice']}"
    assert {"python", "java"} <= found.keys()


def test_while_a_trial_is_measured_nothing_disturbs_it(place: Place) -> None:
    with measuring_lease(place.folder / "lease.lock", waiting=pytest.fail):
        found, code = examined(place, "--profile", "tiny")
    assert code == 0
    assert f"held by process {os.getpid()} (" in str(found["measuring lease"]["detail"])
    for name in ("other load", "matrix product"):
        assert "a trial is being measured" in str(found[name]["detail"])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"version": "11.0.2"}, "Java 11.0.2"),
        ({"version": "1.8.0_402"}, "Java 1.8.0_402"),
        ({"bits": "32"}, "has 32 bits"),
        ({"modules": "java.base"}, "has no module jdk.incubator.vector: it is a trimmed one"),
    ],
)
def test_a_java_that_spark_cannot_use_is_named(
    said: dict[str, str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java_that_says(tmp_path / "bin", **said)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    needed, spared = programs.java(needed=True), programs.java(needed=False)
    assert (needed.ok, spared.ok) == (False, True)
    assert words in needed.detail
    assert "install Java 17 or newer" in str(needed.advice)
    assert "no platform of this profile needs it" in spared.detail


def test_java_home_wins_and_its_absence_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java_that_says(tmp_path / "bin", version="21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert programs.java(needed=True).detail.startswith("Java 21.0.1 (Made)")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    assert "does not run" in programs.java(needed=True).detail
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert "no java on PATH" in programs.java(needed=True).detail


def test_a_spark_that_does_not_start_says_its_last_words(
    configured: Callable[..., Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java ends at once."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho no such luck >&2\nexit 7\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    settings = configured()
    found = programs.spark(settings)
    assert not found.ok
    assert "starts no session: its process ended with exit code 1: " in found.detail
    assert "\n" not in found.detail
    assert list((settings.main.cache / "work").iterdir()) == []


def test_a_store_that_cannot_be_written_fails(configured: Callable[..., Settings], place: Place) -> None:
    place.store.parent.mkdir(parents=True)
    place.store.write_text("a file where a directory has to be")
    found = checked("store", lambda: places.keeping(configured()))
    assert not found.ok
    assert str(place.store) in found.detail


def test_a_full_disk_is_told_before_the_run(
    configured: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = configured()
    assert places.disk(settings).ok
    monkeypatch.setattr(places, "SPARE_BYTES", 2**62)
    short = places.disk(settings)
    assert not short.ok
    assert "make room, or move" in str(short.advice)


def test_data_that_is_missing_or_not_here_yet(configured: Callable[..., Settings], place: Place) -> None:
    missing = f"csv:{place.folder / 'missing.csv'}"
    found = checked("dataset", lambda: places.dataset(missing, configured()))
    assert not found.ok
    assert "missing.csv" in found.detail
    mnist = places.dataset("mnist", configured())
    assert mnist.ok
    assert "not here yet" in mnist.detail
    assert "yarnstick data mnist" in str(mnist.advice)
    unknown = checked("dataset", lambda: places.dataset("mnits", configured()))
    assert (unknown.ok, "known are mnist" in f"{unknown.detail}; {unknown.advice}") == (False, True)


def test_what_dead_processes_left_is_found(configured: Callable[..., Settings], place: Place) -> None:
    settings = configured()
    assert places.left(settings).detail == "none"
    folder = place.folder / "build" / "cache" / "work" / f".tmp.{os.uname().nodename}.{NO_PROCESS}.a"
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(bytes(10))
    note = places.left(settings)
    assert (note.ok, note.advice) == (True, "yarnstick runs clean")
    assert "1 leftover of dead processes, 10 bytes" in note.detail
    orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", str(folder / "specs.jsonl")])
    try:
        found = places.left(settings)
        assert not found.ok
        assert found.advice == f"end with kill {orphan.pid}"
    finally:
        orphan.kill()
        orphan.wait()


def test_a_busy_machine_names_who_keeps_it_busy(
    configured: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own processes do not count, so the busy one is started by a shell that has ended."""
    busy = "import time; end = time.monotonic() + 120\nwhile time.monotonic() < end: pass"
    script = '"$0" -c "$1" >/dev/null 2>&1 & echo $!'
    started = subprocess.run(
        ["sh", "-c", script, sys.executable, busy],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        start_new_session=True,
    )
    monkeypatch.setattr(machine, "NAMED", 1000)
    try:
        found = machine.load(configured("noisy_share=0.01"))
    finally:
        os.kill(int(started.stdout), signal.SIGKILL)
    assert not found.ok
    assert f"({started.stdout.strip()}: " in found.detail
    assert "close it, or trials" in str(found.advice)


def test_the_lease_file_that_cannot_be_is_a_failed_check(configured: Callable[..., Settings]) -> None:
    found = checked("lease", lambda: places.lease(configured("lease=luigi.cfg/lock")))
    assert not found.ok
    assert "yarnstick.lease" in found.detail


def test_exit_codes_that_are_not_set_are_ours(configured: Callable[..., Settings], place: Place) -> None:
    assert "unhandled_exception to us" in places.exit_codes().detail
    with (place.folder / "luigi.cfg").open("a") as file:
        file.write("\n[retcode]\n" + "".join(f"{name} = 3\n" for name in places.EXIT_CODES))
    assert places.exit_codes().detail == "all are set in [retcode]"


def test_a_profile_that_fits_only_in_part_is_a_note(configured: Callable[..., Settings]) -> None:
    note = machine.room(Experiment(configured("profile.tiny.cores=1 4096"), "doctor"))
    assert (note.ok, note.word) == (True, "note")
    assert "1 of 2 configurations cannot run here: executors=1 x cores=4096" in note.detail


@pytest.mark.parametrize(
    ("check", "word"), [(fine("a"), "ok"), (fine("a", advice="b"), "note"), (bad("a", advice="b"), "FAIL")]
)
def test_a_check_is_one_line(check: Check, word: str) -> None:
    assert check.word == word
    assert line(checked("name", lambda: check)).split() == [word, "name", *(["a;", "b"] if check.advice else ["a"])]


def test_a_check_that_breaks_fails_alone() -> None:
    def broken() -> Check:
        raise RuntimeError("boom\nand more")

    def refused() -> Check:
        raise DataError("the file is bad; mend it")

    found = checked("broken", broken)
    assert (found.ok, found.detail) == (False, "RuntimeError: boom and more")
    told = checked("refused", refused)
    assert (told.ok, told.detail, told.advice) == (False, "the file is bad", "mend it")
