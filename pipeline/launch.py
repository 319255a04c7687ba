"""Starts the processes that train, follows their events, and makes an outcome of them whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from models.outcome import EVENT_LOGS, LOG, Outcome
from models.protocol import Surroundings
from models.record import EpochRecord
from models.run import Event, Session, base_record, decode_event, encode_session
from models.spark_home import python_path
from models.spec import TrialSpec
from store.local import LocalStore
from store.publish import temporary_name
from yarn.crowding import Crowding

POLL_SECONDS = 0.1
STOP_SECONDS = 20.0
LOG_TAIL_BYTES = 1 << 16
DEATHS: dict[int, str] = {
    signal.SIGKILL: "SIGKILL: somebody ended it, or the system did because memory ran out",
    signal.SIGSEGV: "SIGSEGV, a fault inside a library",
    signal.SIGTERM: "SIGTERM: somebody ended it",
}
TOP = Path(__file__).parent.parent

Listener = Callable[[Event], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came of an attempt, and the files that prove it."""

    outcome: Outcome
    events: bytes
    logs: dict[str, bytes]  # Spark's event log as far as it was written, by its path; the last output of a failed one


class Launcher:
    """Keeps one child process at a time: the next trial goes to it if it is of the same session, else to a new one."""

    def __init__(
        self,
        *,
        session: Session,
        shares_sessions: bool,
        work: Path,
        invocation: str,
        listener: Listener,
    ) -> None:
        self._session = session
        self._shares = shares_sessions
        self._work = work
        self._invocation = invocation
        self._listener = listener
        self._child: _Child | None = None
        self._unavailable: dict[str, str] = {}  # configurations that were not to be had, and why

    def measure(self, spec: TrialSpec, *, position: int) -> Measured:
        if why := self._unavailable.get(spec.configuration):  # not asked again by a process of its own for each block
            return self.impossible(spec, why, position=position)
        child = self._child_for(spec)
        child.give(spec)
        events = list(self._follow(child, spec))
        ended = events[-1] if events and events[-1].kind == "ended" else None
        if ended is None:
            reason = child.cause_of_death()
            ended = Event(kind="ended", slug=spec.slug, outcome="failed", reason=reason)
            self._listener(ended)
            events.append(ended)
        if ended.outcome == "unavailable" and ended.reason:
            self._unavailable[spec.configuration] = ended.reason
        outcome = self._outcome(spec, [event.record for event in events if event.record], ended, position)
        written = b"".join(msgspec.json.encode(event) + b"\n" for event in events)
        logs = {f"{EVENT_LOGS}/{name}": log for name, log in child.event_logs().items()}
        if outcome.outcome == "failed":
            logs[LOG] = child.last_output()
        measured = Measured(outcome=outcome, events=written, logs=logs)
        if not self._shares or not child.is_alive():
            self.close()
        return measured

    def impossible(self, spec: TrialSpec, reason: str, *, position: int) -> Measured:
        """The outcome of a trial that this machine cannot do: nothing is started for it."""
        ended = Event(kind="ended", slug=spec.slug, outcome="unavailable", reason=reason)
        self._listener(ended)
        return Measured(outcome=self._outcome(spec, [], ended, position), events=b"", logs={})

    def close(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def abort(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _child_for(self, spec: TrialSpec) -> _Child:
        key = (spec.session, spec.trial)  # a session is shared within a block only
        if self._child is not None and (self._child.key != key or not self._child.is_alive()):
            self.close()
        if self._child is None:
            is_elsewhere = spec.resources.deploy_mode == "cluster" and self._session.surroundings.yarn is not None
            module = "models.cluster_mode" if is_elsewhere else "models.run"
            self._child = _Child(key, self._session, self._work, module=module)
        return self._child

    def _follow(self, child: _Child, spec: TrialSpec) -> Iterator[Event]:
        while True:
            alive = child.is_alive()  # before the read: what it wrote before its death is read too
            for event in child.new_events():
                if event.slug == spec.slug:
                    self._listener(event)
                    yield event
                    if event.kind == "ended":
                        return
            if not alive:
                return
            time.sleep(POLL_SECONDS)

    def _outcome(self, spec: TrialSpec, records: list[EpochRecord], ended: Event, position: int) -> Outcome:
        session = self._session
        if not records:
            bare = base_record(spec, run_id=session.run_id, machine=session.machine, surroundings=session.surroundings)
            records = [
                replace(
                    bare,
                    machine_memory_gb=session.machine_memory_gb,
                    rows=session.datasets[spec.data].rows(spec.data_fraction),
                )
            ]
        outcome = ended.outcome or "failed"
        stopped_early = outcome == "ok" and len(records) < spec.hyperparameters.epochs
        return Outcome(
            spec=spec,
            outcome=outcome,
            reason=ended.reason,
            noisy=ended.noisy,
            invocation=self._invocation,
            position=position,
            note=ended.note,
            records=tuple(
                replace(
                    record,
                    outcome=outcome,
                    reason=ended.reason,
                    noisy=ended.noisy,
                    noise=ended.noise,
                    other_load=ended.other_load,
                    stopped_early=stopped_early,
                    **_others(ended.crowding),
                )
                for record in records
            ),
            noise=ended.noise,
            crowding=ended.crowding,
        )


def _others(crowding: Crowding | None) -> dict[str, Any]:
    """What the records of a trial on YARN say of those who were there too."""
    if crowding is None:
        return {}
    return {
        "others_vcores_before": crowding.vcores.before,
        "others_vcores": crowding.vcores.mean,
        "nodes_vcores": crowding.nodes_vcores,
        "queue_used_by_others": crowding.queue.mean if crowding.queue else None,
    }


class _Child:
    """One process of `models.run`, in a process group of its own so that its JVMs end with it."""

    def __init__(self, key: object, session: Session, work: Path, *, module: str) -> None:
        self.key = key
        LocalStore(work).collect()
        self._folder = work / temporary_name()
        self._folder.mkdir(parents=True, mode=0o700)
        self._archives = self._folder / "eventlogs"
        self._ends_applications = session.surroundings.yarn is not None
        surroundings: Surroundings = replace(session.surroundings, work=self._folder, archives=self._archives)
        self._specs = (self._folder / "specs.jsonl").open("ab", buffering=0)
        self._specs.write(encode_session(replace(session, surroundings=surroundings)))
        events = self._folder / "events.jsonl"
        events.touch()
        self._events: BinaryIO = events.open("rb")
        self._rest = b""
        self._log = self._folder / "log.txt"
        # Ours come first: a models.py of the user's own must not hide them. Then what a user's own network is found in.
        home = surroundings.spark_home
        of_spark = python_path(home) if home else []
        path = os.pathsep.join(filter(None, [str(TOP), *of_spark, os.environ.get("PYTHONPATH", ""), str(Path.cwd())]))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(self._folder / "specs.jsonl"), str(events)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path, **({"SPARK_HOME": str(home)} if home else {})},
            )

    def give(self, spec: TrialSpec) -> None:
        self._specs.write(spec.encode().encode() + b"\n")

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def new_events(self) -> list[Event]:
        *lines, self._rest = (self._rest + self._events.read()).split(b"\n")
        return [decode_event(line) for line in lines]

    def event_logs(self) -> dict[str, bytes]:
        """Spark's own files about this session, as far as they are written."""
        files = sorted(path for path in self._archives.rglob("*events_*") if path.is_file())
        return {path.relative_to(self._archives).as_posix(): path.read_bytes() for path in files}

    def cause_of_death(self) -> str:
        lines = self.last_output().decode("utf-8", "replace").strip().splitlines()
        code = self._process.wait()
        how = DEATHS.get(-code, f"signal {-code}") if code < 0 else f"exit code {code}"
        return f"the process that trained ended with {how}" + (f"; its last words: {lines[-1]}" if lines else "")

    def last_output(self) -> bytes:
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - LOG_TAIL_BYTES))
            return log.read()

    def end(self) -> None:
        """Let it close what its trials shared; then it is gone, one way or the other."""
        if self.is_alive():
            self._specs.write(b'"end"\n')
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        if self._ends_applications:
            # On YARN something would stay behind: it is given the time to end that.
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._specs.close()
        self._events.close()
        shutil.rmtree(self._folder, ignore_errors=True)
