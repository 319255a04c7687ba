"""That the benchmark of the report gives the real command all that it has to do: prices, a target, and event logs."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from bench.report import RUN_ID, stored
from pipeline.config import read_settings
from pipeline.reporting import again

EPOCHS, CONFIGURATIONS = 12, 320


def test_the_stored_run_is_one_with_all_that_a_report_may_hold(tmp_path: Path) -> None:
    store, records = stored(tmp_path, records=EPOCHS * CONFIGURATIONS, trials=1)
    assert records == EPOCHS * CONFIGURATIONS
    said = again(read_settings("default", store=store.url), RUN_ID)
    assert said[1].startswith("On this machine, mnist with mlp:784-1024-10")
    folder = f"runs/{RUN_ID}/report"
    rows = pl.read_csv(store.read(f"{folder}/comparison.csv"), infer_schema_length=None)
    assert rows.height == CONFIGURATIONS
    assert rows["price"].null_count() == rows["seconds_to_target"].null_count() == 0
    tasks = pl.read_csv(store.read(f"{folder}/timeline.csv"), infer_schema_length=None)
    assert tasks.select("executors", "cores").unique().height > 20, "of the 32 logs that a report reads"
    epochs = pl.read_parquet(io.BytesIO(store.read(f"{folder}/epochs.parquet")))
    assert epochs.height == records
    order = epochs["started_at"].to_list()
    assert order == sorted(order), "as the trials ended, however many outcomes are made into columns at once"
