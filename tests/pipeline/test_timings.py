"""The CSV of timings: every row is checked, and the error says where, what, and what is allowed."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.record import EpochRecord
from pipeline.timings import COLUMNS, timings
from store.errors import DataError

HEAD = "platform,dataset,seconds,executors,trial\n"
GOOD = HEAD + "spark,mnist,12.5,2,1\nspark,mnist,13,2,2\n"


def read(text: str | bytes) -> list[EpochRecord]:
    return timings("theirs.csv", text if isinstance(text, bytes) else text.encode(), run_id="R")


def refused(text: str | bytes) -> str:
    with pytest.raises(DataError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def row(**cells: str) -> str:
    cells = {"platform": "p", "dataset": "d", "seconds": "1", **cells}
    return ",".join(cells) + "\n" + ",".join(cells.values()) + "\n"


def test_a_row_without_an_epoch_is_a_whole_training() -> None:
    first, second = read(GOOD)
    assert (first.platform, first.dataset, first.seconds, first.executors, first.trial) == (
        "spark", "mnist", 12.5, 2, 1,
    )  # fmt: skip
    assert (first.unit, first.epoch, first.warmup, first.outcome) == ("training", None, False, "ok")
    assert (first.run_id, first.machine, first.network, first.origin) == ("R", "unknown", "unknown", "theirs.csv")
    assert (second.seconds, second.trial) == (13.0, 2)


def test_every_column_has_its_place_in_the_record() -> None:
    text = row(
        network="mlp:784-1024-10", solver="L-BFGS", precision="float64", executors="3", cores="4", memory_gb="64.5",
        workers="2", nodes="3", price_per_hour="1.25", trial="2", epochs="100", accuracy="0.97", loss="0.1",
        rows="60000", machine="m5", status="ok",
    )  # fmt: skip
    (record,) = read(text)
    wanted = {
        "network": "mlp:784-1024-10", "solver": "l-bfgs", "precision": "float64", "executors": 3, "cores": 4,
        "machine_memory_gb": 64.5, "workers": 2, "nodes": 3, "price_per_hour": 1.25, "trial": 2,
        "epochs_requested": 100, "test_accuracy": 0.97, "loss": 0.1, "rows": 60000, "machine": "m5", "outcome": "ok",
        "parameters": 814090, "passes": None, "updates": None,
    }  # fmt: skip
    assert {name: getattr(record, name) for name in wanted} == wanted


def test_a_platforms_name_tells_of_a_gpu() -> None:
    names = ("torch-cuda", "Tensorflow-CUDA", "torch-cpu", "cuda-less")
    assert [read(row(platform=name))[0].device for name in names] == ["cuda", "cuda", None, None]


@pytest.mark.parametrize(
    ("cells", "updates", "passes"),
    [
        ({"solver": "gd"}, 1, 1),
        ({"solver": "SGD", "batch_size": "64", "rows": "1000"}, 16, 1),
        ({"solver": "sgd", "batch_size": "64"}, None, 1),
        ({"solver": "l-bfgs", "batch_size": "full"}, None, None),
        ({}, None, None),
    ],
)
def test_an_epochs_work_is_what_its_solver_leaves_no_choice_of(
    cells: dict[str, str], updates: int | None, passes: int | None
) -> None:
    (record,) = read(row(epoch="3", **cells))
    assert (record.unit, record.epoch, record.updates, record.passes) == ("epoch", 3, updates, passes)


def test_no_executor_is_none() -> None:
    assert [record.executors for record in read(HEAD + "a,d,1,0,1\nb,d,1,,1\n")] == [None, None]


@pytest.mark.parametrize("line_end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_the_mark_and_the_line_ends_of_a_spreadsheet_are_read(line_end: str, mark: bytes) -> None:
    assert read(mark + GOOD.replace("\n", line_end).encode()) == read(GOOD)


def test_blank_lines_and_blanks_around_cells_are_nothing() -> None:
    assert read(GOOD.replace(",", " , ").replace("\n", "\n\n")) == read(GOOD)


@pytest.mark.parametrize("name", ["=cmd()", "<script>alert(1)</script>", "@SUM(1)", "naïve-Bäume", "a|b"])
def test_a_name_is_text_whatever_a_spreadsheet_or_a_browser_would_do(name: str) -> None:
    (record,) = read(row(platform=name, dataset=name, network=name, machine=name))
    assert {record.platform, record.dataset, record.network, record.machine} == {name}


@pytest.mark.parametrize(
    ("status", "outcome", "reason"),
    [
        ("failed: out of memory", "failed", "out of memory"),
        ("not run: no GPU", "unavailable", "no GPU"),
        ("Diverged", "diverged", None),
        ("no GPU here", "unavailable", "no GPU here"),
    ],
)
def test_where_there_is_no_time_the_status_says_why(status: str, outcome: str, reason: str | None) -> None:
    (record,) = read(row(seconds="", status=status))
    assert (record.seconds, record.outcome, record.reason) == (None, outcome, reason)


@pytest.mark.parametrize(
    ("column", "cell", "allowed"),
    [
        ("seconds", "12 s", "a number from 1e-9 to 1e9, as 12.5, without a unit"),
        ("seconds", "12s", "without a unit"),
        ("seconds", "-3", "a number from 1e-9 to 1e9"),
        ("seconds", "0", "a number from 1e-9 to 1e9"),
        ("seconds", "nan", "a number from 1e-9 to 1e9"),
        ("seconds", "1e999", "a number from 1e-9 to 1e9"),
        ("seconds", "=1+1", "a number from 1e-9 to 1e9"),
        ("seconds", "١٢", "a number from 1e-9 to 1e9"),
        ("executors", "-1", "a whole number from 0 to 1000000"),
        ("executors", "1.5", "a whole number from 0 to 1000000"),
        ("cores", "4 cores", "a whole number from 1 to 1000000, without a unit: those of each"),
        ("memory_gb", "64 GB", "the machine's GB as a number from 0.001 to 1e6, without a unit"),
        ("price_per_hour", "$1", "without a currency"),
        ("accuracy", "97.7", "a share from 0 to 1, as 0.977 for 97.7 %"),
        ("accuracy", "97.7%", "a share from 0 to 1"),
        ("loss", "-0.5", "0, or a number from 1e-30 to 1e30, or nan or inf"),
        ("trial", "0", "a whole number from 1 to 1000000000"),
        ("epoch", "first", "a whole number from 1 to 1000000000"),
        ("rows", "60000000000000000000000", "a whole number from 1 to 1000000000000"),
        ("seconds", "1e-310", "a number from 1e-9 to 1e9"),
        ("memory_gb", "1e-310", "a number from 0.001 to 1e6"),
        ("memory_gb", "1e300", "a number from 0.001 to 1e6"),
        ("price_per_hour", "1e308", "0, or a number from 1e-9 to 1e9, without a currency"),
        ("price_per_hour", "1e-310", "0, or a number from 1e-9 to 1e9"),
        ("loss", "1e308", "a number from 1e-30 to 1e30, or nan or inf"),
        ("loss", "1e-310", "0, or a number from 1e-30"),
        ("executors", "999999999999999", "a whole number from 0 to 1000000"),
        ("cores", "99999999999999", "a whole number from 1 to 1000000"),
        ("workers", "1000001", "a whole number from 1 to 1000000"),
        ("nodes", "1000001", "a whole number from 1 to 1000000"),
        ("epochs", "1000000001", "a whole number from 1 to 1000000000"),
        ("batch_size", "1000000000001", "a whole number from 1 to 1000000000000, without a unit, or full"),
        ("batch_size", "half", "or full"),
        ("platform", "", "a name of at most 200"),
        ("dataset", "a\0b", "printable"),
        ("machine", "x" * 201, "at most 200"),
    ],
)
def test_a_bad_cell_is_named_with_its_line_its_column_and_what_is_allowed(column: str, cell: str, allowed: str) -> None:
    head, _, cells = row(**{column: cell}).partition("\n")
    good = row(**{column: {"platform": "other", "dataset": "other", "machine": "m"}.get(column, "1")})
    said = refused(f"{head}\n{good.splitlines()[1]}\n{cells}")
    assert said.startswith(f"theirs.csv, line 3, column {column}: ")
    assert allowed in said


@pytest.mark.parametrize(
    ("column", "cells", "found"),
    [
        ("price_per_hour", ["0", "0.00", "1e-9", "1e9"], [0, 0, 1e-9, 1e9]),
        ("loss", ["0", "1E30", "Infinity"], [0, 1e30, float("inf")]),
        ("seconds", ["1e-9", "1000000000"], [1e-9, 1e9]),
        ("executors", ["0", "1000000.0"], [None, 1_000_000]),
        ("batch_size", ["full", "1"], [None, 1]),
    ],
)
def test_the_ends_of_what_is_allowed_are_in_it(column: str, cells: list[str], found: list[float | None]) -> None:
    assert [getattr(record, column) for cell in cells for record in read(row(**{column: cell}))] == found


def test_a_comma_for_a_decimal_point_is_told() -> None:
    assert "line 2 has 6 cells, and line 1 names 5 columns" in refused(HEAD + "spark,mnist,12,5,2,1\n")
    assert "'12,5' is not allowed" in refused(HEAD + 'spark,mnist,"12,5",2,1\n')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("platform,dataset\np,d\n", "line 1: column seconds is missing; needed are platform, dataset, seconds"),
        ("platform,dataset,secnds\np,d,1\n", "column 'secnds' is not known, the nearest is seconds; allowed are"),
        ("Platform,dataset,seconds\np,d,1\n", "the nearest is platform"),
        ("platform,dataset,seconds,seconds\np,d,1,1\n", "column seconds stands there twice"),
        ("platform;dataset;seconds\np;d;1\n", "is not known"),
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("platform,dataset,seconds\n", "has no row below its first line"),
        (b"platform,dataset,seconds\np,\xff,1\n", "byte 27: not UTF-8"),
        ('platform,dataset,seconds\np,"d,1\n', "line 2: unexpected end of data"),
        (row(epoch="4", epochs="3"), "column epoch: '4' is not allowed; write a number up to the 3"),
        (row(solver="gd", batch_size="64"), "column batch_size: '64' is not allowed; write nothing, as gd takes"),
        (row(network="mlp:*-8-3"), "line 2, column network: network 'mlp:*-8-3' has a *"),
        (row(network="mlp:784-999999999-999999999-10"), "1000000793999999215 parameters; write one"),
        (row(seconds=""), "column seconds: it is empty, and no status says why"),
        (row(seconds="", status="ok"), "no status says why"),
    ],
)  # fmt: skip
def test_what_is_wrong_beyond_a_cell_is_one_sentence_too(text: str | bytes, words: str) -> None:
    said = refused(text)
    assert said.startswith("theirs.csv")
    assert words in said


@pytest.mark.parametrize("column", ["seconds", "accuracy", "loss"])
def test_a_row_equal_in_all_but_its_results_is_a_duplicate(column: str) -> None:
    same = {"trial": "1", "accuracy": "0.5", "loss": "1"}
    head, _, cells = row(**same | {column: "0.25"}).partition("\n")
    other = row(**same | {column: "0.75"}).partition("\n")[2]
    assert "theirs.csv, line 3 is a duplicate of line 2" in refused(f"{head}\n{cells}{other}")


def test_repeats_have_numbers_and_lengths_of_training_differ() -> None:
    head = "platform,dataset,seconds,epochs,epoch,trial\n"
    rows = "p,d,1,10,,1\np,d,1,10,,2\np,d,1,100,,1\np,d,1,100,1,1\np,d,1,100,2,1\n"
    assert len(read(head + rows)) == 5
    assert "is a duplicate" in refused(head + "p,d,1,10,,\np,d,2,10,,1\n")


def test_the_line_of_a_row_with_line_ends_in_quotes_is_where_it_begins() -> None:
    assert "theirs.csv, line 2, column dataset" in refused('platform,dataset,seconds\np,"a\nb",1\n')


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=80), st.text(max_size=80).map(str.encode)), st.booleans())
def test_whatever_a_file_holds_is_read_or_refused_in_a_sentence(rest: bytes, has_head: bool) -> None:
    with suppress(DataError):
        read(HEAD.encode() + rest if has_head else rest)


@given(st.sampled_from([*COLUMNS]), st.text(max_size=12).filter(lambda cell: not set(cell) & set('",\r\n')))
def test_any_cell_is_read_or_refused_in_a_sentence(column: str, cell: str) -> None:
    with suppress(DataError):
        read(row(**{column: cell}))
