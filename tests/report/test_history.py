"""The history of a profile: what is said of the newest run, of earlier changes, and of what changed around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from report.history import History, Series, differences, history
from report.history_entry import Measured, RunEntry, entry_of
from report.history_words import lines, regression, row, sentences, small_bars
from report.merge import all_records, records_table, with_run_id
from tests.report.made import BASELINE, QUICK, RUN, START, ended, mllib, outcome, outcomes, torch
from tests.report.test_imported import imported

TORCH = {
    "unit": "epoch", "machine": "made", "machine_memory_gb": 24.0, "dataset": "mnist", "network": "mlp:784-1024-10",
    "platform": "torch-cpu", "solver": "gd", "precision": "float32", "rows": 15_000, "threads": 1,
}  # fmt: skip


def measured(
    values: Iterable[float], *, cpu: str = "one", whole_epochs: int | None = None, **identity: Any
) -> Measured:
    times = tuple(values)
    return Measured(
        identity=TORCH | identity,
        whole_epochs=whole_epochs,
        cpu=cpu,
        seconds=times,
        seconds_per_pass=times,
        passes=1.0,
        by_pass=False,
        noisy=0,
        status="ok" if times else "failed: it broke",
        final_accuracy=0.9,
        loss=0.3,
        startup_seconds=1.0,
    )


def entry(number: int, *found: Measured, **about: Any) -> RunEntry:
    when = START + timedelta(days=number)
    given: dict[str, Any] = {"machine": "made", "cpu": "one", "cores": 2, "memory_gb": 24.0, "commit": "a" * 40}
    given |= {"versions": {"torch": "2.1"}, "settings": {"profile.quick.epochs": 5}, "profile": "quick"} | about
    return RunEntry(
        run_id=f"R{number:02}", begun_at=when, noted_at=when, attempts=sum(map(len, (m.seconds for m in found))) or 1,
        measured=found, **given,
    )  # fmt: skip


def noisy(number: int, level: float, *, trials: int = 5) -> list[float]:
    return [float(level * (1 + each)) for each in np.random.default_rng(number + 1000).normal(0, 0.03, trials)]


def entries(levels: Sequence[float], *, trials: int = 5, **about: Any) -> list[RunEntry]:
    return [entry(n, measured(noisy(n, level, trials=trials)), **about) for n, level in enumerate(levels)]


def told(found: Sequence[RunEntry], **more: Any) -> History:
    return history(found, profile="quick", **more)


def only(found: History) -> Series:
    [series] = found.series
    return series


def test_a_newest_run_that_is_slower_is_said_with_what_changed_beside_it() -> None:
    usual = entries([1.0] * 8)
    newest = entry(
        8, measured(noisy(8, 1.1)), commit="b" * 40, versions={"torch": "2.2"}, settings={"profile.quick.epochs": 6}
    )
    found = told([*usual, newest])
    series = only(found)
    assert found.regressions == [series]
    assert series.newest.standing == "slower"
    assert series.newest.against == 8
    said = " ".join(sentences(found))
    assert said.startswith("The newest run, R08, is slower beyond doubt: torch-cpu, 1 thread is ")
    assert (
        "What changed with it: commit aaaaaaaaaa to bbbbbbbbbb, torch 2.1 to 2.2 and profile.quick.epochs 5 to 6."
        in said
    )
    assert "yarnstick runs compare R07 R08" in said
    assert "\n" not in regression(found)


def test_what_was_measured_beside_other_load_is_to_be_measured_again() -> None:
    disturbed = entry(8, replace(measured(noisy(8, 1.3)), noisy=2))
    found = told([*entries([1.0] * 8), disturbed])
    assert "though 2 of its 5 trials were noisy" in regression(found)
    assert "once more on a quiet machine" in " ".join(sentences(found))


def test_an_unchanged_series_is_no_regression_and_says_so() -> None:
    found = told(entries([1.0] * 12))
    assert found.regressions == found.improvements == []
    assert only(found).newest.standing == "the same"
    assert only(found).shifts == ()
    assert "is as fast as those before it" in sentences(found)[0]


def test_to_run_once_more_does_not_undo_a_regression_until_it_is_taken_as_the_usual() -> None:
    runs = entries([1.0] * 8 + [1.1] * 4)
    found = told(runs)
    [shift] = only(found).shifts
    assert (shift.run_id, shift.before) == ("R08", "R07")
    assert only(found).newest.since == shift
    assert [each.name for each in found.regressions] == ["torch-cpu, 1 thread"]
    assert "since run R08" in sentences(found)[0]
    assert "--since R08" in " ".join(sentences(found))
    accepted = told(runs, since="R08")
    assert accepted.regressions == []
    assert [each.entry.run_id for each in accepted.runs] == ["R08", "R09", "R10", "R11"]


def test_an_old_slowdown_is_the_usual_by_now() -> None:
    found = told(entries([1.0] * 8 + [1.1] * 15))
    assert [shift.run_id for shift in only(found).shifts] == ["R08"]
    assert found.regressions == []
    assert only(found).newest.standing == "the same"


def test_a_regression_that_returns_is_slower_again() -> None:
    found = told(entries([1.0] * 6 + [1.15] * 3 + [1.0] * 6 + [1.15]))
    assert [shift.run_id for shift in only(found).shifts][:2] == ["R06", "R09"]
    assert only(found).newest.standing == "slower"
    assert only(found).newest.against <= 6, "held against the level it came from"


def test_what_became_faster_is_no_regression() -> None:
    found = told(entries([1.0] * 8 + [0.9]))
    assert found.regressions == []
    assert "is faster" in sentences(found)[0]


def test_other_machines_and_processors_are_never_compared() -> None:
    """The newest run is on a machine that is twice as slow; and on the same name with another processor."""
    usual = entries([1.0] * 8)
    for other in (
        entry(8, measured(noisy(8, 2.0), machine="other"), machine="other"),
        entry(8, measured(noisy(8, 2.0), cpu="two"), cpu="two"),
    ):
        found = told([*usual, other])
        assert [each.newest.standing for each in found.series] == ["alone", "absent"]
        assert found.regressions == []
        assert all(not each.shifts for each in found.series)
        assert len({each.name for each in found.series}) == 2, "their names tell them apart"
        said = " ".join(sentences(found))
        assert "It is the first on" in said
        assert "not compared with these" in said


def test_a_kernel_that_keeps_a_little_more_memory_is_no_other_machine() -> None:
    runs = [
        entry(n, measured(noisy(n, 1.0), machine_memory_gb=memory)) for n, memory in enumerate((23.98, 24.03, 24.0))
    ]
    assert only(told(runs)).newest.against == 2


def test_one_run_has_nothing_to_be_held_against() -> None:
    found = told(entries([1.0]))
    assert only(found).newest.standing == "alone"
    assert found.regressions == []
    assert "once more" in " ".join(sentences(found))


def test_too_few_trials_are_said_to_be_too_few() -> None:
    found = told(entries([1.0, 2.0], trials=3))
    assert only(found).newest.standing == "too few"
    assert found.regressions == []
    assert "profile.quick.trials = 5" in " ".join(sentences(found))
    assert told(entries([1.0, 1.0, 2.0], trials=3)).regressions, "pooled with another run they are enough"


def test_a_run_with_only_failed_trials_has_no_time_and_hides_no_other() -> None:
    broken = entry(8, measured(()))
    found = told([*entries([1.0] * 8), broken])
    assert only(found).newest.standing == "no time"
    said = " ".join(sentences(found))
    assert "R08, has no time of any configuration" in said
    assert "torch-cpu, 1 thread (failed: it broke)" in said
    after = told([*entries([1.0] * 8), broken, entry(9, measured(noisy(9, 1.0)))])
    assert only(after).newest.standing == "the same"
    assert "·" in row(only(after)).bars
    nothing = told([broken])
    assert nothing.series[0].timed == []
    assert "Without a time in any run" in "\n".join(lines(nothing, table=()))


def test_holm_is_over_the_configurations_of_the_newest_run() -> None:
    """A p that would do alone does not among many that were tested."""

    def run(n: int, level: float) -> RunEntry:
        others = [measured(noisy(100 * n + k, 1.0), threads=k) for k in range(2, 30)]
        return entry(n, measured(noisy(n, level)), *others)

    alone = told([entry(n, measured(noisy(n, 1.0))) for n in range(6)] + [entry(6, measured(noisy(6, 1.045)))])
    among = told([run(n, 1.0) for n in range(6)] + [run(6, 1.045)])
    [same] = [each for each in among.series if each.identity["threads"] == 1]
    p, corrected = only(alone).newest.p, same.newest.p
    assert p is not None
    assert corrected is not None
    assert p < 0.05 < corrected == pytest.approx(min(1.0, 29 * p))


def test_differences_name_what_a_reader_has_to_know() -> None:
    one = entry(0)
    assert differences(one, entry(1)) == ()
    settings = {f"profile.quick.{name}": 1 for name in "abcdef"} | {"profile.quick.epochs": 5}
    other = entry(1, machine="b", cpu="two", cores=4, memory_gb=32.1, commit=None, versions={}, settings=settings)
    assert differences(one, other) == (
        "machine made to b", "cpu one to two", "cores 2 to 4", "memory 24 to 32 GB", "commit aaaaaaaaaa to none",
        "torch 2.1 to none", *(f"profile.quick.{name} none to 1" for name in "abcd"), "2 more settings",
    )  # fmt: skip


def test_records_of_a_run_become_an_entry() -> None:
    found = [*outcomes(QUICK, trials=3, noise=0.01), ended(outcome(torch(4, 0.2)), "failed", reason="it broke")]
    table = records_table(found)
    made = entry_of(table, run=RUN, baseline=BASELINE, begun_at=START, noted_at=START)
    by_name = {(each.identity["platform"], each.identity.get("threads")): each for each in made.measured}
    one = by_name["torch-cpu", 1]
    assert len(one.seconds) == 3
    records = [
        [record.seconds for record in each.records if not record.warmup]
        for each in found
        if each.spec.platform == "torch-cpu" and each.spec.resources.threads == 1
    ]
    assert sorted(one.seconds) == pytest.approx(sorted(float(np.mean(each)) for each in records))  # type: ignore[arg-type]
    assert one.cpu == RUN.cpu
    assert "run_id" not in one.identity
    assert by_name["torch-cuda", None].seconds == ()
    assert by_name["torch-cpu", 4].status == "failed: it broke"


def test_iterations_of_several_passes_are_compared_by_the_pass() -> None:
    """Twice the passes in as much more time is no regression."""

    def run(n: int, passes: int) -> RunEntry:
        made = mllib(1, 1, 1.0 * passes, solver="l-bfgs", passes=passes)
        table = records_table(outcomes([made], trials=5, noise=0.01, seed=n))
        run = replace(RUN, run_id=f"R{n}")
        return entry_of(table, run=run, baseline=BASELINE, begun_at=START + timedelta(days=n), noted_at=START)

    found = told([*(run(n, 1) for n in range(4)), run(4, 2)])
    assert only(found).unit == "a pass over the rows"
    assert only(found).newest.standing == "the same"


def test_whole_trainings_of_other_lengths_are_other_series() -> None:
    times = [f"sk,mnist,{10 * epochs + 0.1 * trial},{epochs},{trial}" for epochs in (10, 20) for trial in range(1, 7)]
    table = all_records([], [imported("\n".join(["platform,dataset,seconds,epochs,trial", *times]))])
    found = told([entry_of(table, run=RUN, baseline=BASELINE, begun_at=START, noted_at=START)])
    assert sorted((each.name, each.newest.standing) for each in found.series) == [
        ("sk, a training of 10 epochs", "alone"), ("sk, a training of 20 epochs", "alone")
    ]  # fmt: skip
    assert [each.identity["whole_epochs"] for each in found.series] == [10, 20]
    assert found.regressions == []


def test_what_one_run_has_twice_is_one_point() -> None:
    """A merge of two runs that measured the same, the later one slower."""
    parts = [
        with_run_id(records_table(outcomes([torch(1, seconds)], trials=6, noise=0.01, seed=n)), f"R{n}")
        for n, seconds in enumerate((1.0, 2.0))
    ]
    merged = entry_of(pa.concat_tables(parts), run=RUN, baseline=BASELINE, begun_at=START, noted_at=START)
    assert len(merged.measured) == 2
    series = only(told([merged]))
    [point] = series.points
    assert (len(point.values), series.newest.standing, series.shifts) == (12, "alone", ())


def test_small_bars_do_not_make_much_of_little() -> None:
    assert small_bars([1.0, None, 2.0]) == "▁·█"
    assert small_bars([1.0, 1.01]) == "▁▁"
    assert small_bars([None]) == "·"
    assert len(small_bars([1.0] * 100)) == 24
