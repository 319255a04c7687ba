"""What the records of a run come to, worked out once: the page, verdict.json and the terminal say the same of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from report import apart, cost, factors, sentences, spent, unequal
from report.apart import Apart
from report.breakdown import Breakdown, breakdowns
from report.comparison import compared
from report.cost import Question
from report.facts import BaselineSpec, RunFacts
from report.predictions import Series, all_series
from report.turning import Turning, turning
from report.verdict import Comparison, comparisons

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """Of one class of equal work."""

    comparison: Comparison
    run: RunFacts
    baseline: BaselineSpec
    turning: Turning

    @cached_property
    def told_apart(self) -> Apart | None:
        return apart.apart(self.comparison)

    @cached_property
    def asked(self) -> list[Question]:
        return cost.questions(self.comparison, spec=self.baseline)

    @cached_property
    def spent(self) -> list[Breakdown]:
        return breakdowns(self.comparison, precision=self.baseline.precision, probes=self.run.probes)

    @cached_property
    def said(self) -> list[str]:
        return sentences.verdict(
            self.comparison, run=self.run, machines=self._machines, told_apart=self.told_apart
        )  # fmt: skip

    @property
    def answer(self) -> str:
        """The one sentence of it that says what was trained."""
        return sentences.fastest_of(self.comparison, run=self.run, machines=self._machines)

    @cached_property
    def went(self) -> list[str]:
        """Of every platform with a ledger where its seconds went, at its best, and what of that is precision."""
        bests = [standing.best["configuration"] for standing in self.comparison.standings]
        best = [each for each in self.spent if each.row["configuration"] in bests]
        each = self.told_apart
        told = each.library["platform"] if each is not None and each.precision is not None else None
        splits = factors.splits(self.comparison, platform=self.baseline.platform, precision=self.baseline.precision)
        return [
            *(spent.whole(self.comparison, each) for each in best if each.has_ledger),
            *(spent.split(self.comparison, each) for each in splits if each.row["platform"] != told),
        ]

    @property
    def _machines(self) -> int:
        return len({row["machine"] for row in self.comparison.ran})


@dataclass(frozen=True, kw_only=True, eq=False)
class Analysis:
    """Of a run: its attempts, its configurations, and what was found of each class of equal work, the widest first."""

    run: RunFacts
    baseline: BaselineSpec
    records: pl.DataFrame
    attempts: pl.DataFrame
    configurations: pl.DataFrame
    found: list[Comparison]

    @classmethod
    def of(cls, records: pa.Table, *, run: RunFacts, baseline: BaselineSpec) -> Analysis:
        frame = pl.DataFrame(records)
        attempts, configurations = compared(frame, baseline=baseline, terms=run.terms)
        found = comparisons(configurations, baseline=baseline)
        return cls(
            run=run, baseline=baseline, records=frame, attempts=attempts, configurations=configurations, found=found
        )

    @cached_property
    def series(self) -> list[Series]:
        return all_series(self.attempts)

    @cached_property
    def findings(self) -> list[Findings]:
        return [
            Findings(comparison=each, run=self.run, baseline=self.baseline, turning=turning(each, self.series))
            for each in self.found
        ]

    @cached_property
    def to_target(self) -> list[Comparison]:
        """Of unequal work, by the seconds until it reached a target."""
        return unequal.by_target(self.configurations, baseline=self.baseline)
