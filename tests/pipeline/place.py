"""A working directory of its own, from which the real commands are started as a user does."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

TOP = Path(__file__).parent.parent.parent
DEADLINE_SECONDS = 240
YARNSTICK = [sys.executable, "-c", "from pipeline.cli import main; main()"]
LUIGI = [sys.executable, "-m", "luigi", "--module", "pipeline.tasks", "Report"]
PROFILE = """
[yarnstick]
noisy_share = 1
noisy_repeats = 0
probe_seconds = 0
lease = lease.lock

[profile.tiny]
datasets = synthetic:200x6x3
networks = mlp:*-8-*
platforms = steady
executors = 1
cores = 1 2
partitions = 2
threads = 1
fractions = 1.0
epochs = 2
trials = 2
"""


class Place:
    def __init__(self, folder: Path, settings: str = PROFILE) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._started: list[subprocess.Popen[str]] = []
        self.notes = folder / "notes.txt"
        self.fails = folder / "fails"
        self.store = folder / "build" / "store"
        self.environment = {key: value for key, value in os.environ.items() if key != "LUIGI_CONFIG_PATH"}
        self.environment |= {
            "PYTHONPATH": os.pathsep.join([str(TOP), str(install(folder / "packages"))]),
            "MADE_NOTES": str(self.notes),
            "MADE_FAILS": str(self.fails),
        }
        if settings:
            (folder / "luigi.cfg").write_text(settings)

    def start(self, *arguments: str, command: list[str] = YARNSTICK, **environment: str) -> subprocess.Popen[str]:
        """In a process group of its own, which can be killed as a whole."""
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=self.folder,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def end(self) -> None:
        """What a test left running when it failed would disturb the next one."""
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    def run(
        self, *arguments: str, command: list[str] = YARNSTICK, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return finish(self.start(*arguments, command=command, **environment))

    def run_on_terminal(self, *arguments: str, columns: int, **environment: str) -> str:
        """What a person at a terminal of that width sees, control characters and all."""
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [*YARNSTICK, *arguments],
            cwd=self.folder,
            env=self.environment | {"TERM": "xterm", "COLUMNS": str(columns)} | environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        shown = b""
        try:
            while chunk := os.read(master, 1 << 16):
                shown += chunk
        except OSError:  # how Linux says that the other end was closed
            pass
        os.close(master)
        process.wait(DEADLINE_SECONDS)
        return shown.decode()

    def hold(self, *, after: int = 1) -> None:
        """Of the platforms made here, so many trainings more: the next one waits for `go_on`."""
        self.notes.with_name("most").write_text(str(len(self.trained()) + after))

    def go_on(self) -> None:
        self.notes.with_name("most").unlink()

    def trained(self) -> list[str]:
        """The slug of each training that was begun, in order."""
        return [line.split()[3] for line in self.notes.read_text().splitlines()] if self.notes.exists() else []

    def trials(self, run_id: str) -> dict[str, tuple[int, int]]:
        """Each published trial, with what tells whether its outcome was ever written again."""
        folder = self.store / "runs" / run_id / "trials"
        found = [path for path in folder.iterdir() if not path.name.startswith(".")] if folder.is_dir() else []
        stats = {path.name: (path / "outcome.json").stat() for path in found}
        return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}

    def runs(self) -> list[str]:
        folder = self.store / "runs"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def report(self, run_id: str) -> dict[str, bytes]:
        """Every file of the report."""
        folder = self.store / "runs" / run_id / "report"
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def outcome(self, run_id: str, slug: str) -> dict[str, object]:
        loaded: dict[str, object] = json.loads(
            (self.store / "runs" / run_id / "trials" / slug / "outcome.json").read_text()
        )
        return loaded


def install(packages: Path) -> Path:
    """made_platform.py as an installed package with entry points; the folder belongs on PYTHONPATH."""
    about = packages / "made_platform-1.0.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("made_platform.py"), packages)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: made-platform\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[yarnstick.platforms]\nsteady = made_platform:Steady\nfickle = made_platform:Fickle\n"
    )
    return packages


def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    try:
        output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def kill_whole(process: subprocess.Popen[Any]) -> None:
    """With all its children at once: none sees another one's end, and none is left when this returns."""
    whole = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for each in whole:
        each.suspend()
    for each in whole:
        each.kill()
    eventually(lambda: not any(map(_lives, whole)))  # the kernel takes their memory back first


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def eventually(is_so: Callable[[], object], *, seconds: float = DEADLINE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def run_named(output: str) -> str:
    """The id of the run that a command said it begins or continues."""
    said = re.search(r"^run (\S+) ", output, re.MULTILINE)
    assert said, output
    return said[1]


def assert_one_error(done: subprocess.CompletedProcess[str], *words: str, code: int = 1) -> None:
    assert done.returncode == code, done.stderr
    assert re.fullmatch(r"Error: [^\n]+\n", done.stderr), done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    for word in words:
        assert word in done.stderr
