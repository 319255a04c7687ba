"""The two MapReduce steps, with the runner of [yarnstick.mapreduce]: the range of train, and the scaled rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from mrjob.step import StepFailedException

from mapreduce.batch_job import BatchJob, failure
from mapreduce.mr_normalize import MRNormalize
from mapreduce.mr_pixel_range import MRPixelRange
from pipeline.datasets.sources import SPLITS
from pipeline.settings import Settings
from store.errors import DataError
from store.manifest import MANIFEST, Manifest, read_manifest
from store.protocol import Store
from store.publish import Staging

COPY_BYTES = 4 << 20


def find_range(store: Store, slug: str, settings: Settings) -> None:
    """Publish `data/<slug>/range.json`: the smallest and largest value of each column of train."""
    path = f"data/{slug}/csv/train"
    manifest = read_manifest(store, path)
    with _ran(MRPixelRange, _inputs(store, path, manifest), [], manifest, settings) as parts:
        found = b"".join(part.read_bytes() for part in parts)
    store.write(f"data/{slug}/range.json", found)


def normalize(store: Store, slug: str, settings: Settings) -> None:
    """Publish `data/<slug>/normalized/{train,test}`, both after all of it was written."""
    scale = ["--range", str(store.local(f"data/{slug}/range.json")), "--scale", settings.main.scale]
    with ExitStack() as stack:
        finished = []
        for split in SPLITS:
            path = f"data/{slug}/csv/{split}"
            target = f"data/{slug}/normalized/{split}"
            if store.exists(f"{target}/{MANIFEST}"):
                continue
            manifest = read_manifest(store, path)
            staging = stack.enter_context(Staging(store, target))
            with _ran(MRNormalize, _inputs(store, path, manifest), scale, manifest, settings) as parts:
                rows = sum(_copy(part, staging) for part in parts)
            if rows != manifest.rows:
                raise DataError(f"{store.url}/{target} would have {rows} rows, but {path} has {manifest.rows}")
            finished.append((staging, manifest.facts))
        for staging, facts in finished:
            staging.commit(**facts)


def _inputs(store: Store, path: str, manifest: Manifest) -> list[str]:
    return [str(store.local(f"{path}/{part.name}")) for part in manifest.parts]


@contextmanager
def _ran(
    job: type[BatchJob], inputs: list[str], arguments: list[str], manifest: Manifest, settings: Settings
) -> Iterator[list[Path]]:
    """Run a job; its output parts, in the order of the input."""
    facts: dict[str, Any] = manifest.facts
    declared = ["--columns", str(facts["columns"]), "--classes", str(facts["classes"])]
    for name, limit in zip(("--minimum", "--maximum"), facts["pixel_range"], strict=True):
        if limit is not None:
            declared.append(f"{name}={limit!r}")
    BatchJob.set_up_logging(quiet=True)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="yarnstick."))
        options = ["-r", settings.mapreduce.runner, "--no-conf", "--local-tmp-dir", folder]
        runner = stack.enter_context(job([*options, *declared, *arguments, *inputs]).make_runner())
        try:
            runner.run()
        except StepFailedException as error:
            raise DataError(failure(Path(folder)) or f"{job.__name__} failed: {error}") from None
        yield sorted(Path(runner.get_output_dir()).glob("part-*"))


def _copy(part: Path, staging: Staging) -> int:
    """Move a part of the runner's output into the store; it is not kept twice."""
    with part.open("rb") as file, staging.create(part.name) as target:
        while block := file.read(COPY_BYTES):
            target.write(block)
            target.rows += block.count(b"\n")
    part.unlink()
    return target.rows
