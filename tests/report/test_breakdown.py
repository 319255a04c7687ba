"""Where an epoch's seconds went: the parts sum to them whatever is known, and are told as they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.outcome import Outcome
from models.probes import MachineProbes
from report import factors, spent
from report.breakdown import FLOOR, PRECISION, REST, Breakdown, breakdowns
from report.comparison import compared
from report.merge import records_table
from report.page import report_files, summary
from report.verdict import Comparison, comparisons
from tests.report.made import BASELINE, PROBES, QUICK, RUN, SHARES, SPEED, Made, mllib, outcomes, torch, with_records


def comparison(found: Sequence[Outcome]) -> Comparison:
    import polars as pl

    _, configurations = compared(pl.DataFrame(records_table(found)), baseline=BASELINE)
    return comparisons(configurations, baseline=BASELINE)[0]


def broken(found: Sequence[Outcome], *, probes: Sequence[MachineProbes] = (PROBES,), **identity: object) -> Breakdown:
    every = breakdowns(comparison(found), precision="float32", probes=probes)
    same = [each for each in every if all(each.row[name] == value for name, value in identity.items())]
    assert len(same) == 1
    return same[0]


def floor(*, precision: str, cores: int, rows: int = 15_000) -> float:
    """The contract's formula, by hand."""
    return rows * (4 * 784 * 1024 + 6 * 1024 * 10) / (cores * SPEED[precision])


def test_mllib_is_told_apart() -> None:
    each = broken(outcomes(noise=0.0), platform="mllib", executors=2)
    parts = dict(each.parts)
    assert each.floor == pytest.approx(floor(precision="float64", cores=2))
    assert parts[FLOOR] == pytest.approx(floor(precision="float32", cores=2))
    assert parts[FLOOR] + parts[PRECISION] == pytest.approx(each.floor)
    for name, share in SHARES.items():
        assert parts[name] == pytest.approx(share * 2.1)
    assert sum(parts.values()) == pytest.approx(each.seconds) == pytest.approx(2.1)


def test_torch_has_a_floor_and_a_rest() -> None:
    each = broken(outcomes(noise=0.0), platform="torch-cpu", threads=2)
    assert list(each.parts) == [FLOOR, REST]
    assert each.parts[FLOOR] == pytest.approx(floor(precision="float32", cores=2))
    assert sum(each.parts.values()) == pytest.approx(0.33)


def test_a_coarser_precision_than_the_baselines_has_only_its_own_floor() -> None:
    each = broken(outcomes([torch(1, 0.2, precision="bfloat16"), torch(1, 0.5)], noise=0.0), precision="bfloat16")
    assert (list(each.parts), each.reference) == ([FLOOR, REST], "bfloat16")


@pytest.mark.parametrize("probes", [(), (replace(PROBES, machine="another"),), (replace(PROBES, peaks=()),)])
def test_without_the_other_precisions_peak_the_floor_is_one_part(probes: tuple[MachineProbes, ...]) -> None:
    each = broken(outcomes(noise=0.0), probes=probes, platform="mllib", executors=2)
    assert PRECISION not in each.parts
    assert each.parts[FLOOR] == pytest.approx(floor(precision="float64", cores=2))
    assert "the arithmetic at this machine's speed in float64" in spent.whole(comparison(outcomes()), each)


def test_without_a_floor_there_is_the_ledger_alone() -> None:
    found = [with_records(each, floor_seconds=None) for each in outcomes(noise=0.0)]
    each = broken(found, platform="mllib", executors=2)
    assert (each.floor, FLOOR in each.parts, each.below_floor) == (None, False, False)
    assert sum(each.parts.values()) == pytest.approx(each.seconds)
    assert "whose least time on this machine is not known" in spent.whole(comparison(found), each)


def test_without_either_there_is_nothing_and_the_page_says_so() -> None:
    found = [with_records(each, floor_seconds=None, compute=None) for each in outcomes()]
    assert breakdowns(comparison(found), precision="float32", probes=(PROBES,)) == []
    files = report_files(records_table(found), run=RUN, baseline=BASELINE)
    assert "Neither a ledger nor a floor is known here." in files["report.html"].decode()
    assert "figures/ledger.svg" not in files


def test_faster_than_the_probe_is_said() -> None:
    found = outcomes([mllib(1, 1, 0.5), torch(1, 0.3)])
    each = broken(found, platform="mllib")
    assert each.below_floor
    assert min(each.parts.values()) >= 0
    assert sum(each.parts.values()) == pytest.approx(each.seconds)
    whole = comparison(found)
    every = breakdowns(whole, precision="float32", probes=(PROBES,))
    assert "the machine was slower while its speed was probed" in spent.whole(whole, each)
    assert "2 bars end below the floor" in spent.of_ledger(whole, every, len(every))


def test_passes_are_told_apart_where_passes_are_ranked() -> None:
    found = outcomes([replace(mllib(1, 1, 6.0), passes=2), torch(1, 0.5)], noise=0.0)
    each = broken(found, platform="mllib")
    assert each.seconds == pytest.approx(3.0)
    assert each.floor == pytest.approx(floor(precision="float64", cores=1))
    assert sum(each.parts.values()) == pytest.approx(3.0)
    assert "a pass over the rows" in spent.whole(comparison(found), each)


@given(
    seconds=st.floats(1e-4, 1e4), executors=st.integers(1, 8), cores=st.integers(1, 8), passes=st.integers(1, 5),
    precision=st.sampled_from(sorted(SPEED)), known=st.booleans(), ledger=st.booleans(),
)  # fmt: skip
def test_parts_are_never_negative_and_sum_to_the_seconds(
    seconds: float, executors: int, cores: int, passes: int, precision: str, known: bool, ledger: bool
) -> None:
    made = replace(mllib(executors, cores, seconds), passes=passes, precision=precision, ledger=ledger)
    probes = (PROBES,) if known else ()
    for each in breakdowns(comparison(outcomes([made], trials=1)), precision="float32", probes=probes):
        assert min(each.parts.values()) >= 0
        assert sum(each.parts.values()) == pytest.approx(each.seconds)


def test_the_sentence_names_all_that_matters() -> None:
    found = outcomes(noise=0.0)
    said = spent.whole(comparison(found), broken(found, platform="mllib", executors=2))
    assert said == (
        "Of Spark MLlib's 2.1 s an epoch (2 executors x 1 core), 0.20 s is the arithmetic at this machine's speed in "
        "float32 with 2 cores, 0.20 s more is float64 instead of float32, 1.3 s slower arithmetic (VectorBLAS; the "
        "fetch of the weights is in it), 0.13 s the driver, 84 ms scheduling, 63 ms communication, 42 ms garbage "
        "collection, 31 ms what the ledger cannot tell and 10 ms the rest (less than 1 % each)."
    )


BOTH = (*QUICK, torch(1, 1.1, precision="float64"), torch(2, 0.66, precision="float64"))


def test_torch_in_float64_stands_between_precision_and_runtime() -> None:
    whole = comparison(outcomes(BOTH))
    (each,) = factors.splits(whole, platform="torch-cpu", precision="float32")
    assert each.precision.value * each.runtime.value == pytest.approx(each.whole.value)
    assert each.precision.value == pytest.approx(2.0, rel=0.05)
    assert each.runtime.value == pytest.approx(2.1 / 0.66, rel=0.05)
    said = spent.split(whole, each)
    assert said.startswith("torch-cpu with 2 threads needs 0.33 s an epoch in float32 and 0.66 s in float64: of the ")
    assert "is the precision" in said


def test_no_split_where_torch_did_not_run_with_as_many_cores() -> None:
    made = [*QUICK, torch(1, 1.1, precision="float64")]
    assert factors.splits(comparison(outcomes(made)), platform="torch-cpu", precision="float32") == []
    assert factors.splits(comparison(outcomes()), platform="torch-cpu", precision="float32") == []


def test_precision_and_gradient_are_factors_of_their_own() -> None:
    made: list[Made] = [*BOTH, torch(1, 0.42, gradient="manual")]
    found = factors.factors(comparison(outcomes(made, noise=0.0)), precision="float32")
    assert [(each.what, each.row["threads"]) for each in found] == [
        ("precision", 2), ("precision", 1), ("gradient", 1),
    ]  # fmt: skip
    manual = found[-1]
    assert manual.ratio.value == pytest.approx(0.42 / 0.52)
    assert spent.factor(manual).startswith("the manual gradient takes 0.808x")
    assert spent.factor(manual).endswith("of autograd on torch-cpu (1 thread, float32)")
    assert spent.factor(found[0]).startswith("float64 takes 2.0x")


def test_page_verdict_and_terminal_say_the_same() -> None:
    table = records_table(outcomes(BOTH))
    verdict = summary(table, run=RUN, baseline=BASELINE)
    whole, split = (
        next(text for text in verdict["comparisons"][0]["sentences"] if text.startswith(start))
        for start in ("Of Spark MLlib's", "torch-cpu with 2 threads needs")
    )
    assert {whole, split} <= set(verdict["first_lines"])
    files = report_files(table, run=RUN, baseline=BASELINE)
    assert json.loads(files["verdict.json"]) == json.loads(json.dumps(verdict))
    assert [each["value"] for each in verdict["comparisons"][0]["factors"]] == ["float64", "float64"]
    probes = json.loads(files["environment.json"])["probes"]
    assert probes[0]["peaks"][0] == {"precision": "float64", "threads": 1, "flops": SPEED["float64"]}


def test_of_many_configurations_the_best_are_shown() -> None:
    files = report_files(
        records_table(outcomes([torch(n, 1 / n) for n in range(1, 31)], trials=1)), run=RUN, baseline=BASELINE
    )
    assert "16 of 30 configurations shown; the table has all." in files["report.html"].decode()


def test_a_machine_that_was_busy_while_probed_is_named() -> None:
    busy = replace(RUN, probes=(replace(PROBES, other_load=0.8),))
    table = records_table(outcomes())
    said = "thers kept 0.80 cores of made busy while its matrix product was measured: its floors are rather too high"
    assert f"O{said}." in summary(table, run=busy, baseline=BASELINE)["first_lines"]
    assert f"O{said}" in report_files(table, run=busy, baseline=BASELINE)["report.html"].decode()
    assert said not in "".join(summary(table, run=RUN, baseline=BASELINE)["first_lines"])
