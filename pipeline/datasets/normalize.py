"""The two MapReduce steps: the range of train, and the scaled rows."""

from __future__ import annotations

from contextlib import ExitStack

from mapreduce.mr_normalize import MRNormalize
from mapreduce.mr_pixel_range import MRPixelRange
from pipeline.datasets.jobs import run_job
from pipeline.datasets.sources import SPLITS
from pipeline.settings import Settings
from store.errors import DataError
from store.manifest import MANIFEST, read_manifest
from store.protocol import Store
from store.publish import Staging


def find_range(store: Store, slug: str, settings: Settings) -> None:
    """Publish `data/<slug>/range.json`: the smallest and largest value of each column of train."""
    path = f"data/{slug}/csv/train"
    with Staging(store, f"data/{slug}/range") as staging:  # only looked at, never published
        run_job(MRPixelRange, path, read_manifest(store, path), settings=settings, store=store, staging=staging)
        found = b"".join(store.read(f"{staging.temporary}/{part.name}") for part in store.list(staging.temporary))
    store.write(f"data/{slug}/range.json", found)


def normalize(store: Store, slug: str, settings: Settings) -> None:
    """Publish `data/<slug>/normalized/{train,test}`, both after all of it was written."""
    with ExitStack() as stack:
        finished = []
        for split in SPLITS:
            path = f"data/{slug}/csv/{split}"
            target = f"data/{slug}/normalized/{split}"
            if store.exists(f"{target}/{MANIFEST}"):
                continue
            manifest = read_manifest(store, path)
            staging = stack.enter_context(Staging(store, target))
            rows = run_job(
                MRNormalize,
                path,
                manifest,
                settings=settings,
                store=store,
                staging=staging,
                side_file=("--range", f"data/{slug}/range.json"),
                arguments=("--scale", settings.main.scale),
            )
            if rows != manifest.rows:
                raise DataError(f"{store.url}/{target} would have {rows} rows, but {path} has {manifest.rows}")
            finished.append((staging, manifest.facts))
        for staging, facts in finished:
            staging.commit(**facts)
