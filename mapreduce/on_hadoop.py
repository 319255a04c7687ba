"""A job on a real cluster, in a process of its own that ends it when we are gone.

`python -m mapreduce.on_hadoop`: one line of JSON comes in, the errand; lines of JSON come out, what is told of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import msgspec

from store.errors import DataError, TrialError, YarnstickError
from store.opening import Reach, opened
from yarn.shipped import Shipped

TOP = Path(__file__).parent.parent
SHELL = "/bin/sh -ex"  # of a node whose PATH may lead nowhere
CONTAINERS = ("yarn.app.mapreduce.am", "mapreduce.map", "mapreduce.reduce")
INTERRUPT_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where MapReduce runs, as [yarnstick.hadoop] says."""

    command: Path  # hadoop
    streaming_jar: Path
    resource_managers: tuple[str, ...]
    queue: str
    python: str  # of the nodes
    shipped: Shipped
    accepted_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    job: str  # module:class
    arguments: tuple[str, ...]
    inputs: tuple[str, ...]  # paths of the store
    output: str  # a directory of the store, which is not there yet
    work: str  # a directory of the store for the job's own files, which is removed at the end
    reach: Reach
    cluster: Cluster
    parent: int


class News(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the process tells of its errand."""

    application: str | None = None
    tracking: str | None = None
    percent: tuple[int, int] = (0, 0)  # of the maps and the reduces
    error: str | None = None
    kind: Literal["", "data"] = ""


def run_on_hadoop(errand: Errand, *, listener: Callable[[News], None]) -> None:
    """Raises what a user can mend; where this process is interrupted, the application is killed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(TOP), os.environ.get("PYTHONPATH")]))}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mapreduce.on_hadoop"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            env=environment,
        )
        news = News()
        try:
            if process.stdin:
                with process.stdin as stdin:
                    stdin.write(msgspec.json.encode(errand, enc_hook=str) + b"\n")
            for line in process.stdout or ():
                news = msgspec.json.decode(line, type=News)
                if news.error is None:
                    listener(news)
            process.wait()
        except BaseException:
            _interrupt(process)
            raise
        finally:
            if process.stdout:
                process.stdout.close()
        if news.error is not None:
            raise DataError(news.error) if news.kind == "data" else TrialError(news.error)
        if process.returncode:
            log.seek(0)
            words = log.read().decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
            raise TrialError(f"the process that ran {errand.job} ended with {process.returncode}: {words[-1]}")


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """It kills its application, and then its whole session, of which `hadoop jar` is. If it takes too long, we do."""
    process.terminate()
    try:
        process.wait(INTERRUPT_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main() -> None:
    errand = msgspec.json.decode(sys.stdin.buffer.readline(), type=Errand, dec_hook=_path)
    # What is told goes to the standard output as it was; what libraries print there does not disturb it.
    channel = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def tell(news: News) -> None:
        channel.write(msgspec.json.encode(news) + b"\n")

    try:
        _run(errand, tell)
    except DataError as error:
        tell(News(error=str(error), kind="data"))
    except YarnstickError as error:
        tell(News(error=str(error)))


def _run(errand: Errand, tell: Callable[[News], None]) -> None:
    from mapreduce.hadoop_runner import Hadoop, Told
    from yarn.resource_manager import ResourceManager
    from yarn.submission import Submission

    cluster = errand.cluster
    manager = ResourceManager.of(cluster.resource_managers, errand.reach.access)
    submission = Submission(
        cluster.resource_managers,
        errand.reach.access,
        queue=cluster.queue,
        accepted_seconds=cluster.accepted_seconds,
    )
    submission.end_with(errand.parent)

    def interrupted(*_: Any) -> None:
        submission.end()
        os.killpg(os.getpgid(0), signal.SIGKILL)

    signal.signal(signal.SIGTERM, interrupted)
    store = opened(errand.reach)
    told = Told(listener=lambda each: tell(_news(each)))
    module, _, name = errand.job.partition(":")
    job_class = getattr(import_module(module), name)
    job_class.hadoop = Hadoop(store=store, version=manager.information().version, told=told)
    job_class.set_up_logging(quiet=True)
    submission.watch(gone=told.stop, tells_its_end=True)
    try:
        with job_class(_arguments(errand, submission.tag)).make_runner() as runner:
            from mrjob.step import StepFailedException

            try:
                runner.run()
            except StepFailedException:
                from mapreduce.failures import why

                raise why(told, cluster=cluster, submission=submission, store=store) from None
    finally:
        store.remove(errand.work)


def _arguments(errand: Errand, tag: str) -> list[str]:
    """Of mrjob's command line."""
    cluster, url = errand.cluster, errand.reach.url
    options = {
        "--runner": "hadoop",
        "--hadoop-bin": str(cluster.command),
        "--hadoop-streaming-jar": str(cluster.streaming_jar),
        "--hadoop-tmp-dir": f"{url}/{errand.work}",
        "--output-dir": f"{url}/{errand.output}",
        "--python-bin": cluster.python,
        "--sh-bin": SHELL,
    }
    jobconf = {"mapreduce.job.queuename": cluster.queue, "mapreduce.job.tags": tag}
    # By variable: mapreduce.map.env as a whole is the cluster's own.
    jobconf |= {f"{of}.env.{name}": value for of in CONTAINERS for name, value in cluster.shipped.environment.items()}
    return [
        "--no-conf",
        "--no-check-input-paths",
        *(f"{name}={value}" for name, value in options.items()),
        *(f"-D{name}={value}" for name, value in jobconf.items()),
        *(f"--archives={archive}" for archive in cluster.shipped.archives),
        *errand.arguments,
        *(f"{url}/{path}" for path in errand.inputs),
    ]


def _news(told: Any) -> News:
    return News(application=told.application, tracking=told.tracking, percent=told.percent)


def _path(kind: type, text: Any) -> Any:
    return kind(text)


if __name__ == "__main__":
    main()
