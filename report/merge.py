"""All outcomes of a run as two tables: every record, and a row for each configuration."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from models.outcome import Outcome
from models.record import COLUMNS, schema
from report.facts import NO_TERMS, BaselineSpec, Terms

if TYPE_CHECKING:
    import pyarrow as pa


def merged_files(outcomes: Sequence[Outcome], *, baseline: BaselineSpec, terms: Terms = NO_TERMS) -> dict[str, bytes]:
    """`epochs.*` with every record of every attempt, and `comparison.*`."""
    import polars as pl

    from report import comparison

    table = records_table(outcomes)
    records = pl.DataFrame(table)
    _, configurations = comparison.compared(records, baseline=baseline, terms=terms)
    return {
        "epochs.parquet": parquet(table),
        **comparison.files(records, configurations),
    }


def records_table(outcomes: Sequence[Outcome]) -> pa.Table:
    """The records in the order in which their trials ended. What became of a trial is said by each of its records."""
    import pyarrow as pa

    ordered = sorted(outcomes, key=lambda outcome: (outcome.position, outcome.spec.slug))
    whole = [(outcome, record) for outcome in ordered for record in outcome.records]
    rows = map(attrgetter(*COLUMNS), (record for _, record in whole))
    columns: dict[str, Sequence[Any]] = dict(zip(COLUMNS, zip(*rows, strict=True), strict=False)) or dict.fromkeys(
        COLUMNS, ()
    )
    columns["outcome"] = [outcome.outcome for outcome, _ in whole]
    columns["reason"] = [record.reason or outcome.reason for outcome, record in whole]
    columns["noisy"] = [record.noisy or outcome.noisy for outcome, record in whole]
    columns["noise"] = [record.noise or outcome.noise for outcome, record in whole]
    columns["tainted"] = [record.tainted or outcome.outcome == "tainted" for outcome, record in whole]
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema()]
    return pa.table(arrays, schema=schema())


def parquet(table: pa.Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())
