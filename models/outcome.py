"""What came of a trial: the file that its published directory is read by."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from models.record import EpochRecord
from models.spec import TrialSpec
from yarn.crowding import Crowding

OUTCOME = "outcome.json"
EVENTS = "events.jsonl"
EVENT_LOGS = "eventlog"
LOG = "log.txt"  # of a failed one: the last that its process wrote
# These need no further attempt in any invocation; failed and unavailable hold for one invocation only.
SETTLED = ("ok", "diverged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One attempt at a trial. There is always a record: where no epoch ended, one without seconds says why."""

    spec: TrialSpec
    outcome: str  # ok | failed | diverged | unavailable | tainted
    reason: str | None
    noisy: bool
    invocation: str  # of the command that ran it
    position: int  # in the order in which the trials of the run ended
    note: str | None  # what a reader has to know
    records: tuple[EpochRecord, ...]
    noise: str | None = None  # why it is noisy
    crowding: Crowding | None = None  # on YARN
    group: str | None = None  # of its jobs in Spark's event log, where a replay numbered the trial anew

    @property
    def logged_as(self) -> str:
        return self.group or self.spec.slug

    def encode(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> Outcome:
        return msgspec.json.decode(data, type=cls)
