"""Imported timings: their COST by hand, and that what was measured here stays as it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from models.outcome import Outcome
from pipeline.timings import timings
from report.comparison import compared
from report.imported import NO_BASELINE, NO_MACHINE
from report.merge import all_records, merged_files, records_table, table_of
from report.page import report_files, summary
from tests.report.made import BASELINE, RUN, mllib, outcomes, torch


def imported(text: str, name: str = "theirs.csv") -> pa.Table:
    return table_of(timings(name, text.strip().encode() + b"\n", run_id=RUN.run_id))


def verdicts(text: str, found: Sequence[Outcome] = ()) -> list[dict[str, Any]]:
    made = summary(all_records(found, [imported(text)]), run=RUN, baseline=BASELINE)["comparisons"]
    assert isinstance(made, list)
    return made


def only(text: str) -> dict[str, Any]:
    (comparison,) = verdicts(text)
    return comparison


CLUSTER = """
platform,dataset,seconds,executors,cores
single,big,100,,
slow,big,300,1,2
slow,big,170,2,2
slow,big,99,4,2
slow,big,80,8,2
fast,big,90,2,1
fast,big,70,3,1
"""


def test_cost_by_hand() -> None:
    """The baseline is `single`, 100 s. slow: 99 s with 8 cores is not 2 % faster, so 16. fast: 90 s with 2 cores."""
    found = only(CLUSTER)
    assert (found["baseline"]["platform"], found["baseline"]["seconds"]) == ("single", 100)
    costs = {name: (each["cost_cores"], each["cost_unit"]) for name, each in found["platforms"].items()}
    assert costs == {"single": (None, "cores"), "slow": (16, "cores"), "fast": (2, "cores")}
    assert found["platforms"]["single"]["reason"] == "it is the baseline's own platform"
    assert found["fastest"] == "fast"
    text = " ".join(found["sentences"])
    assert "By imported timings, big with unknown" in text
    assert "the baseline, single (100 s), is beaten by fast from 2 cores on and slow from 16 cores on" in text


def test_without_cores_the_unit_is_executors() -> None:
    text = "platform,dataset,seconds,executors\na,d,10,\nb,d,14,1\nb,d,8,2\nc,d,11,2\nc,d,10.5,4\n"
    found = only(text)["platforms"]
    assert (found["b"]["cost_cores"], found["b"]["cost_unit"]) == (2, "executors")
    assert (found["c"]["cost_cores"], found["c"]["cost_unit"]) == (None, "executors")
    assert found["c"]["reason"].startswith("none of 2, 4 executors did")


def test_the_baseline_is_of_another_platform() -> None:
    """Both have one executor: b's baseline is a with 9 s, and a's is b with 10 s."""
    text = "platform,dataset,seconds,executors\na,d,9,1\na,d,6,2\nb,d,10,1\nb,d,8.5,2\n"
    found = only(text)
    assert found["platforms"]["a"]["cost_cores"] == 1, "9 s against b's 10 s"
    assert found["platforms"]["b"]["cost_cores"] == 2, "8.5 s against a's 9 s"
    assert [found["platforms"][name]["baseline"] for name in "ab"] == ["b, 1 executor", "a, 1 executor"]


def test_without_one_executor_or_none_there_is_no_baseline_and_a_reason() -> None:
    text = "platform,dataset,seconds,executors,cores\na,d,9,2,4\nb,d,10,3,4\n"
    found = only(text)
    assert (found["baseline"], found["no_baseline"]) == (None, NO_BASELINE)
    assert {each["reason"] for each in found["platforms"].values()} == {NO_BASELINE}
    assert only("platform,dataset,seconds\na,d,9\n")["baseline"] is None, "nor of a single platform"


@pytest.mark.parametrize(
    ("cores", "machine", "named"),
    [
        (64, "bigbox", "64 cores of bigbox"),
        ("", "bigbox", "bigbox"),
        (64, "", "64 cores of an unknown machine"),
        ("", "", "an unknown machine"),
    ],
)
def test_the_baseline_is_called_by_its_cores_and_machine(cores: object, machine: str, named: str) -> None:
    head = "platform,dataset,seconds,executors,cores,machine"
    text = f"{head}\nsingle,big,100,,{cores},{machine}\nslow,big,300,2,2,theirs\n"
    thread, _, machine_, *_ = only(text)["cost"]
    assert thread["platforms"]["slow"]["reason"].startswith(
        f"unbounded: the best it reached, 5 min with 2 executors x 2 cores, is 3.0x the baseline's 100 s with {named}"
    )
    assert machine_["no_baseline"] == NO_MACHINE
    page = report_files(all_records([], [imported(text)]), run=RUN, baseline=BASELINE)["report.html"].decode()
    assert f"<td>{named} (single)</td>" in page
    assert NO_MACHINE in page
    assert "one thread" not in page.partition("<dl")[0]


def test_repeats_are_tested() -> None:
    rows = [f"alone,d,{10 + n / 10},,{n}" for n in range(1, 5)] + [f"both,d,{6 + n / 10},2,{n}" for n in range(1, 5)]
    found = only("\n".join(["platform,dataset,seconds,executors,trial", *rows]))
    assert (found["platforms"]["both"]["cost_cores"], found["platforms"]["both"]["cost_unit"]) == (2, "executors")
    assert found["tests"][0]["p"] < 0.001
    assert "imported, of which nobody knows how noisy they were" in " ".join(
        summary(all_records([], [imported("\n".join(["platform,dataset,seconds,trial", "a,d,1,1", "a,d,2,2"]))]),
                run=RUN, baseline=BASELINE)["first_lines"]
    )  # fmt: skip


def test_trainings_of_other_lengths_are_other_comparisons() -> None:
    found = verdicts("platform,dataset,seconds,epochs\na,d,9,10\na,d,80,100\nb,d,8,10\nb,d,90,100\n")
    assert [(each["epochs"], each["fastest"], each["unit"]) for each in found] == [
        (10, "b", "training"),
        (100, "a", "training"),
    ]


def test_what_was_measured_is_the_first_comparison() -> None:
    """Though the imported one has more platforms."""
    found = verdicts("platform,dataset,seconds\na,d,9\nb,d,80\nc,d,70\n", outcomes([torch(1, 0.52)]))
    assert [each["fastest"] for each in found] == ["torch-cpu", "a"]


BESIDE = """
platform,dataset,network,solver,precision,rows,seconds,executors,cores,epoch,trial,machine
mllib,mnist,mlp:784-1024-10,gd,float64,15000,0.01,1,1,1,1,theirs
mllib,mnist,mlp:784-1024-10,gd,float64,15000,0.01,1,1,2,1,theirs
dl4j,mnist,mlp:784-1024-10,gd,,15000,5,1,1,1,1,theirs
"""


def test_beside_what_was_measured_and_in_no_interval_of_it() -> None:
    """The same executors and cores, and far faster: a configuration of its own, and the verdict on MLlib stays."""
    own = outcomes([torch(1, 0.52), torch(2, 0.33), mllib(1, 1, 3.9), mllib(2, 1, 2.1)])
    before = summary(records_table(own), run=RUN, baseline=BASELINE)["comparisons"][0]
    (after,) = verdicts(BESIDE, own)
    for platform in ("torch-cpu", "mllib"):
        assert after["platforms"][platform] == before["platforms"][platform]
    assert after["baseline"] == before["baseline"]
    assert (after["fastest"], after["data_fraction"], after["updates_per_epoch"]) == ("torch-cpu", 0.25, 1)
    assert after["platforms"]["dl4j"]["seconds"] == 5
    _, rows = compared(pl.DataFrame(all_records(own, [imported(BESIDE)])), baseline=BASELINE)
    _, alone = compared(pl.DataFrame(records_table(own)), baseline=BASELINE)
    columns = ["platform", "machine", "executors", "cores", "threads", "mean_seconds", "ci_low", "ci_high", "trials"]
    same = rows.filter(pl.col("origin").is_null()).select(columns)
    assert same.rows() == alone.select(columns).rows()
    theirs = rows.filter(platform="mllib", machine="theirs")
    assert theirs.select("mean_seconds", "trials", "total_cores").rows() == [(0.01, 1, 1)]


def test_the_page_shows_them_with_their_file_and_escapes_every_name() -> None:
    own = outcomes([torch(1, 0.52), torch(2, 0.33), mllib(1, 1, 3.9)])
    text = BESIDE + "=cmd(),mnist,mlp:784-1024-10,gd,,15000,4,2,1,1,1,<script>alert(1)</script>\n"
    table = all_records(own, [imported(text)])
    made = report_files(table, run=RUN, baseline=BASELINE)
    page = made["report.html"].decode()
    assert "imported from theirs.csv" in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    merged = merged_files(own, baseline=BASELINE, brought=[imported(text)])
    assert b",'=cmd()," in merged["comparison.csv"]
    assert b",=cmd()" not in merged["comparison.csv"] + merged["epochs.csv"]
    assert b"<script>" not in merged["comparison.md"]


def test_a_lost_row_is_a_reason_in_the_table() -> None:
    text = "platform,dataset,seconds,executors,status\na,d,9,,\nb,d,,2,failed: out of memory\nc,d,,2,no GPU\n"
    found = only(text)
    assert found["platforms"]["b"]["status"] == "failed: out of memory"
    assert found["platforms"]["c"]["status"] == "not run: no GPU"


@pytest.mark.parametrize("loss", ["nan", "inf"])
def test_a_loss_that_is_no_number_is_never_ranked(loss: str) -> None:
    found = only(f"platform,dataset,seconds,loss\na,d,9,0.3\nb,d,1,{loss}\n")
    assert (found["fastest"], found["platforms"]["b"]["seconds"]) == ("a", None)
    assert "diverged" in found["platforms"]["b"]["status"]
