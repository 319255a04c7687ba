"""What is done of a run: the outcomes that lie in the store, and which trials need another attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from models.outcome import EVENT_LOGS, EVENTS, OUTCOME, SETTLED, Outcome
from models.spec import TrialSpec
from store.errors import StoreError
from store.protocol import Store
from store.publish import Staging

TAINTED_ATTEMPTS = 2


class Trials:
    """The trials of one run. Being in the listing is being complete, so one listing tells all."""

    def __init__(self, store: Store, path: str, *, invocation: str, noisy_repeats: int) -> None:
        self._store = store
        self._path = path
        self._invocation = invocation
        self._noisy_repeats = noisy_repeats
        self._known: dict[str, Outcome] = {}

    def outcomes(self) -> list[Outcome]:
        """All of them, in the order in which they ended."""
        for entry in self._store.list(self._path):
            if entry.is_directory and entry.name not in self._known:
                self._known[entry.name] = self._read(entry.name)
        return sorted(self._known.values(), key=lambda outcome: outcome.position)

    def attempts(self, spec: TrialSpec) -> list[Outcome]:
        mine = _without_attempt(spec.slug)
        return [outcome for outcome in self.outcomes() if _without_attempt(outcome.spec.slug) == mine]

    def needs(self, spec: TrialSpec) -> TrialSpec | None:
        """The attempt that this trial still needs, or None when it is done."""
        earlier = self.attempts(spec)
        if not earlier:
            return spec.attempted(1)
        last = max(earlier, key=lambda outcome: outcome.spec.attempt)
        following = spec.attempted(last.spec.attempt + 1)
        if last.outcome == "tainted":
            return following if _count(earlier, "tainted") < TAINTED_ATTEMPTS else None
        if last.outcome in SETTLED:
            noisy = sum(outcome.noisy for outcome in earlier)
            return following if last.noisy and noisy <= self._noisy_repeats else None
        # Failed and unavailable hold for the invocation that saw them.
        return None if last.invocation == self._invocation else following

    def failed(self, specs: Iterable[TrialSpec]) -> list[Outcome]:
        """The last attempts that failed."""
        lasts = [max(attempts, key=lambda each: each.spec.attempt) for spec in specs if (attempts := self.attempts(spec))]
        return [outcome for outcome in lasts if outcome.outcome == "failed"]

    def publish(self, outcome: Outcome, *, events: bytes, logs: Mapping[str, bytes]) -> bool:
        """By one rename; False where somebody else published this attempt first."""
        with Staging(self._store, f"{self._path}/{outcome.spec.slug}") as staging:
            staging.put(OUTCOME, outcome.encode())
            staging.put(EVENTS, events)
            for name, log in logs.items():
                staging.put(f"{EVENT_LOGS}/{name}", log)
            return staging.commit()

    def _read(self, name: str) -> Outcome:
        path = f"{self._path}/{name}/{OUTCOME}"
        try:
            return Outcome.decode(self._store.read(path))
        except ValueError as error:
            raise StoreError(f"{self._store.url}/{path} is damaged ({error}); remove that trial and run again") from None


def _without_attempt(slug: str) -> str:
    return slug.rpartition("-a")[0]


def _count(outcomes: list[Outcome], kind: str) -> int:
    return sum(outcome.outcome == kind for outcome in outcomes)
