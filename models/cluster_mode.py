"""Cluster deploy mode: the driver runs on a node, and this process stands for it where the trials are asked for.

`python -m models.cluster_mode SPECS EVENTS` takes the place of `python -m models.run`: it submits the driver, and hands
over what comes and goes by way of the store. `drive()` is the driver's side.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from models import spark_conf
from models.channel import ALIVE_SECONDS, END, STORE_POLL_SECONDS, Files, Mailbox
from models.event_mirror import EventMirror
from models.protocol import TaintedError, Yarn
from models.ranks.executor_gpus import script
from models.run import Event, decode_event, decode_session, encode_session, end_group, serve
from models.sent_code import own_code, packages, zipped
from models.spark_containers import DRIVER_CORES, DRIVER_MIB
from models.spark_home import own_home
from models.spark_master import log4j
from models.spark_on_yarn import EVENT_LOGS
from models.spec import TrialSpec
from store.errors import TrialError, YarnstickError
from store.opening import Reach, opened, resolved
from store.protocol import Store
from store.publish import temporary_name
from yarn.site import addresses_of
from yarn.submission import Submission

RENDEZVOUS, STUB, LOG4J = "rendezvous.json", "yarnstick_driver.py", "log4j2.properties"
SUBMIT_LOG = "spark-submit.log"
EXCEPTION = re.compile(r"^Exception in thread \S+ [\w.$]+: (.+)$", re.MULTILINE)


class Rendezvous(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver is sent along, to find us by the store."""

    reach: Reach
    folder: str


def relay(specs: Path, events: Path) -> None:
    """Until there are no more trials, or the driver is gone."""
    channel = Files(specs, events)
    lines = channel.specs()
    session = decode_session(next(lines))
    yarn = session.surroundings.yarn
    if yarn is None:
        raise TrialError("deploy mode cluster needs yarnstick.spark.master = yarn")
    yarn = replace(
        yarn,
        reach=replace(resolved(yarn.reach), cache=Path("cache")),
        resource_managers=addresses_of(yarn.resource_managers),
        folder=f"{yarn.folder}/{temporary_name()}",
        is_driver=True,
    )
    store = opened(replace(yarn.reach, cache=session.surroundings.work))
    submission = Submission(
        yarn.resource_managers, yarn.reach.access, queue=yarn.queue, accepted_seconds=yarn.accepted_seconds
    )
    submission.end_with(session.parent)
    signal.signal(signal.SIGTERM, lambda *_: end_group())
    mailbox = Mailbox(store, yarn.folder)
    mailbox.renew()
    surroundings = replace(session.surroundings, work=Path("work"), archives=Path("eventlogs"), yarn=yarn)
    mailbox.send("specs", encode_session(replace(session, surroundings=surroundings)))
    store.write(f"{yarn.folder}/{EVENT_LOGS}/.kept", b"")
    first = next(lines, None)
    if first is None:
        return
    submitted = time.monotonic()
    try:
        process = _submit(
            TrialSpec.decode(first),
            yarn,
            submission.tag,
            work=session.surroundings.work,
            given=session.surroundings.spark_conf,
            home=session.surroundings.spark_home or own_home(),
        )
        submission.watch(gone=process.kill)
        asked = [first]
        _threads(mailbox, lines, asked)
        mirror = EventMirror(store, f"{yarn.folder}/{EVENT_LOGS}", session.surroundings.archives)
        _pass_on(mailbox, channel, process, submitted=submitted, mirror=mirror)
        if process.wait():
            raise _why(submission, process.returncode, said=session.surroundings.work / SUBMIT_LOG)
    except TaintedError as error:  # not the trial's own fault, so that it is said as a driver here would say it
        slug = TrialSpec.decode(asked[-1]).slug
        channel.tell(msgspec.json.encode(Event(kind="ended", slug=slug, outcome="tainted", reason=str(error))))
    finally:
        submission.end()
        with suppress(YarnstickError):  # the next run collects it
            opened(replace(yarn.reach, cache=session.surroundings.work, retry_seconds=0)).remove(yarn.folder)


def _threads(mailbox: Mailbox, lines: Iterator[bytes], asked: list[bytes]) -> None:
    """Trials go out, what is `asked` first and then what comes, which is added to it; and we say that we live."""

    def send() -> None:
        mailbox.send("specs", asked[0])
        for line in lines:
            asked.append(line)
            mailbox.send("specs", line)
        mailbox.send("specs", END)

    def renew() -> None:
        while True:
            with suppress(YarnstickError):
                mailbox.renew()
            time.sleep(ALIVE_SECONDS)

    for work in (send, renew):
        threading.Thread(target=work, daemon=True, name=work.__name__).start()


def _pass_on(
    mailbox: Mailbox, channel: Files, process: subprocess.Popen[bytes], *, submitted: float, mirror: EventMirror
) -> None:
    """What the driver tells. The start of its application is ours to time: it began before there was a driver."""
    before_driver: float | None = None
    has_ended = False
    for line in mailbox.received("events"):
        if line is None:
            if has_ended:
                return
            # What it wrote last may have come after this look: there is one more.
            has_ended = process.poll() is not None
            time.sleep(STORE_POLL_SECONDS)
            continue
        event = decode_event(line)
        if before_driver is None:
            before_driver = time.monotonic() - submitted
        if event.kind == "ended":
            mirror.fetch()
        channel.tell(msgspec.json.encode(_with_start(event, before_driver)))


def _with_start(event: Event, seconds: float) -> Event:
    record = event.record
    if record is None or record.startup_seconds is None:
        return event
    return replace(event, record=replace(record, startup_seconds=record.startup_seconds + seconds))


def _submit(
    spec: TrialSpec, yarn: Yarn, tag: str, *, work: Path, given: dict[str, str], home: Path
) -> subprocess.Popen[bytes]:
    (work / STUB).write_text("from models.cluster_mode import drive\n\ndrive()\n", encoding="utf-8")
    rendezvous = Rendezvous(reach=yarn.reach, folder=yarn.folder)
    (work / RENDEZVOUS).write_bytes(msgspec.json.encode(rendezvous, enc_hook=str))
    log4j(work, there=Path("work"))
    ours = {
        **spark_conf.common(spec.resources),
        **spark_conf.on_yarn(spec.resources, yarn, tag=tag, session=uuid.uuid4().hex),
        "spark.driver.cores": str(DRIVER_CORES),
        "spark.driver.memory": f"{DRIVER_MIB}m",
        spark_conf.DRIVER_OPTIONS: f"-Dlog4j2.configurationFile={LOG4J}",
        "spark.eventLog.dir": f"{yarn.reach.url}/{yarn.folder}/{EVENT_LOGS}",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": yarn.python,
    }
    conf = spark_conf.together(ours, given)
    command = [
        str(home / "bin" / "spark-submit"),
        *("--master", "yarn", "--deploy-mode", "cluster", "--name", "yarnstick", "--queue", yarn.queue),
        *("--py-files", str(own_code(work))),
        *("--files", f"{work / RENDEZVOUS},{work / LOG4J},{script(work)}"),
        *(part for key, value in conf.items() for part in ("--conf", f"{key}={value}")),
        str(work / STUB),
    ]
    environment = {**os.environ, "SPARK_HOME": str(home)}
    if not (home / "python" / "lib" / "pyspark.zip").exists():
        # PySpark from pip leaves out the archives that nodes get.
        import py4j  # type: ignore[import-untyped]
        import pyspark

        archives = [zipped(work / f"{package.name}.zip", [package]) for package in packages(pyspark, py4j)]
        environment["PYSPARK_ARCHIVES_PATH"] = ",".join(map(str, archives))
    with (work / SUBMIT_LOG).open("wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def _why(submission: Submission, code: int, *, said: Path) -> TrialError | TaintedError:
    whole = said.read_text(encoding="utf-8", errors="replace")
    sys.stderr.write(whole)  # into the log of this session
    if submission.lost and submission.ended is None:  # it had no room and was killed by us, or nobody answers
        return TrialError(submission.lost)
    application = submission.ended or submission.application()
    if application is not None:
        return (TaintedError if application.was_taken else TrialError)(application.early_end)
    reason = found[1].strip() if (found := EXCEPTION.search(whole)) else "it did not say why"
    return TrialError(f"spark-submit ended with {code} before YARN took the application: {reason}")


def drive() -> None:
    """The driver: trains what comes by the store, with copies of the data on its own disk."""
    sent = msgspec.json.decode(Path(RENDEZVOUS).read_bytes(), type=Rendezvous, dec_hook=lambda kind, text: kind(text))
    store = opened(sent.reach)
    Path("work").mkdir(exist_ok=True)
    serve(_Local(Mailbox(store, sent.folder), store))


class _Local:
    """A mailbox whose session speaks of this node."""

    def __init__(self, mailbox: Mailbox, store: Store) -> None:
        self._mailbox = mailbox
        self._store = store

    def specs(self) -> Iterator[bytes]:
        lines = self._mailbox.specs()
        session = decode_session(next(lines))
        datasets = {slug: data.local_to(self._store, slug) for slug, data in session.datasets.items()}
        yield encode_session(replace(session, datasets=datasets, parent=os.getppid()))
        yield from lines

    def tell(self, event: bytes) -> None:
        self._mailbox.tell(event)


if __name__ == "__main__":
    try:
        relay(Path(sys.argv[1]), Path(sys.argv[2]))
    except YarnstickError as error:
        sys.exit(str(error))
