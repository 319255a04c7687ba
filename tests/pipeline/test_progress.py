"""What a person sees: plain lines in a file, on a terminal also the epoch that runs, and where the time went."""

from __future__ import annotations

import re

import pytest

from models.spec import Hyperparameters, Network, Resources, TrialSpec
from pipeline.progress import CLEAR, describe, duration
from tests.pipeline.conftest import Finished
from tests.pipeline.place import Place


def test_without_a_terminal_there_is_a_line_for_each_step_and_trial(finished: Finished) -> None:
    lines = finished.done.stdout.splitlines()
    assert re.fullmatch(r"run R begins, 6 trials \(profile tiny, file://.*/build/store\)", lines[0])
    assert lines[1:5] == [
        f"synthetic:200x6x3: {step}"
        for step in ("reads the raw data", "finds the range of its values", "normalizes", "packs")
    ]
    trials = [re.fullmatch(r"\[(\d)/6\] synthetic:200x6x3 mlp:6-8-3 .*: .* s an epoch.*", line) for line in lines[5:11]]
    assert [trial and trial[1] for trial in trials] == list("123456")
    assert re.fullmatch(r"measured 6 trials in (\d+ min )?\d+ s, \d+ % of it training", lines[11])
    assert "\x1b" not in finished.done.stdout
    assert "\r" not in finished.done.stdout


def test_on_a_terminal_the_epoch_that_runs_is_shown_in_its_width(place: Place) -> None:
    one = ("--set", "profile.tiny.cores=1", "--set", "profile.tiny.trials=1")
    shown = place.run_on_terminal("run", "--profile", "tiny", *one, columns=60, MADE_SLEEP="0.3")
    assert "\r\x1b[K[1/1] synthetic:200x6x3 mlp:6-8-3 steady 1 x 1 cores gd fl" in shown
    status = [line for line in shown.split(CLEAR) if line.startswith("[1/1]") and not line.endswith("\n")]
    assert status
    assert max(map(len, status)) < 60
    assert re.search(re.escape(CLEAR) + r"\[1/1\] .*: 0\.02 s an epoch", shown)
    assert re.search(re.escape(CLEAR) + r"measured 1 trial in", shown)


def test_on_a_wide_terminal_each_epoch_is_named(place: Place) -> None:
    one = ("--set", "profile.tiny.cores=1", "--set", "profile.tiny.trials=1", "--set", "profile.tiny.platforms=fickle")
    place.fails.touch()
    shown = place.run_on_terminal("run", "--profile", "tiny", *one, columns=200, MADE_SLEEP="0.3")
    assert "steady" not in shown
    assert "fickle 1 x 1 cores gd float64: starts" in shown
    assert "fickle 1 x 1 cores gd float64: epoch 1 of 2, 0.01 s" in shown
    assert "fickle 1 x 1 cores gd float64: failed: RuntimeError: boom" in shown


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7265, "2 h 1 min 5 s"),
        (3600, "1 h 0 min 0 s"),
    ],
)
def test_durations_are_said_as_people_do(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_configuration_is_described_by_what_its_platform_varies() -> None:
    def spec(resources: Resources, batch_size: int | None) -> TrialSpec:
        return TrialSpec(
            platform="p",
            dataset="d",
            data="d-1",
            network=Network(sizes=(6, 8, 3)),
            resources=resources,
            hyperparameters=Hyperparameters(
                solver="sgd",
                learning_rate=0.1,
                precision="float32",
                gradient=None,
                batch_size=batch_size,
                epochs=1,
            ),
            data_fraction=1.0,
            trial=1,
            attempt=1,
            seed=1,
        )

    assert describe(spec(Resources(executors=2, cores=4), None)) == "d mlp:6-8-3 p 2 x 4 cores sgd float32"
    assert describe(spec(Resources(threads=1), 16)) == "d mlp:6-8-3 p 1 thread sgd batch 16 float32"
    assert describe(spec(Resources(threads=2), 16)) == "d mlp:6-8-3 p 2 threads sgd batch 16 float32"
    assert describe(spec(Resources(device="cuda"), None)) == "d mlp:6-8-3 p sgd float32"
