"""The answer of `yarnstick predict`, from the merged records of a run and nothing else: it has to be quick."""

from __future__ import annotations

from typing import Any

from pipeline.reporting import REPORT, baseline_of, known_run, merged_records
from report.question import Question, answer
from store.errors import StoreError
from store.protocol import Store


def prediction(store: Store, question: Question) -> dict[str, Any]:
    import polars as pl

    from report.predictions import all_series
    from report.trials import trials

    run = known_run(store, question.run_id)
    folder = f"runs/{run.run_id}"
    if not store.exists(f"{folder}/{REPORT}/epochs.parquet"):
        raise StoreError(
            f"run {run.run_id} has no merged records yet; yarnstick report --run-id {run.run_id} makes them"
        )
    attempts = trials(pl.DataFrame(merged_records(store, folder)))
    # Others are only for the sentence that tells which there are.
    mine = attempts.filter(pl.col("platform") == question.platform)
    return answer(question, all_series(attempts if mine.is_empty() else mine), baseline=baseline_of(run))
