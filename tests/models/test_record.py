"""The epoch record is the only schema: what the dataclass says is what Arrow and JSON hold."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from models.record import COLUMNS, IDENTITY, LEDGER, EpochRecord, schema

REQUIRED = {"run_id": "r", "unit": "epoch", "machine": "m", "dataset": "mnist", "network": "mlp:784-10"}
RECORD = EpochRecord(**REQUIRED, platform="mllib", outcome="ok")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KINDS = {
    "string": st.text(),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "timestamp[us, tz=UTC]": st.integers(0, 2**52).map(lambda us: EPOCH + timedelta(microseconds=us)),
}


def records() -> st.SearchStrategy[EpochRecord]:
    return st.builds(
        EpochRecord,
        **{
            each.name: st.none() | KINDS[str(each.type)] if each.nullable else KINDS[str(each.type)]
            for each in schema()
        },
    )


def test_the_schema_has_every_field_in_order() -> None:
    assert tuple(schema().names) == COLUMNS == tuple(each.name for each in fields(EpochRecord))


def test_only_what_a_record_needs_is_never_null() -> None:
    needed = {"run_id", "unit", "machine", "dataset", "network", "platform", "outcome", "warmup", "tainted", "noisy"}
    assert {each.name for each in schema() if not each.nullable} == needed


def test_types_are_those_of_the_dataclass() -> None:
    assert schema().field("seconds").type == pa.float64()
    assert schema().field("updates").type == pa.int64()
    assert schema().field("stopped_early").type == pa.bool_()
    assert schema().field("started_at").type == pa.timestamp("us", tz="UTC")


def test_the_ledger_is_part_of_the_record() -> None:
    assert set(LEDGER) <= set(COLUMNS)


def test_what_tells_trials_apart_is_no_part_of_a_configuration() -> None:
    assert not {"trial", "attempt", "seed", "epoch", "seconds", "passes"} & set(IDENTITY)
    assert {"run_id", "unit", "dataset", "network", "platform", "executors", "cores", "batch_size"} <= set(IDENTITY)


@given(records())
def test_json_and_back(record: EpochRecord) -> None:
    assert msgspec.json.decode(msgspec.json.encode(record), type=EpochRecord) == record


@given(st.lists(records(), max_size=3))
def test_arrow_and_back(rows: list[EpochRecord]) -> None:
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema())
    assert [EpochRecord(**row) for row in table.to_pylist()] == rows


def test_parquet_and_back(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([asdict(RECORD)], schema()), tmp_path / "epochs.parquet")
    table = pq.read_table(tmp_path / "epochs.parquet")
    assert table.schema.equals(schema())
    assert [EpochRecord(**row) for row in table.to_pylist()] == [RECORD]
