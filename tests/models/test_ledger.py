"""Where a job's and an epoch's seconds went, on made tasks whose path is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.critical_path import PARTS, parts, slots
from models.event_log import Job, read_event_log
from models.ledger import amortized, ledger, spans
from models.outcome import Outcome
from models.record import LEDGER
from models.spark_events import TaskEnd
from tests.models.spark_logs import RECORDED, added, ended, lines, started, task, whole


def tasks(*events: dict[str, Any]) -> list[TaskEnd]:
    return [msgspec.convert(event, TaskEnd) for event in events]


def seconds(found: dict[str, float]) -> dict[str, float]:
    return {part: value for part, value in found.items() if value}


ONE = {"0": 1, "1": 1}


def test_a_task_is_split_by_its_metrics() -> None:
    """Of 1000 ms: 100 until its launch, 800 of the task, 100 after it."""
    one = task(0, at=100, until=900, run=500, deserialize=60, serialize=10, gc=50, wait=30, getting=880)
    assert seconds(parts(tasks(one), room=ONE, began=0, ended=1000)) == {
        "compute": 420,  # run less gc and fetching
        "comm": 50,  # fetching, and 20 until the result was there
        "scheduling": 410,  # 200 outside, 210 that the task's own metrics do not tell
        "gc": 50,
        "serialization": 70,
    }


def test_of_several_waves_the_chain_of_the_last_slot_counts() -> None:
    """Executor 1 ends last, with two tasks; the three of executor 0 ran beside them."""
    beside = [task(0, at=at, until=at + 100, run=100, executor="0", index=at) for at in (0, 100, 200)]
    chain = [
        task(0, at=0, until=300, run=300, executor="1", index=5),
        task(0, at=310, until=500, run=100, gc=40, executor="1", index=6),
    ]
    found = parts(tasks(*beside, *chain), room=ONE, began=0, ended=500)
    assert seconds(found) == {"compute": 360, "gc": 40, "scheduling": 100}  # 10 between, 90 in the second


def test_the_path_goes_on_in_the_stage_before() -> None:
    """A shuffle: the last task of stage 1 waits for the slowest of stage 0, on another executor."""
    made = [
        task(0, at=0, until=100, run=100, executor="0"),
        task(0, at=0, until=400, run=400, executor="1"),
        task(1, at=420, until=500, run=80, wait=30, executor="0"),
    ]
    found = parts(tasks(*made), room=ONE, began=0, ended=500)
    assert seconds(found) == {"compute": 450, "comm": 30, "scheduling": 20}


def test_an_executor_gives_a_slot_back_before_the_driver_notes_the_end() -> None:
    """As recorded: the next task is launched 34 ms before the one before it has finished, on one core."""
    made = tasks(task(0, at=0, until=134, run=100), task(0, at=100, until=200, run=100))
    assert slots(made, room={"0": 1}) == [0, 0]
    assert slots(made, room={"0": 2}) == [0, 1]
    assert seconds(parts(made, room={"0": 1}, began=0, ended=200)) == {"compute": 200}


def test_where_tasks_are_missing_nothing_is_claimed() -> None:
    one = tasks(task(0, at=100, until=400, run=300))
    assert seconds(parts(one, room=ONE, began=0, ended=1000, complete=False)) == {"compute": 300}
    assert seconds(parts([], room=ONE, began=0, ended=1000, complete=False)) == {}


def test_a_stage_whose_tasks_the_log_lost_shows_as_other(tmp_path: Path) -> None:
    log = tmp_path / "app"
    events = whole(
        started(0, stage=0, name="treeAggregate at LBFGS.scala:261", at=0, tasks=2),
        task(0, at=100, until=400, run=300),
        ended(0, at=1000),
    )
    log.write_bytes(lines(events))
    job = read_event_log(log).jobs[0]
    assert ledger([job], end=1.0) == pytest.approx(dict.fromkeys(LEDGER, 0.0) | {"compute": 0.3, "other": 0.7})


MADE = st.lists(
    st.tuples(
        st.integers(0, 3),  # stage
        st.sampled_from("012"),
        st.integers(0, 1000),
        st.integers(0, 400),
        st.tuples(*[st.integers(0, 500)] * 5),
    ),
    max_size=12,
)


@given(MADE, st.integers(0, 300), st.integers(0, 1500))
def test_the_parts_of_any_job_are_its_seconds(made: list[Any], began: int, lasts: int) -> None:
    events = [
        task(stage, at=at, until=at + lasted, executor=executor, index=index, run=m[0], deserialize=m[1], gc=m[2])
        for index, (stage, executor, at, lasted, m) in enumerate(made)
    ]
    found = parts(tasks(*events), room={"0": 1, "1": 2}, began=began, ended=began + lasts)
    assert set(found) == set(PARTS)
    assert min(found.values()) >= 0
    assert sum(found.values()) == pytest.approx(lasts)


def passes(*times: tuple[float, float]) -> list[Job]:
    return [
        Job(
            number=number,
            name="treeAggregate at GradientDescent.scala:247",
            group="g",
            began=began,
            ended=end,
            cpu_seconds=1.0,
            parts={"compute": (end - began) / 2, "gc": (end - began) / 4},
        )
        for number, (began, end) in enumerate(times)
    ]


def test_an_epoch_has_its_passes_and_the_drivers_work_after_each() -> None:
    first, second = spans(passes((1, 2), (2.5, 3.5), (4, 5), (6, 7)), [2, 1])
    assert (first.seconds, first.passes, first.clock) == (3.0, 2, "eventlog")
    assert first.ledger == {
        "compute": 1.0, "gc": 0.5, "driver": 1.0, "other": 0.5, "comm": 0, "scheduling": 0, "serialization": 0,
    }  # fmt: skip
    assert (second.seconds, second.ledger["driver"]) == (2.0, 1.0)


def test_of_amortized_epochs_each_pass_has_the_mean_of_everything() -> None:
    """Else the warm-up, which is left out, would take a pass with it and leave its seconds to the others."""
    found = list(amortized(passes((1, 2), (2.5, 3.5), (5, 6)), 2))
    assert [(span.passes, span.clock) for span in found] == [(2, "amortized"), (1, "amortized")]
    assert [span.seconds for span in found] == pytest.approx([10 / 3, 5 / 3])
    for span in found:
        assert sum(span.ledger.values()) == pytest.approx(span.seconds)
        assert span.ledger["driver"] == pytest.approx(2 / 3 * span.passes)


@pytest.mark.parametrize("trial", sorted((RECORDED / "trials").iterdir()), ids=lambda path: path.name)
def test_the_recorded_epochs_are_told_in_full(trial: Path) -> None:
    for record in Outcome.decode((trial / "outcome.json").read_bytes()).records:
        assert record.seconds is not None
        columns = {name: getattr(record, name) for name in LEDGER}
        assert sum(columns.values()) == pytest.approx(record.seconds, abs=1e-9)
        assert columns["other"] <= 0.1 * record.seconds
        assert min(columns.values()) >= 0


def test_an_executor_with_two_cpus_a_task_has_half_the_slots(tmp_path: Path) -> None:
    log = tmp_path / "app"
    about = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.task.cpus": "2"}}
    log.write_bytes(lines([added("0", cores=4), about]))
    assert read_event_log(log).room == {"0": 2}
