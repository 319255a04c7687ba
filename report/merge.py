"""All outcomes of a run as two tables: every record, and a row for each configuration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from models.outcome import Outcome
from models.record import COLUMNS, EpochRecord, schema
from report.facts import NO_TERMS, BaselineSpec, Terms

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 100  # outcomes


def merged_files(
    outcomes: Sequence[Outcome],
    *,
    baseline: BaselineSpec,
    terms: Terms = NO_TERMS,
    brought: Iterable[pa.Table] = (),
) -> dict[str, bytes]:
    """`epochs.*` with every record of every attempt, and `comparison.*`; `brought` are records from elsewhere."""
    return files_of(all_records(outcomes, brought), baseline=baseline, terms=terms)


def files_of(table: pa.Table, *, baseline: BaselineSpec, terms: Terms) -> dict[str, bytes]:
    """The same from the table of all records."""
    import polars as pl

    from report import comparison

    records = pl.DataFrame(table)
    _, configurations = comparison.compared(records, baseline=baseline, terms=terms)
    return {
        "epochs.parquet": parquet(table),
        **comparison.files(records, configurations),
    }


def all_records(outcomes: Iterable[Outcome], brought: Iterable[pa.Table]) -> pa.Table:
    """Those that were measured here come first."""
    import pyarrow as pa

    return pa.concat_tables([records_table(outcomes), *brought])


def table_of(records: Sequence[EpochRecord]) -> pa.Table:
    """As they are: of no trial that could say more of them."""
    import pyarrow as pa

    columns = zip(*map(attrgetter(*COLUMNS), records), strict=True)
    return pa.table(
        [pa.array(column, type=field.type) for column, field in zip(columns, schema(), strict=True)], schema=schema()
    )


def with_run_id(table: pa.Table, run_id: str) -> pa.Table:
    import pyarrow as pa

    index = table.schema.get_field_index("run_id")
    return table.set_column(index, table.schema.field(index), pa.array([run_id] * table.num_rows))


def aligned(table: pa.Table) -> pa.Table:
    """In the schema of now: what another version did not record is null, or false. ArrowInvalid where it cannot be."""
    import pyarrow as pa

    return pa.table([_column(table, field) for field in schema()], schema=schema())


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    import pyarrow as pa

    if field.name in table.column_names:
        values = table[field.name].cast(field.type)
    elif not field.nullable and pa.types.is_boolean(field.type):
        values = pa.array([False] * table.num_rows, field.type)
    else:
        values = pa.nulls(table.num_rows, field.type)
    if values.null_count and not field.nullable:
        raise pa.ArrowInvalid(f"{field.name} is missing in {values.null_count:,} of {table.num_rows:,} records")
    return values


def records_table(outcomes: Iterable[Outcome]) -> pa.Table:
    """The records in the order in which their trials ended. What became of a trial is said by each of its records.

    As Python's objects all records of a large run take more memory than its report, so they are taken a few at a time.
    """
    import pyarrow as pa

    every, places, parts = iter(outcomes), [], [schema().empty_table()]
    while some := list(islice(every, AT_ONCE)):
        parts.append(_records_of(some))
        places += [(outcome.position, outcome.spec.slug) for outcome in some for _ in outcome.records]
    order = sorted(range(len(places)), key=places.__getitem__)
    return pa.concat_tables(parts).take(pa.array(order, pa.int64())).combine_chunks()


def _records_of(outcomes: Sequence[Outcome]) -> pa.Table:
    import pyarrow as pa

    whole = [(outcome, record) for outcome in outcomes for record in outcome.records]
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
