"""What a person sees while trials run: a line for each that ended, and on a terminal the epoch of the one that runs."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from models.spec import TrialSpec

if TYPE_CHECKING:
    from models.run import Event
    from pipeline.experiment import Experiment

CLEAR = "\r\x1b[K"


class Progress:
    def __init__(self, run: Experiment) -> None:
        self._run = run
        self._specs = {planned.spec.slug.rpartition("-a")[0]: planned.spec for planned in run.planned}
        self._seconds: list[float] = []
        self._live = sys.stdout.isatty()

    def attach(self, *, resumed: bool) -> None:
        """Listen to the run, and show our own log lines but not Luigi's."""
        logging.getLogger("luigi-interface").setLevel(logging.CRITICAL + 1)
        ours = logging.getLogger("luigi-interface.yarnstick")
        ours.setLevel(logging.INFO)
        ours.addHandler(_Lines(self))
        ours.propagate = False
        self._run.listener = self.hear
        done = len([planned for planned in self._run.planned if self._run.trials.needs(planned.spec) is None])
        what = f"continues, {done} of {len(self._run.planned)} trials are there" if resumed or done else "begins"
        self.say(f"run {self._run.run_id} {what} (profile {self._run.settings.profile_name}, {self._run.store.url})")

    def say(self, line: str) -> None:
        print(f"{CLEAR if self._live else ''}{line}", flush=True)

    def hear(self, event: Event) -> None:
        spec = self._specs[event.slug.rpartition("-a")[0]]
        if event.kind == "begun":
            self._seconds = []
            self._status(f"{self._place(event)} {describe(spec)}: starting")
        elif event.record is not None and event.record.seconds is not None:
            self._seconds.append(event.record.seconds)
            epochs = spec.hyperparameters.epochs
            self._status(
                f"{self._place(event)} {describe(spec)}: epoch {event.record.epoch} of {epochs}, "
                f"{event.record.seconds:.2f} s"
            )
        elif event.kind == "ended":
            self.say(f"{self._place(event)} {describe(spec)}: {self._ending(event)}")

    def _status(self, line: str) -> None:
        if self._live:
            print(f"{CLEAR}{line}", end="", flush=True)

    def _place(self, event: Event) -> str:
        keys = list(self._specs)
        place = keys.index(event.slug.rpartition("-a")[0]) + 1
        return f"[{place:{len(str(len(keys)))}}/{len(keys)}]"

    def _ending(self, event: Event) -> str:
        if event.outcome == "unavailable":
            return f"not run: {event.reason}"
        if event.outcome != "ok":
            return f"{event.outcome}: {event.reason}"
        after = self._seconds[1:] or self._seconds
        noise = f", noisy: others used {event.other_load:.1f} cores" if event.noisy else ""
        return f"{sum(after) / len(after):.2f} s an epoch{noise}"


class _Lines(logging.Handler):
    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self._progress.say(record.getMessage())


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
