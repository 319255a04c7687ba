"""Runs a MapReduce job with the runner of [yarnstick.mapreduce]; its output parts get the names of the input's."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mrjob.step import StepFailedException

from mapreduce.batch_job import BatchJob, failure
from mapreduce.on_hadoop import Cluster, Errand, News, run_on_hadoop
from pipeline.opening import node_python, reach
from pipeline.orphans import end_what_is_left
from pipeline.settings import Settings
from pipeline.shipping import shipped
from store.errors import DataError, SettingError, StoreError
from store.manifest import Manifest
from store.protocol import Store
from store.publish import Staging, temporary_name

COPY_BYTES = 4 << 20
MARKER = "_SUCCESS"  # what Hadoop puts into a directory that is complete
TOLD_SECONDS = 5.0
log = logging.getLogger("luigi-interface.yarnstick")


def run_job(
    job: type[BatchJob],
    path: str,
    manifest: Manifest,
    *,
    settings: Settings,
    store: Store,
    staging: Staging,
    side_file: tuple[str, str] | None = None,  # an option, and the path of the store that it names
    arguments: tuple[str, ...] = (),
) -> int:
    """Its output goes into `staging`; how many lines that has."""
    given = (*_declared(manifest), *arguments)
    with ExitStack() as stack:
        if side_file is not None:
            option, named = side_file
            given += (option, str(store.local(named)))
        if settings.mapreduce.runner == "hadoop":
            return _on_hadoop(job, path, given, settings=settings, store=store, staging=staging)
        inputs = [str(store.local(f"{path}/{part.name}")) for part in manifest.parts]
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="yarnstick."))
        options = ["-r", settings.mapreduce.runner, "--no-conf", "--local-tmp-dir", folder]
        BatchJob.set_up_logging(quiet=True)
        runner = stack.enter_context(job([*options, *given, *inputs]).make_runner())
        try:
            runner.run()
        except StepFailedException as error:
            raise DataError(failure(Path(folder)) or f"{job.__name__} failed: {error}") from None
        return sum(_move(part, staging) for part in sorted(Path(runner.get_output_dir()).glob("part-*")))


def _declared(manifest: Manifest) -> tuple[str, ...]:
    facts: dict[str, Any] = manifest.facts
    declared = ["--columns", str(facts["columns"]), "--classes", str(facts["classes"])]
    for name, limit in zip(("--minimum", "--maximum"), facts["pixel_range"], strict=True):
        if limit is not None:
            declared.append(f"{name}={limit!r}")
    return tuple(declared)


def _move(part: Path, staging: Staging) -> int:
    """Move a part of a runner on this machine into the store; it is not kept twice."""
    with part.open("rb") as file, staging.create(part.name) as target:
        while block := file.read(COPY_BYTES):
            target.write(block)
            target.rows += block.count(b"\n")
    part.unlink()
    return target.rows


def _on_hadoop(
    job: type[BatchJob],
    path: str,
    arguments: tuple[str, ...],
    *,
    settings: Settings,
    store: Store,
    staging: Staging,
) -> int:
    """The job writes where `staging` is; without Hadoop's own marker of success nothing of it counts."""
    if not reach(settings).is_on_hdfs:
        raise SettingError(
            f"yarnstick.mapreduce.runner = hadoop needs a store on HDFS, and yarnstick.store.url is {store.url}; set "
            f"that to hdfs:///user/NAME/yarnstick, or the runner to inline"
        )
    output = staging.temporary
    errand = Errand(
        job=f"{job.__module__}:{job.__name__}",
        arguments=arguments,
        inputs=(f"{path}/part-*",),
        output=output,
        work=f"{output.rpartition('/')[0]}/{temporary_name()}",
        reach=reach(settings),
        cluster=hadoop_cluster(settings),
        parent=os.getpid(),
    )
    end_what_is_left(settings)
    run_on_hadoop(errand, listener=_teller(job.__name__))
    names = [entry.name for entry in store.list(output) if not entry.is_directory]
    if MARKER not in names:
        raise StoreError(f"{store.url}/{output} has no {MARKER}: Hadoop did not complete it; run again")
    store.remove(f"{output}/{MARKER}")
    return sum(part.rows for part in staging.adopt(sorted(name for name in names if name != MARKER)))


def hadoop_cluster(settings: Settings) -> Cluster:
    from yarn.client import hadoop_command, streaming_jar

    given = settings.hadoop
    command = hadoop_command(given.command)
    return Cluster(
        command=command,
        streaming_jar=streaming_jar(given.streaming_jar, command),
        resource_managers=given.resource_managers,
        queue=given.queue,
        python=node_python(settings),
        shipped=shipped(settings, "mapreduce"),
        accepted_seconds=given.accepted_seconds,
    )


def _teller(name: str) -> Callable[[News], None]:
    """Says where the job can be looked at, and now and then how far it is."""
    told: dict[str, Any] = {"tracking": None, "at": time.monotonic()}

    def tell(news: News) -> None:
        if news.tracking and told["tracking"] is None:
            told["tracking"] = news.tracking
            log.info("%s: %s, %s", name, news.application, news.tracking)
        elif news.tracking and time.monotonic() - told["at"] >= TOLD_SECONDS:
            told["at"] = time.monotonic()
            log.info("%s: map %d %%, reduce %d %%", name, *news.percent)

    return tell
