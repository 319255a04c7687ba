"""Processes by id and start: an id alone may be somebody else's by now."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# In the environment of each daemon, and through NodeManagers of each container: whose it is, and which daemon's.
MEMBER = "YARNSTICK_CLUSTER_MEMBER"
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    pid: int
    started: str  # the kernel's ticks since boot, and which boot: no step of the clock changes them

    def is_alive(self) -> bool:
        return started(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        # Between check and signal it may end; its id is not given away again within that moment.
        if self.is_alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def started(pid: int) -> str | None:
    """When a process started; None where there is none, or only its exit status is left."""
    try:
        # The name of the command stands in parentheses and may hold anything, these included.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Its first thread may have ended while the others still hold its ports.
    has_ended = fields[0] in "ZX" and int(fields[17]) <= 1
    return None if has_ended else f"{fields[19]}@{boot}"


def start(command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path) -> Process:
    """A process in a session of its own, which outlives ours."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=directory,
            env=dict(environment),
            start_new_session=True,
        )
    # Its id stays taken until somebody waits for it, so that it can be looked at safely.
    since = started(process.pid) or "ended"
    threading.Thread(target=process.wait, daemon=True).start()
    return Process(pid=process.pid, started=since)


def end(processes: Iterable[Process], *, patience: float) -> list[Process]:
    """Ask them to end, wait, then kill; returns those that had to be killed."""
    asked = [process for process in processes if process.is_alive()]
    for process in asked:
        process.signal(signal.SIGTERM)
    stubborn = wait_for_end(asked, patience=patience)
    for process in stubborn:
        process.signal(signal.SIGKILL)
    wait_for_end(stubborn, patience=patience)
    return stubborn


def wait_for_end(processes: Iterable[Process], *, patience: float) -> list[Process]:
    """Those that are still there after so many seconds."""
    gives_up = time.monotonic() + patience
    living = [process for process in processes if process.is_alive()]
    while living and time.monotonic() < gives_up:
        time.sleep(POLL_SECONDS)
        living = [process for process in living if process.is_alive()]
    return living


def members(mark: str) -> list[Process]:
    """All living processes whose mark begins so: those that we started and those that they did, containers too."""
    begin = f"{MEMBER}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # Of other users nothing can be read; they are not ours.
            with suppress(OSError):
                since = started(int(entry.name))
                variables = (entry / "environ").read_bytes().split(b"\0")
                if since is not None and any(variable.startswith(begin) for variable in variables):
                    found.append(Process(pid=int(entry.name), started=since))
    return found
