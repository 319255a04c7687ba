"""Event logs that trials archived, as the timelines that report/ draws: one trial for each configuration."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from models.outcome import EVENT_LOGS, Outcome
from store.errors import DataError
from store.protocol import Store

if TYPE_CHECKING:
    from models.timeline import TaskSpan
    from report.timeline import Timeline

log = logging.getLogger("luigi-interface.yarnstick")
MOST_LOGS = 32  # a report is to be made in seconds


def timelines(store: Store, trials: str, outcomes: Iterable[Outcome]) -> tuple[list[Timeline], int]:
    """Of the first good trial of each configuration, as they ran; and how many configurations have an event log."""
    folders = [(outcome, f"{trials}/{outcome.spec.slug}/{EVENT_LOGS}") for outcome in _firsts(outcomes)]
    logged = [(outcome, folder) for outcome, folder in folders if store.exists(folder)]
    found: list[Timeline] = []
    for outcome, folder in logged[:MOST_LOGS]:
        try:
            found += _of_trial(store, folder, outcome)
        except DataError as error:
            # The trial's records stand by themselves; only its picture is missing.
            log.warning("no timeline of trial %s: %s", outcome.spec.slug, error)
    return found, len(logged)


def _firsts(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Where all trials of one were noisy, a noisy one."""
    firsts: dict[str, Outcome] = {}
    good = [each for each in outcomes if each.outcome == "ok" and each.spec.resources.executors is not None]
    for outcome in sorted(good, key=lambda each: (each.noisy, each.spec.trial, each.spec.attempt)):
        firsts.setdefault(outcome.spec.configuration, outcome)
    return sorted(firsts.values(), key=lambda each: each.position)


def _of_trial(store: Store, folder: str, outcome: Outcome) -> list[Timeline]:
    """A session's log holds all trials that ran in it until then: only those tasks that are this one's."""
    from models.timeline import loads, timeline
    from report.timeline import Timeline

    group = outcome.logged_as
    for entry in store.list(folder):
        path = store.local(f"{folder}/{entry.name}")
        tasks = _during(timeline(path), group)
        if tasks:
            load = next((each for each in loads(path) if each.group == group), None)
            return [Timeline(row=asdict(outcome.records[0]), trial=outcome.spec.trial, tasks=tasks, load=load)]
    return []


def _during(tasks: list[TaskSpan], group: str) -> tuple[TaskSpan, ...]:
    """The tasks of a fit, and what else ran between its first and its last."""
    mine = [task for task in tasks if task.group == group]
    if not mine:
        return ()
    first, last = min(task.launched for task in mine), max(task.ended for task in mine)
    return tuple(task for task in tasks if task.group == group or (task.ended > first and task.launched < last))
