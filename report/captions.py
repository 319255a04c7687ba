"""What stands below each figure: in a sentence or two, what it shows in this run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from report import places
from report.verdict import Comparison
from report.words import counted, distinct_seconds, listed, percent, period, seconds, signed_percent, times

MOST_CURVES = 3


def of_seconds(comparison: Comparison, shown: int) -> str:
    first, last = comparison.ran[0], comparison.ran[-1]
    low, high = distinct_seconds([first["rank_by"], last["rank_by"]])
    what = period(comparison.work, by_pass=comparison.by_pass)
    head = (
        f"{counted(len(comparison.ran), 'configuration')}"
        if shown == len(comparison.ran)
        else (f"{shown} of {len(comparison.ran)} configurations shown")
    )
    if len(comparison.ran) == 1:
        return f"The only configuration that ran, {comparison.label(first)}, needs {low} {what}."
    return (
        f"{head}: from {comparison.label(first)} with {low} {what} to {comparison.label(last)} with {high}, "
        f"{times(last['rank_by'] / first['rank_by'])} as long."
    )


def of_cores(comparison: Comparison) -> str:
    """For each platform in each place, what more cores brought."""
    said = []
    for mine in places.sized(comparison):
        sizes = sorted({row["total_cores"] for row in mine})
        if len(sizes) < 2:
            continue
        few = min((row for row in mine if row["total_cores"] == sizes[0]), key=lambda row: row["rank_by"])
        many = min((row for row in mine if row["total_cores"] == sizes[-1]), key=lambda row: row["rank_by"])
        said.append(
            f"{places.titled(few, comparison.ran)} is {times(few['rank_by'] / many['rank_by'])} as fast with "
            f"{counted(sizes[-1], 'core')} as with {sizes[0]}"
        )
    return f"{'; '.join(said)}." if said else "No platform ran with more than one number of cores."


def cut(shown: int, there: int, noun: str) -> str:
    """What a figure does not show; nothing where it shows all."""
    return f" {shown} of {there} {noun} shown; the table has all." if there > shown else ""


def of_learning(curves: Sequence[dict[str, Any]]) -> str:
    """Where each platform's line ends."""
    said = []
    for curve in curves[:MOST_CURVES]:
        last = [text for text in (_loss(curve), _accuracy(curve)) if text]
        said.append(
            f"{curve['text']} ends after {counted(curve['epochs'], 'epoch')} and {seconds(curve['seconds'])}"
            + (f" at {listed(last)}" if last else "")
        )
    if len(curves) > MOST_CURVES:
        said.append(f"{len(curves) - MOST_CURVES} more are in the table")
    return f"{'; '.join(said)}."


def _loss(curve: dict[str, Any]) -> str:
    return "" if curve["loss"] is None else f"a loss of {curve['loss']:.3g}"


def _accuracy(curve: dict[str, Any]) -> str:
    return "" if curve["accuracy"] is None else f"{percent(curve['accuracy'])} of the test rows right"


def of_blocks(run_ids: Sequence[str], settings: Mapping[str, Any], *, run_id: str) -> str:
    """In what order trials ran, where this run ordered them itself; of others' that is not known here."""
    if "replay.path" in settings:
        return "These trials were read from event logs: nothing is known of what ran beside them."
    if set(run_ids) - {run_id}:
        return "These trials are of several runs, in the order of each; trials of two runs were never in one block."
    return "Every configuration ran once a block, in shuffled order, one trial at a time."


def of_order(deviations: Sequence[float], *, noisy: int, shown: int) -> str:
    """Of all ranked trials, though not all may be shown."""
    if not deviations:
        return "No trial that was ranked can be compared with another of its configuration."
    spread = f"between {signed_percent(min(deviations))} and {signed_percent(max(deviations))}"
    loud = "none of them was noisy" if not noisy else f"{noisy} of them {'was' if noisy == 1 else 'were'} noisy"
    said = f"{counted(len(deviations), 'trial')} lie {spread} of the mean of their configuration; {loud}"
    return f"{said}." if shown == len(deviations) else f"{said}; {shown:,} of {len(deviations):,} shown."
