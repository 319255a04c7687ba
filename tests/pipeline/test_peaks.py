"""The speed of the matrix product: measured once for a run and machine, kept with it, and never in the way of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import pipeline.peaks
from models.probes import Peak, PeakKey
from pipeline.peaks import Probing, machine_peaks, read_probes
from store.errors import StoreError
from store.local import LocalStore

HOW = Probing(machine="here", cpu="a processor", seconds=0.01, noisy_cores=1e9, repeats=0)
ONE, TWO = PeakKey(precision="float32", threads=1), PeakKey(precision="float64", threads=1)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def looks(monkeypatch: pytest.MonkeyPatch, *speeds: float) -> list[list[PeakKey]]:
    """What would be measured, in place of the processes that do."""
    asked: list[list[PeakKey]] = []

    def look(keys: Sequence[PeakKey], seconds: float) -> list[Peak]:
        asked.append(list(keys))
        return [Peak(precision=key.precision, threads=key.threads, flops=speeds[len(asked) - 1]) for key in keys]

    monkeypatch.setattr(pipeline.peaks, "_look", look)
    return asked


def test_a_process_measures_and_the_run_keeps_it(store: LocalStore) -> None:
    found = machine_peaks(store, "runs/R", [ONE, TWO], how=HOW)
    assert [peak.key for peak in found] == [ONE, TWO]
    assert min(peak.flops for peak in found) > 1e8
    (kept,) = read_probes(store, "runs/R")
    assert (kept.machine, kept.cpu, kept.peaks) == ("here", "a processor", found)


def test_once_for_a_run_and_only_what_is_missing(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = looks(monkeypatch, 1e9, 2e9)
    machine_peaks(store, "runs/R", [ONE], how=HOW)
    machine_peaks(store, "runs/R", [ONE], how=HOW)
    found = machine_peaks(store, "runs/R", [ONE, TWO], how=HOW)
    assert asked == [[ONE], [TWO]]
    assert [peak.flops for peak in found] == [1e9, 2e9]


def test_another_machine_measures_for_itself(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    looks(monkeypatch, 1e9, 2e9)
    machine_peaks(store, "runs/R", [ONE], how=HOW)
    found = machine_peaks(store, "runs/R", [ONE], how=replace(HOW, machine="there"))
    assert [peak.flops for peak in found] == [2e9]
    assert [(each.machine, each.peak("float32", 1)) for each in read_probes(store, "runs/R")] == [
        ("here", 1e9),
        ("there", 2e9),
    ]


def test_a_busy_machine_is_looked_at_again_and_the_best_counts(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = looks(monkeypatch, 1e9, 3e9, 2e9)
    found = machine_peaks(store, "runs/R", [ONE], how=replace(HOW, noisy_cores=-1.0, repeats=2))
    assert (len(asked), found[0].flops) == (3, 3e9)


def test_none_are_asked_for(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = looks(monkeypatch)
    assert machine_peaks(store, "runs/R", [ONE], how=replace(HOW, seconds=0.0)) == ()
    assert machine_peaks(store, "runs/R", [], how=HOW) == ()
    assert (asked, read_probes(store, "runs/R")) == ([], ())


def test_a_process_that_fails_leaves_a_run_without_floors(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python")
    assert machine_peaks(store, "runs/R", [ONE], how=HOW) == ()
    assert "could not be measured" in caplog.text
    assert read_probes(store, "runs/R") == ()


def test_a_damaged_file_is_named(store: LocalStore) -> None:
    store.write("runs/R/probes.json", b"{")
    with pytest.raises(StoreError, match=r"runs/R/probes.json is damaged .*; remove it and run again"):
        machine_peaks(store, "runs/R", [ONE], how=HOW)
