"""What is done of a run: the outcomes that lie in the store, and which trials need another attempt."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping

from models.outcome import EVENTS, OUTCOME, SETTLED, Outcome
from models.spec import TrialSpec
from store.errors import StoreError
from store.protocol import Store
from store.publish import Staging

TAINTED_ATTEMPTS = 2


class Trials:
    """The trials of one run. Being in the listing is being complete, so one listing tells all.

    It is made when something is first asked, again after a publication of ours, and by `look` where it matters what
    others published meanwhile.
    """

    def __init__(self, store: Store, path: str, *, invocation: str, noisy_repeats: int) -> None:
        self._store = store
        self._path = path
        self._invocation = invocation
        self._noisy_repeats = noisy_repeats
        self._known: dict[str, Outcome] = {}
        self._attempts: dict[str, list[Outcome]] = {}  # of each trial, the last one last
        self._looked: int | None = None  # the process that did; what a fork of it knows is from before

    def outcomes(self) -> list[Outcome]:
        """All of them, in the order in which they ended."""
        self._look_once()
        return sorted(self._known.values(), key=lambda outcome: outcome.position)

    def needs(self, spec: TrialSpec) -> TrialSpec | None:
        """The attempt that this trial still needs, or None when it is done."""
        self._look_once()
        return self._following(spec)

    def done(self, specs: Iterable[TrialSpec]) -> int:
        """How many of these need no further attempt."""
        self._look_once()
        return sum(self._following(spec) is None for spec in specs)

    def failed(self, specs: Iterable[TrialSpec]) -> list[Outcome]:
        """The last attempts that failed."""
        self._look_once()
        lasts = [attempts[-1] for spec in specs if (attempts := self._earlier(spec))]
        return [outcome for outcome in lasts if outcome.outcome == "failed"]

    def publish(self, outcome: Outcome, *, events: bytes, logs: Mapping[str, bytes]) -> bool:
        """By one rename; False where somebody else published this attempt first."""
        with Staging(self._store, self.path_of(outcome)) as staging:
            staging.put(OUTCOME, outcome.encode())
            staging.put(EVENTS, events)
            for name, log in logs.items():
                staging.put(name, log)
            self._looked = None
            return staging.commit()

    def path_of(self, outcome: Outcome) -> str:
        return f"{self._path}/{outcome.spec.slug}"

    def _following(self, spec: TrialSpec) -> TrialSpec | None:
        earlier = self._earlier(spec)
        if not earlier:
            return spec.attempted(1)
        last = earlier[-1]
        if last.outcome == "tainted":
            wanted = sum(outcome.outcome == "tainted" for outcome in earlier) < TAINTED_ATTEMPTS
        elif last.outcome in SETTLED:
            wanted = last.noisy and sum(outcome.noisy for outcome in earlier) <= self._noisy_repeats
        else:
            # Failed and unavailable hold for the invocation that saw them, whatever another one does meanwhile.
            wanted = all(outcome.invocation != self._invocation for outcome in earlier)
        return spec.attempted(last.spec.attempt + 1) if wanted else None

    def _earlier(self, spec: TrialSpec) -> list[Outcome]:
        return self._attempts.get(_without_attempt(spec.slug), [])

    def look(self) -> None:
        """Read what was published since the last look, by whomever."""
        for name, outcome in published(self._store, self._path, known=self._known):
            self._known[name] = outcome
            attempts = self._attempts.setdefault(_without_attempt(name), [])
            attempts.append(outcome)
            attempts.sort(key=lambda outcome: outcome.spec.attempt)
        self._looked = os.getpid()

    def _look_once(self) -> None:
        if self._looked != os.getpid():
            self.look()


def published(store: Store, path: str, *, known: Container[str] = ()) -> Iterator[tuple[str, Outcome]]:
    """The outcomes below a directory by the names of theirs, one after the other, without those that are known."""
    names = [each.name for each in store.list(path) if each.is_directory and each.name not in known]
    contents = store.read_each([f"{path}/{name}/{OUTCOME}" for name in names])
    for name, content in zip(names, contents, strict=True):
        try:
            yield name, Outcome.decode(content)
        except ValueError as error:
            raise StoreError(
                f"{store.url}/{path}/{name}/{OUTCOME} is damaged ({error}); remove the directory {name}, and the same "
                f"command measures that trial again"
            ) from None


def _without_attempt(slug: str) -> str:
    return slug.rpartition("-a")[0]
