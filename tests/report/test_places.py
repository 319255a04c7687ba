"""Records of several machines, runs and files in one report: nothing is drawn or said across them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from report import captions, factors, marginal, spent
from report.analysis import Analysis
from report.cost import questions
from report.figure_cores import line_name, lines_of
from report.figure_scaling import scaling_figure
from report.merge import all_records, records_table
from report.page import report_files, summary
from report.verdict import Comparison
from tests.report.made import BASELINE, RUN, Made, mllib, outcomes, torch, torch_spark, with_records
from tests.report.test_imported import imported

PALETTE = dict.fromkeys(("torch-cpu", "torch-spark", "mllib"), ("#000000", "circle"))
# The faster box ran two sizes, the slower one three.
BOX, EDGE = [torch(1, 0.20), torch(2, 0.11)], [torch(1, 0.80), torch(2, 0.42), torch(4, 0.22)]


def on(machine: str, made: Sequence[Made], *, run_id: str = "A") -> pa.Table:
    return records_table([with_records(each, machine=machine, run_id=run_id) for each in outcomes(made, noise=0.0)])


def of(*tables: pa.Table) -> Comparison:
    (found,) = Analysis.of(pa.concat_tables(tables), run=RUN, baseline=BASELINE).found
    return found


def two_machines() -> Comparison:
    return of(on("gpu-box", BOX), on("edge", EDGE, run_id="B"))


def test_each_machine_has_its_own_steps() -> None:
    assert [text.partition(",")[0] for text in marginal.said(marginal.lines(two_machines()))] == [
        "torch-cpu (gpu-box) gains by every thread up to 2 threads",
        "torch-cpu (edge) gains by every thread up to 4 threads",
    ]
    told = [marginal.to_json(line) for line in marginal.lines(two_machines())]
    assert [(each["platform"], each["machine"]) for each in told] == [("torch-cpu", "gpu-box"), ("torch-cpu", "edge")]


def test_what_more_cores_brought_is_said_of_each_machine() -> None:
    assert captions.of_cores(two_machines()) == (
        "torch-cpu (gpu-box) is 1.82x as fast with 2 cores as with 1; "
        "torch-cpu (edge) is 3.6x as fast with 4 cores as with 1."
    )


def test_each_machine_has_its_own_line_whose_label_tells_it() -> None:
    found = two_machines()
    lines = lines_of(found)
    assert [[row["threads"] for row in line] for line in lines] == [[1, 2], [1, 2, 4]]
    assert [line_name(found, line, lines) for line in lines] == ["torch-cpu, gpu-box", "torch-cpu, edge"]


def test_one_machine_is_that_of_the_baseline() -> None:
    found = two_machines()
    assert found.baseline is not None
    assert found.machine is not None
    assert [(row["machine"], row["threads"]) for row in (found.baseline, found.machine)] == [
        ("gpu-box", 1), ("gpu-box", 2),
    ]  # fmt: skip
    page = report_files(
        pa.concat_tables([on("gpu-box", BOX), on("edge", EDGE)]), run=RUN, baseline=BASELINE
    )["report.html"].decode()  # fmt: skip
    assert "most threads: torch-cpu, 2 threads, gpu-box" in page


def test_a_baselines_machine_with_one_size_is_named() -> None:
    found = of(on("gpu-box", BOX[:1]), on("edge", [*EDGE, mllib(1, 1, 3.2)]))
    reasons = {each.against: each.no_baseline for each in questions(found, spec=BASELINE)}
    assert reasons["one machine"] == "torch-cpu (gpu-box) ran with one number of threads only"


def test_precision_and_runtime_are_told_apart_on_one_machine() -> None:
    slow = [torch(1, 0.80), torch(1, 1.60, precision="float64"), mllib(1, 1, 3.2)]
    found = of(on("gpu-box", [torch(1, 0.20)]), on("edge", slow))
    (each,) = factors.splits(found, platform="torch-cpu", precision="float32")
    assert [each.precision.value, each.runtime.value] == pytest.approx([2.0, 2.0], rel=0.01)
    assert spent.split(found, each).startswith(
        "torch-cpu (edge) with 1 thread needs 0.80 s an epoch in float32 and 1.6 s in float64: of the 4.0x that "
        "Spark MLlib takes with as many cores"
    )


def test_arithmetic_is_shared_on_the_machine_where_it_was_measured() -> None:
    fast, slow = ([torch_spark(1, 1, factor * 0.5), torch_spark(2, 1, factor * 0.26)] for factor in (1, 4))
    found = of(on("gpu-box", fast), on("edge", slow))
    figure = scaling_figure(found, name="scaling", palette=PALETTE)
    assert figure is not None
    assert "With 2 executors x 1 core (gpu-box) 1.2 % of torch-spark's" in figure.sentence
    assert "with 2 executors x 1 core (edge) 0.29 % of torch-spark's" in figure.sentence
    # 0.98 of the smallest configuration's seconds, over the executors.
    assert [row[:3:2] for row in figure.table.rows] == [
        ("torch-spark (gpu-box), 1 executor x 1 core", "0.490 s"),
        ("torch-spark (gpu-box), 2 executors x 1 core", "0.245 s"),
        ("torch-spark (edge), 1 executor x 1 core", "1.96 s"),
        ("torch-spark (edge), 2 executors x 1 core", "0.980 s"),
    ]


THEIRS = "platform,dataset,network,solver,precision,executors,cores,rows,seconds,epoch,trial,machine\n" + "".join(
    f"mllib,mnist,mlp:784-1024-10,gd,float64,{executors},1,15000,0.2{trial},2,{trial},their-cluster\n"
    for executors in (8, 16)
    for trial in (1, 2, 3)
)


def test_imported_points_are_no_part_of_a_measured_line() -> None:
    own = outcomes([torch(1, 0.5), mllib(1, 1, 3.9), mllib(2, 1, 2.1)], noise=0.0)
    found = of(all_records(own, [imported(THEIRS)]))
    lines = lines_of(found)
    assert [[(row["platform"], row["executors"]) for row in line] for line in lines] == [
        [("torch-cpu", None)], [("mllib", 8), ("mllib", 16)], [("mllib", 1), ("mllib", 2)],
    ]  # fmt: skip
    assert line_name(found, lines[1], lines) == "Spark MLlib,\nimported from their…,\ntheir-cluster"
    assert captions.of_cores(found) == (
        "Spark MLlib (imported from theirs.csv, their-cluster) is 1.00x as fast with 16 cores as with 8; "
        "Spark MLlib (made) is 1.86x as fast with 2 cores as with 1."
    )


def test_runs_of_one_machine_are_told_apart_by_their_names() -> None:
    """As their configurations are."""
    found = of(*(on("edge", EDGE, run_id=run_id) for run_id in ("A", "B")))
    assert [line.place for line in marginal.lines(found)] == [{"run_id": "A"}, {"run_id": "B"}]
    lines = lines_of(found)
    assert {line_name(found, line, lines) for line in lines} == {"torch-cpu, run A", "torch-cpu, run B"}


def test_every_platform_has_a_line_before_one_has_two() -> None:
    made = [*EDGE, mllib(1, 1, 3.2), mllib(2, 1, 1.7)]
    found = of(*(on("edge", made, run_id=run_id) for run_id in "ABC"))
    assert [line[0]["platform"] for line in lines_of(found)] == ["torch-cpu", "mllib"] * 3


def test_of_one_run_on_one_machine_no_place_is_told() -> None:
    found = of(on("edge", EDGE))
    lines = lines_of(found)
    assert line_name(found, lines[0], lines) == "torch-cpu"
    assert marginal.said(marginal.lines(found))[0].startswith("torch-cpu gains by every thread")
    (told,) = summary(on("edge", EDGE), run=RUN, baseline=BASELINE)["comparisons"]
    assert not {"machine", "origin", "run_id"} & told["marginal"][0].keys()
