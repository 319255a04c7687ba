"""What a person sees while trials run: a line for each that ended, and on a terminal the epoch of the one that runs."""

from __future__ import annotations

import logging
import shutil
import sys
import time
from typing import TYPE_CHECKING

from models.noise import told
from models.spec import TrialSpec
from store.errors import YarnstickError

if TYPE_CHECKING:
    from models.run import Event
    from pipeline.experiment import Experiment

CLEAR = "\r\x1b[K"


class Progress:
    def __init__(self, run: Experiment) -> None:
        self._run = run
        planned = run.planned
        width = len(str(len(planned)))
        trials = [(each.spec.slug.rpartition("-a")[0], each.spec) for each in planned]
        self._specs = dict(trials)
        self._places = {trial: f"[{place:{width}}/{len(planned)}]" for place, (trial, _) in enumerate(trials, 1)}
        self._seconds: list[float] = []  # of the epochs of the trial that runs
        self._measured = 0  # trials
        self._training_seconds = 0.0
        self._began = time.monotonic()
        self._live = sys.stdout.isatty()

    def attach(self, *, resumed: bool) -> None:
        """Listen to the run, and show our own log lines; of Luigi's only a fault of ours."""
        logging.getLogger("luigi-interface").addFilter(_is_fault)
        ours = logging.getLogger("luigi-interface.yarnstick")
        ours.setLevel(logging.INFO)
        ours.addHandler(_Lines(self))
        ours.propagate = False
        self._run.listener = self.hear
        done, all_ = self._run.done(), len(self._specs)
        what = f"begins, {all_} trials"
        if done == all_:
            what = f"is complete, {all_} trials are there"
        elif resumed or done:
            what = f"continues, {done} of {all_} trials are there"
        self.say(f"run {self._run.run_id} {what} (profile {self._run.settings.profile_name}, {self._run.store.url})")

    def say(self, line: str) -> None:
        print(f"{CLEAR if self._live else ''}{line}", flush=True)

    def hear(self, event: Event) -> None:
        spec = self._specs[event.slug.rpartition("-a")[0]]
        if event.kind == "begun":
            self._seconds = []
            self._status(f"{self._what(event)}: starts")
        elif event.record is not None and event.record.seconds is not None:
            self._seconds.append(event.record.seconds)
            self._training_seconds += event.record.seconds
            epochs = spec.hyperparameters.epochs
            self._status(f"{self._what(event)}: epoch {event.record.epoch} of {epochs}, {event.record.seconds:.3g} s")
        elif event.kind == "ended":
            self._measured += bool(self._seconds)
            self.say(f"{self._what(event)}: {self._ending(event)}")
            self._seconds = []

    def total(self) -> None:
        """Where the time went."""
        seconds = time.monotonic() - self._began
        if self._measured:
            trials = f"{self._measured} trial{'s' if self._measured != 1 else ''}"
            share = self._training_seconds / seconds
            self.say(f"measured {trials} in {duration(seconds)}, {share:.0%} of it training".replace("%", " %"))

    def clear(self) -> None:
        """Leave no half line of a trial that was interrupted."""
        self._status("")

    def _status(self, line: str) -> None:
        if self._live:
            # A line that wraps could not be cleared again.
            print(f"{CLEAR}{line[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)

    def _what(self, event: Event) -> str:
        trial, _, attempt = event.slug.rpartition("-a")
        again = f" (attempt {attempt})" if attempt != "1" else ""
        return f"{self._places[trial]} {describe(self._specs[trial])}{again}"

    def _ending(self, event: Event) -> str:
        if event.outcome == "unavailable":
            return f"not run: {event.reason}"
        if event.outcome == "diverged":
            return str(event.reason)
        if event.outcome != "ok":
            return f"{event.outcome}: {event.reason}"
        after = self._seconds[1:] or self._seconds
        return f"{sum(after) / len(after):.3g} s an epoch{_noise(event)}"


class _Lines(logging.Handler):
    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self._progress.say(record.getMessage())


def _noise(event: Event) -> str:
    if not event.noisy:
        return ""
    crowding = event.crowding
    said = told(
        event.noise,
        other_load=event.other_load,
        others_vcores=None if crowding is None else crowding.vcores.mean,
        nodes_vcores=None if crowding is None else crowding.nodes_vcores,
    )
    return f", noisy: {said}"


def _is_fault(record: logging.LogRecord) -> bool:
    """An exception that is no sentence for the user: its traceback is all there is to tell."""
    return record.exc_info is not None and not isinstance(record.exc_info[1], YarnstickError | None)


def describe(spec: TrialSpec) -> str:
    """A configuration in the words of the tables."""
    r, h = spec.resources, spec.hyperparameters
    parts = [spec.platform]
    if r.executors is not None:
        parts.append(f"{r.executors} x {r.cores} cores")
    elif r.threads is not None:
        parts.append(f"{r.threads} thread{'s' if r.threads != 1 else ''}")
    parts.append(h.solver if h.batch_size is None else f"{h.solver} batch {h.batch_size}")
    parts.append(h.precision)
    return f"{spec.dataset} {spec.network.name} " + " ".join(parts)


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if hours or minutes else "", f"{rest} s"]
    return " ".join(filter(None, parts))
