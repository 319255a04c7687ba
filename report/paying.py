"""What the page says of whether it pays: COST, further executors, time to accuracy, money."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from report import cost, marginal, priced, unequal
from report.cost import Cost, Question
from report.facts import BaselineSpec, RunFacts
from report.verdict import Comparison
from report.words import counted, title, work


def shown(comparison: Comparison, baseline: BaselineSpec, run: RunFacts) -> dict[str, Any]:
    """Of one class of equal work."""
    asked = cost.questions(comparison, spec=baseline)
    return {
        "costs": cost_rows(asked, run),
        "marginal": marginal.said(marginal.lines(comparison), currency=run.terms.prices.currency),
        "prices": priced.said(comparison, asked, run),
    }


def targets_shown(configurations: pl.DataFrame, baseline: BaselineSpec, run: RunFacts) -> list[dict[str, Any]]:
    """Of unequal work, for each network on a dataset that has a target."""
    return [
        {
            "heading": work(each.work),
            "said": unequal.said(each),
            "costs": cost_rows(cost.questions(each, spec=baseline), run),
        }
        for each in unequal.by_target(configurations, baseline=baseline)
    ]


def cost_rows(questions: Sequence[Question], run: RunFacts) -> list[tuple[str, str, str, str]]:
    """Platform, baseline, and the answers without and with start-up; a baseline that is not there is a row."""
    rows: list[tuple[str, str, str, str]] = []
    for without, with_it in zip(questions[::2], questions[1::2], strict=True):
        if without.baseline is None:
            rows.append(("", without.named, without.no_baseline or "", ""))
        rows += [
            (
                title(each.platform),
                _named(without, run),
                answer(each),
                _with_startup(each.platform, with_it),
            )
            for each in without.costs
        ]
    return rows if any(platform for platform, *_ in rows) else []  # the reasons are said beside it


def _named(question: Question, run: RunFacts) -> str:
    """`one machine (torch-cpu)`, and how much of it that is where its cores are known to be more."""
    if question.baseline is None:
        return question.named
    row = question.baseline.row
    share = run.share_of_machine(row) if question.against == "one machine" else None
    return f"{share or question.named} ({title(row['platform'])})"


def answer(each: Cost) -> str:
    """`from 4 cores on: 0.40 s against one thread's 0.52 s`, `from at most 4 cores on` where fewer may do."""
    if each.winner is None:
        return each.reason
    if each.cores is None:
        return f"beats it: {each.reason}"
    most = "" if each.perhaps_fewer is None else "at most "
    return f"from {most}{counted(each.cores, each.unit[:-1])} on: {each.reason}"


def _with_startup(platform: str, question: Question) -> str:
    found = next((each for each in question.costs if each.platform == platform), None)
    if found is not None:
        return answer(found)
    return question.left_out.get(platform) or question.no_baseline or ""
