"""What is done of a run: which attempt a trial still needs, after every history, and that nothing is overwritten."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from models.outcome import OUTCOME, Outcome
from models.run import base_record
from models.spec import Hyperparameters, Network, Resources, TrialSpec
from pipeline.trials import Trials
from store.errors import StoreError
from store.local import LocalStore
from store.protocol import Entry

SPEC = TrialSpec(
    platform="torch-cpu",
    dataset="made",
    data="made",
    network=Network(sizes=(6, 8, 3)),
    resources=Resources(threads=1),
    hyperparameters=Hyperparameters(
        solver="gd", learning_rate=0.5, precision="float32", gradient="autograd", batch_size=None, epochs=2
    ),
    data_fraction=1.0,
    trial=1,
    attempt=1,
    seed=1,
)


def outcome(kind: str, *, attempt: int = 1, spec: TrialSpec = SPEC, position: int = 1) -> Outcome:
    """`ok`, `noisy` (ok, under other load), ...; a `/` and more names the invocation."""
    kind, _, invocation = kind.partition("/")
    noisy = kind.endswith("noisy")
    return Outcome(
        spec=spec.attempted(attempt),
        outcome=kind.removesuffix("noisy").strip() or "ok",
        reason=None,
        noisy=noisy,
        invocation=invocation or "now",
        position=position,
        note=None,
        records=(base_record(spec, run_id="R", machine="m"),),
    )


def trials(folder: Path, *, invocation: str = "now", noisy_repeats: int = 2) -> Trials:
    return Trials(LocalStore(folder), "runs/R/trials", invocation=invocation, noisy_repeats=noisy_repeats)


@pytest.mark.parametrize(
    ("history", "needed"),
    [
        ([], 1),
        (["ok"], None),
        (["ok/earlier"], None),
        (["noisy"], 2),
        (["noisy", "noisy"], 3),
        (["noisy", "noisy", "noisy"], None),
        (["noisy/earlier", "noisy/earlier"], 3),
        (["noisy", "ok"], None),
        (["diverged"], None),
        (["diverged noisy"], 2),
        (["tainted"], 2),
        (["tainted/earlier"], 2),
        (["tainted", "tainted"], None),
        (["tainted", "ok"], None),
        (["tainted", "noisy"], 3),
        (["tainted", "failed"], None),
        (["tainted/earlier", "failed/earlier"], 3),
        (["failed"], None),
        (["failed/earlier"], 2),
        (["failed/earlier", "failed"], None),
        (["failed/earlier", "failed/earlier"], 3),
        (["failed/earlier", "ok"], None),
        (["failed", "failed/another at the same time"], None),
        (["unavailable"], None),
        (["unavailable/earlier"], 2),
        (["unavailable", "unavailable/another at the same time"], None),
    ],
)
def test_what_a_trial_needs_after(history: list[str], needed: int | None, tmp_path: Path) -> None:
    mine = trials(tmp_path)
    for attempt, kind in enumerate(history, 1):
        mine.publish(outcome(kind, attempt=attempt), events=b"", logs={})
    following = mine.needs(SPEC)
    assert (following.attempt if following else None) == needed
    assert mine.done([SPEC]) == (needed is None)


def test_without_repeats_a_noisy_trial_is_done(tmp_path: Path) -> None:
    mine = trials(tmp_path, noisy_repeats=0)
    mine.publish(outcome("noisy"), events=b"", logs={})
    assert mine.needs(SPEC) is None


def test_other_trials_and_configurations_do_not_count(tmp_path: Path) -> None:
    mine = trials(tmp_path)
    mine.publish(outcome("ok", spec=replace(SPEC, trial=11)), events=b"", logs={})
    mine.publish(outcome("ok", spec=replace(SPEC, data_fraction=0.5)), events=b"", logs={})
    assert mine.needs(SPEC) == SPEC


def test_what_another_process_published_is_seen(tmp_path: Path) -> None:
    mine = trials(tmp_path)
    assert mine.needs(SPEC) is not None
    trials(tmp_path, invocation="other").publish(outcome("ok/other"), events=b"", logs={})
    mine.look()
    assert mine.needs(SPEC) is None


class Counting(LocalStore):
    """What it was asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.listed: list[str] = []
        self.had: list[str] = []

    def list(self, path: str) -> list[Entry]:
        self.listed.append(path)
        return super().list(path)

    def read(self, path: str) -> bytes:
        self.had.append(path)
        return super().read(path)


def test_one_listing_tells_of_all_trials_until_one_is_published(tmp_path: Path) -> None:
    specs = [replace(SPEC, trial=number) for number in range(1, 21)]
    earlier = trials(tmp_path)
    for spec in specs:
        earlier.publish(outcome("ok", spec=spec), events=b"", logs={})
    store = Counting(tmp_path)
    mine = Trials(store, "runs/R/trials", invocation="now", noisy_repeats=0)
    for _ in range(2):
        assert [mine.needs(spec) for spec in specs] == [None] * 20
        assert mine.done(specs) == len(mine.outcomes()) == 20
        assert mine.failed(specs) == []
    assert store.listed == ["runs/R/trials"]
    assert len(store.had) == 20
    added = replace(SPEC, trial=21)
    assert mine.needs(added) == added
    mine.publish(outcome("ok", spec=added), events=b"", logs={})
    assert [mine.needs(spec) for spec in (*specs, added)] == [None] * 21
    assert store.listed == ["runs/R/trials"] * 2
    assert len(store.had) == 21


def test_a_fork_looks_for_itself(tmp_path: Path) -> None:
    """As Luigi's workers are: what the others of them published is done."""
    mine = trials(tmp_path)
    assert mine.needs(SPEC) is not None
    trials(tmp_path).publish(outcome("ok"), events=b"", logs={})
    if (child := os.fork()) == 0:
        os._exit(mine.needs(SPEC) is not None)
    assert os.waitpid(child, 0)[1] == 0


def test_the_tenth_attempt_is_later_than_the_ninth(tmp_path: Path) -> None:
    mine = trials(tmp_path)
    for attempt in range(1, 11):
        mine.publish(outcome("failed/earlier", attempt=attempt, position=attempt), events=b"", logs={})
    following = trials(tmp_path).needs(SPEC)
    assert following is not None
    assert following.attempt == 11


def test_outcomes_come_in_the_order_in_which_they_ended(tmp_path: Path) -> None:
    mine = trials(tmp_path)
    for position, trial in ((2, 1), (1, 2), (3, 3)):
        mine.publish(outcome("ok", spec=replace(SPEC, trial=trial), position=position), events=b"", logs={})
    assert [each.position for each in trials(tmp_path).outcomes()] == [1, 2, 3]


def test_only_a_last_attempt_that_failed_is_a_failure(tmp_path: Path) -> None:
    mine = trials(tmp_path)
    other = replace(SPEC, trial=2)
    mine.publish(outcome("failed/earlier"), events=b"", logs={})
    mine.publish(outcome("failed", spec=other), events=b"", logs={})
    mine.publish(outcome("ok", attempt=2), events=b"", logs={})
    assert [each.spec for each in mine.failed([SPEC, other])] == [other]


def test_a_published_attempt_is_never_overwritten(tmp_path: Path) -> None:
    assert trials(tmp_path).publish(outcome("ok"), events=b"first", logs={"eventlog/app/events_1": b"log"})
    path = tmp_path / "runs/R/trials" / SPEC.slug
    before = {each: each.read_bytes() for each in path.rglob("*") if each.is_file()}
    assert not trials(tmp_path).publish(outcome("failed"), events=b"second", logs={})
    assert {each: each.read_bytes() for each in path.rglob("*") if each.is_file()} == before
    assert [each.name for each in path.parent.iterdir()] == [SPEC.slug]


@pytest.mark.parametrize("damage", [b"", b"{", b'{"spec": 1}', b"\xff\xfe", None])
def test_a_damaged_outcome_is_a_sentence_that_says_what_to_do(damage: bytes | None, tmp_path: Path) -> None:
    trials(tmp_path).publish(outcome("ok"), events=b"", logs={})
    path = tmp_path / "runs/R/trials" / SPEC.slug / OUTCOME
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    with pytest.raises(StoreError, match=SPEC.slug) as told:
        trials(tmp_path).needs(SPEC)
    assert "\n" not in str(told.value)
    assert damage is None or "remove" in str(told.value)


def test_what_lies_beside_the_trials_is_no_trial(tmp_path: Path) -> None:
    folder = tmp_path / "runs/R/trials"
    (folder / ".tmp.host.1.abc").mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    assert trials(tmp_path).outcomes() == []
