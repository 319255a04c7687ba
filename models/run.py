"""The process that trains: specs in, one a line; events out, appended one a line as they happen.

`python -m models.run SPECS EVENTS`. The first line of SPECS is the session, each further one a trial, until
`"end"`. Who starts it appends trials as it goes, so that none begins before the last one's outcome is kept.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from socket import gethostname
from typing import Any

import msgspec

from models.channel import Channel, Files
from models.dataset import Dataset
from models.noise import noise, plain
from models.own_code import own_code
from models.probes import SESSION, OtherLoad, Peak, cpu_name, peak_key, usable_cores
from models.protocol import Epoch, Platform, Surroundings, TaintedError, Yarn, platform
from models.record import COLUMNS, EpochRecord
from models.spec import TrialSpec
from models.whereabouts import computes_here
from store.errors import YarnstickError
from store.retry import Patience
from yarn.crowd import Crowd
from yarn.crowding import Crowding
from yarn.resource_manager import ResourceManager
from yarn.submission import end_all, session_tag

PARENT_SECONDS = 0.5
LOOKING_SECONDS = 5.0
# What a record takes over from the platform as it is.
MEASURED = tuple(
    field.name for field in fields(Epoch) if field.name in COLUMNS and field.name not in ("tainted", "versions")
)
VERSIONED = ("yarnstick", "pyspark", "torch", "numpy", "pyarrow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What all trials of one child process have in common."""

    run_id: str
    machine: str
    machine_memory_gb: float
    commit: str | None
    session: str  # own | shared
    noisy_cores: float  # other load above this makes a trial noisy
    datasets: dict[str, Dataset]  # by the slug of their data
    surroundings: Surroundings
    parent: int  # ends with it
    peaks: tuple[Peak, ...] = ()  # of the machine's matrix product, for the floor of every epoch
    quiet_share: float = 1.0  # on YARN: others with more of the vcores of its nodes make a trial noisy
    quiet_seconds: float = 0.0  # on YARN: how long a trial waits for others to have less


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the channel."""

    kind: str  # waits | begun | epoch | ended
    slug: str
    record: EpochRecord | None = None
    outcome: str | None = None
    reason: str | None = None
    note: str | None = None
    other_load: float | None = None
    noisy: bool = False
    noise: str | None = None
    crowding: Crowding | None = None


def main(specs: Path, events: Path) -> None:
    os.environ[SESSION] = uuid.uuid4().hex
    signal.signal(signal.SIGTERM, lambda *_: end_group())
    serve(Files(specs, events))


def serve(channel: Channel) -> None:
    """Train what is asked for, one trial after the other."""
    lines = channel.specs()
    session = decode_session(next(lines))
    _end_with(session.parent)
    platforms: dict[str, Platform] = {}
    try:
        for line in lines:
            for event in _trial(TrialSpec.decode(line), session, platforms):
                channel.tell(msgspec.json.encode(event))
    finally:
        for each in platforms.values():
            each.close()


def base_record(spec: TrialSpec, *, run_id: str, machine: str, surroundings: Surroundings | None = None) -> EpochRecord:
    """The identity of a trial's records; all that is known of a trial that did not run.

    On how many machines YARN or Spark's own manager puts executors, they decide anew for each application: it is null,
    as repeats of one configuration would else be several.
    """
    r, h = spec.resources, spec.hyperparameters
    is_one = (
        surroundings is None or r.executors is None or (surroundings.yarn is None and surroundings.spark_url is None)
    )
    return EpochRecord(
        run_id=run_id,
        unit="epoch",
        machine=machine,
        dataset=spec.dataset,
        network=spec.network.name,
        platform=spec.platform,
        solver=h.solver,
        learning_rate=h.learning_rate,
        precision=h.precision,
        gradient=h.gradient,
        compression=h.compression,
        initial_weights=h.initial_weights,
        batch_size=h.batch_size,
        data_fraction=spec.data_fraction,
        partitions=r.partitions,
        executors=r.executors,
        cores=r.cores,
        memory_mib=r.memory_mib,
        workers=r.workers or (1 if is_one else None),
        nodes=1 if is_one else None,
        threads=r.threads,
        deploy_mode=r.deploy_mode,
        device=r.device,
        balance=r.balance,
        shards=r.shards,
        staleness=h.staleness,
        trial=spec.trial,
        attempt=spec.attempt,
        seed=spec.seed,
        parameters=spec.network.parameters,
        epochs_requested=h.epochs,
        outcome="ok",
    )


def _trial(spec: TrialSpec, session: Session, platforms: dict[str, Platform]) -> Iterator[Event]:
    crowd = _crowd(spec, session.surroundings.yarn)
    if crowd is not None:
        yield from _waiting(spec, session, crowd)
    yield Event(kind="begun", slug=spec.slug)
    if crowd is not None:
        crowd.begin()
    load = OtherLoad(session.parent)
    outcome, reason, note = "ok", None, None
    base = _record(spec, session)
    try:
        if spec.platform not in platforms:
            platforms[spec.platform] = platform(spec.platform)(session.surroundings)
        trainer = platforms[spec.platform]
        if why := trainer.unavailable(spec):
            outcome, reason = "unavailable", why
        else:
            epoch = None
            for epoch in trainer.train(spec, session.datasets[spec.data]):
                note = note or epoch.note
                if epoch.tainted:
                    outcome, reason = "tainted", epoch.tainted
                yield Event(kind="epoch", slug=spec.slug, record=_epoch_record(spec, base, epoch))
                if epoch.loss is not None and not math.isfinite(epoch.loss):
                    outcome, reason = "diverged", f"diverged at epoch {epoch.epoch}"
                    break
            if epoch is None:
                outcome, reason = "failed", f"{spec.platform} ended without an epoch"
    except TaintedError as error:
        outcome, reason = "tainted", str(error)
    except YarnstickError as error:
        outcome, reason = "failed", str(error)
    except Exception as error:
        traceback.print_exc()
        outcome, reason = "failed", f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"
    other = load.cores()
    crowding = crowd.end() if crowd is not None else None
    why_noisy = noise(
        other_load=other, quiet_cores=session.noisy_cores, crowding=crowding, quiet_share=session.quiet_share
    )
    yield Event(
        kind="ended",
        slug=spec.slug,
        outcome=outcome,
        reason=reason,
        note=note,
        other_load=other,
        noisy=why_noisy is not None,
        noise=why_noisy,
        crowding=crowding,
    )


def _crowd(spec: TrialSpec, yarn: Yarn | None) -> Crowd | None:
    """None where nothing of the trial runs on YARN, or nothing says where that is: the trial will find out itself."""
    session = os.environ.get(SESSION)
    if yarn is None or spec.resources.executors is None or not session:
        return None
    manager = _manager(yarn)
    return None if manager is None else Crowd(manager, ours=session_tag(session), queue=yarn.queue)


def _manager(yarn: Yarn) -> ResourceManager | None:
    """To look: what is not answered is left out, and nobody waits for it."""
    access = replace(yarn.reach.access, patience=Patience(seconds=0), read_seconds=LOOKING_SECONDS)
    with suppress(YarnstickError):
        return ResourceManager.of(yarn.resource_managers, access)
    return None


def _waiting(spec: TrialSpec, session: Session, crowd: Crowd) -> Iterator[Event]:
    """Until others have little, or for as long as is asked for; it is said once."""
    deadline = time.monotonic() + session.quiet_seconds
    told = False
    while time.monotonic() < deadline:
        present = crowd.present()
        if present is None or present.share <= session.quiet_share:
            return
        if not told:
            where = "of its nodes" if present.is_ours else "of the cluster"
            yield Event(
                kind="waits",
                slug=spec.slug,
                note=f"waits for the cluster, at most {session.quiet_seconds:g} s: others have {plain(present.vcores)} "
                f"of {plain(present.of)} vcores {where}",
            )
            told = True
        time.sleep(min(crowd.pause_seconds, max(0.0, deadline - time.monotonic())))


def _record(spec: TrialSpec, session: Session) -> EpochRecord:
    return replace(
        base_record(spec, run_id=session.run_id, machine=session.machine, surroundings=session.surroundings),
        machine_memory_gb=session.machine_memory_gb,
        rows=session.datasets[spec.data].rows(spec.data_fraction),
        session=session.session,
        host=gethostname(),
        cpu=cpu_name(),
        versions=json.dumps(_versions()),
        commit=session.commit,
        started_at=datetime.now(UTC),
        peak_flops=_peak_flops(spec, session),
    )


def _epoch_record(spec: TrialSpec, base: EpochRecord, epoch: Epoch) -> EpochRecord:
    # What a platform does not say stays as it is known without it, as the number of parameters.
    measured: dict[str, Any] = {name: value for name in MEASURED if (value := getattr(epoch, name)) is not None}
    return replace(
        base,
        **(measured | epoch.ledger),
        floor_seconds=_floor_seconds(spec, epoch, base.peak_flops),
        warmup=epoch.epoch == 1,
        tainted=epoch.tainted is not None,
        versions=json.dumps(_versions() | own_code(spec.network) | epoch.versions),  # only now all is imported
    )


def _peak_flops(spec: TrialSpec, session: Session) -> float | None:
    """Of this machine; of any other it would be a floor of nothing."""
    key = peak_key(spec, cores=usable_cores())
    peak = next((peak.flops for peak in session.peaks if peak.key == key), None)
    if peak is None:
        return None
    manager = None if session.surroundings.yarn is None else _manager(session.surroundings.yarn)
    return peak if computes_here(spec.resources, session.surroundings, manager) else None


def _floor_seconds(spec: TrialSpec, epoch: Epoch, peak_flops: float | None) -> float | None:
    """An epoch of several passes does their arithmetic several times."""
    flop = spec.network.flop_per_row()
    return None if flop is None or peak_flops is None else epoch.samples * flop / peak_flops


def _versions() -> dict[str, str]:
    found = {"python": sys.version.partition(" ")[0]}
    for name in VERSIONED:
        try:
            # What is imported counts: of another Spark's home, or sent to a node, it is not what is installed.
            found[name] = getattr(sys.modules.get(name), "__version__", None) or version(name)
        except PackageNotFoundError:
            continue
    return found


def _end_with(parent: int) -> None:
    """Nobody reads what an orphan measures: when the parent is gone, this process group goes too."""

    def watch() -> None:
        while os.getppid() == parent:  # a dead parent that nobody waited for still has its id, but no children
            time.sleep(PARENT_SECONDS)
        end_group()

    threading.Thread(target=watch, daemon=True, name="parent-watch").start()


def end_group() -> None:
    """At once, with all that we started: applications on YARN, then this process group."""
    end_all()
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _arguments(argv: list[str]) -> tuple[Path, Path]:
    if len(argv) != 3:
        raise SystemExit("usage: python -m models.run SPECS EVENTS")
    return Path(argv[1]), Path(argv[2])


def encode_session(session: Session) -> bytes:
    return msgspec.json.encode(session, enc_hook=str) + b"\n"


def decode_session(line: bytes) -> Session:
    return msgspec.json.decode(line, type=Session, dec_hook=_path)


def decode_event(line: bytes) -> Event:
    return msgspec.json.decode(line, type=Event)


def _path(kind: type, text: Any) -> Any:
    return kind(text)


if __name__ == "__main__":
    main(*_arguments(sys.argv))
