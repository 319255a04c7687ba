"""What verdict.json holds, and what the terminal says at the end of a run."""

from __future__ import annotations

from typing import Any

import polars as pl

from report import apart, cost, drift, factors, marginal, price, sentences, spent, unequal
from report.analysis import Analysis, Findings
from report.facts import RunFacts
from report.verdict import as_json
from report.words import capped


def summary(analysis: Analysis) -> dict[str, Any]:
    """The contract's keys, and what is ours."""
    run, baseline = analysis.run, analysis.baseline
    return {
        "comparisons": [_of_comparison(each) for each in analysis.findings],
        "targets": [unequal.to_json(each, baseline=baseline) for each in analysis.to_target],
        "run_id": run.run_id,
        "profile": run.profile,
        "drift": drift.as_json(drift.drift(analysis.attempts)),
        "first_lines": first_lines(analysis),
    }


def _of_comparison(each: Findings) -> dict[str, Any]:
    comparison = each.comparison
    split = factors.factors(comparison, precision=each.baseline.precision)
    return {
        **as_json(comparison),
        "flips": list(each.turning.said),
        "no_flips": each.turning.reason or None,
        "apart": apart.as_json(each.told_apart),
        "cost": [cost.to_json(question) for question in each.asked],
        "marginal": [marginal.to_json(line) for line in marginal.lines(comparison)],
        "price": price.to_json(comparison, each.asked),
        "sentences": [*each.said, *each.went],
        "factors": [factors.as_json(factor) for factor in split],
    }


def first_lines(analysis: Analysis) -> list[str]:
    """The page's first sentences, its first table, and when the answer flips, as plain text."""
    run, attempts = analysis.run, analysis.attempts
    if not analysis.findings:
        return [f"Run {run.run_id} has no trial yet."]
    first = analysis.findings[0]
    trusted = ". ".join(capped(part) for part in sentences.trust(first.comparison, run=run, attempts=attempts))
    lines = [*first.said, *first.went, "", *sentences.terminal_table(first.comparison), "", *first.turning.first]
    lines += ["", f"{trusted}.", *(f"{capped(text)}." for text in spent.doubt(run))]
    if len(analysis.findings) > 1:
        lines.append(f"1 of {len(analysis.findings)} comparisons of equal work shown; the page has the others.")
    if left := unfinished(attempts, run):
        lines.append(left)
    return lines


def unfinished(attempts: pl.DataFrame, run: RunFacts) -> str:
    done = int((attempts["counts"] & attempts["origin"].is_null()).sum())
    if run.trials_planned is None or done >= run.trials_planned:
        return ""
    return f"The run is not finished: {done:,} of {run.trials_planned:,} trials so far."
