"""For each class of equal work: which platform is fastest, by how much, how surely, and from how many cores on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from models.spec import PRECISIONS
from report.facts import WORK, BaselineSpec
from report.imported import NO_BASELINE, all_imported, baselines, common_baseline, is_imported, own_first
from report.statistics import Call, Ratio, Sample, call, holm, ratio, welch_less
from report.words import counted, distinct_seconds, label, varying

Row = Mapping[str, Any]  # of comparison.configurations
KINDS = ("precision", "gradient", "compression")  # that are shown as factors of their own
PLAIN = " (plain numbers: one trial)"
WORK_KEYS = ("dataset", "network", "solver", "batch_size", "data_fraction", "unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A planned comparison: left is said to be the faster one."""

    left: Row
    right: Row
    against: str  # baseline | runner-up
    t: float | None
    degrees: float | None
    p: float | None
    p_holm: float | None
    call: Call

    @property
    def beats(self) -> bool:
        return self.call in ("beats", "plain faster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a platform stands that ran."""

    platform: str
    best: Row
    factors: tuple[Row, ...]  # the best at each other precision, gradient and compression
    against_fastest: Ratio
    baseline: Row | None
    against_baseline: Ratio | None
    cost_cores: int | None
    cost_unit: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A platform that has no number here, and why."""

    platform: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One class of equal work."""

    work: Row  # any of its configurations, for what they have in common
    by_pass: bool  # ranked by seconds per pass, since an epoch is not the same number of passes for all
    varying: tuple[str, ...]  # what tells configurations apart beside platform and resources
    ran: tuple[Row, ...]  # fastest first
    not_run: tuple[Row, ...]
    baseline: Row | None
    machine: Row | None
    no_baseline: str | None
    standings: tuple[Standing, ...]  # fastest first
    absent: tuple[Absent, ...]
    tests: tuple[Test, ...]

    @property
    def fastest(self) -> Standing | None:
        return self.standings[0] if self.standings else None

    @property
    def is_to_target(self) -> bool:
        """Of unequal work, by the seconds to a target: report/unequal.py."""
        return bool(self.work.get("is_to_target"))

    @property
    def runner_up(self) -> Test | None:
        return next((test for test in self.tests if test.against == "runner-up"), None)

    @property
    def is_decided(self) -> bool:
        """Whether the fastest platform is faster than the runner-up as far as that was tested, or has none."""
        return len(self.standings) < 2 or (self.runner_up is not None and self.runner_up.beats)

    def interval(self, row: Row) -> tuple[float | None, float | None]:
        """Of the mean of what is ranked; of a single trial there is none."""
        if row["rank_by"] is None or len(self.values(row)) < 2:
            return None, None
        return self.sample(row).interval()

    def sample(self, row: Row) -> Sample:
        return Sample.of(self.values(row))

    def values(self, row: Row) -> list[float]:
        """The trials of a configuration, by what is ranked."""
        return list(row["trial_seconds_per_pass" if self.by_pass else "trial_seconds"])

    def label(self, row: Row) -> str:
        return label(row, varying=self.varying)

    def is_beside(self, other: Comparison) -> bool:
        """Epochs of the same rows, with another number of updates."""
        return (
            self is not other
            and self.work["unit"] == "epoch"
            and all(self.work[name] == other.work[name] for name in WORK)
        )


def comparisons(configurations: pl.DataFrame, *, baseline: BaselineSpec) -> list[Comparison]:
    """Of the widest class of equal work first."""
    groups = configurations.partition_by("class", maintain_order=True)
    return [_comparison(group.to_dicts(), baseline) for group in groups]


def _comparison(rows: list[dict[str, Any]], spec: BaselineSpec) -> Comparison:
    ran = tuple(row for row in rows if row["rank_by"] is not None)
    not_run = tuple(row for row in rows if row["rank_by"] is None)
    baseline: Row | None = next((row for row in ran if row["is_baseline"]), None)
    machine = next((row for row in ran if row["is_machine"]), None)
    groups = [_main(own_first(group), baseline) for group in _by_platform(ran).values()]
    main = {group[0]["platform"]: group for group in sorted(groups, key=lambda group: group[0]["rank_by"])}
    reason = None if baseline else _no_baseline(rows, spec)
    if baseline is None and all_imported(ran):
        baseline = common_baseline(main, ran)
        reason = None if baseline else NO_BASELINE
    against = baselines(main, ran, baseline)
    tests = _tests(main, against)
    group_of_fastest = next(iter(main.values()), [])
    standings = [
        _standing(group, ran, group_of_fastest[0], against[platform], tests, reason) for platform, group in main.items()
    ]
    absent = [
        Absent(platform=platform, reason="; ".join(dict.fromkeys(row["status"] for row in group)))
        for platform, group in _by_platform(not_run).items()
        if platform not in main
    ]
    return Comparison(
        work=rows[0],
        by_pass=rows[0]["by_pass"],
        varying=varying(rows),
        ran=ran,
        not_run=not_run,
        baseline=baseline,
        machine=machine,
        no_baseline=reason,
        standings=tuple(standings),
        absent=tuple(absent),
        tests=tuple(tests),
    )


def _by_platform(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["platform"], []).append(row)
    return groups


def _main(rows: list[Row], baseline: Row | None) -> list[Row]:
    """A platform's configurations at one precision and gradient: the baseline's where it has them, else its own.

    Where gradients are sent in fewer digits the work is not quite the same: that is a factor too.
    """
    wanted = baseline["precision"] if baseline else None
    precisions = {row["precision"] for row in rows}
    if wanted not in precisions:
        wanted = min(precisions, key=lambda name: PRECISIONS.index(name) if name in PRECISIONS else len(PRECISIONS))
    rows = [row for row in rows if row["precision"] == wanted]
    gradient = baseline["gradient"] if baseline else None
    if gradient not in {row["gradient"] for row in rows}:
        gradient = rows[0]["gradient"]
    rows = [row for row in rows if row["gradient"] == gradient]
    return [row for row in rows if row["compression"] in (None, "none")] or rows


def _tests(main: dict[str, list[Row]], against: Mapping[str, Row | None]) -> list[Test]:
    """Each configuration of the other platforms against its baseline, and the fastest against the runner-up."""
    planned: list[tuple[Row, Row, str]] = []
    for platform, group in main.items():
        baseline = against[platform]
        if baseline is not None and platform != baseline["platform"]:
            planned += [(row, baseline, "baseline") for row in group]
    best = [group[0] for group in main.values()]
    if len(best) == 1:
        best = next(iter(main.values()))[:2]
    if len(best) > 1:
        planned.append((best[0], best[1], "runner-up"))
    if not planned:
        return []
    left, right = [_sample(pair[0]) for pair in planned], [to_beat(pair[1]) for pair in planned]
    t, degrees, p = welch_less(left, right)
    # Which of the two fastest is in front was not known beforehand: either way round would have been told.
    p = np.where([against == "runner-up" for *_, against in planned], np.minimum(2 * p, 1.0), p)
    corrected = holm(p)
    return [
        Test(
            left=planned[n][0],
            right=planned[n][1],
            against=planned[n][2],
            t=_number(t[n]),
            degrees=_number(degrees[n]),
            p=_number(p[n]),
            p_holm=_number(corrected[n]),
            call=call(left[n], right[n], float(corrected[n])),
        )
        for n in range(len(planned))
    ]


def to_beat(row: Row) -> Sample:
    """Of a bracket of seconds to a target only the earlier end is beaten for sure."""
    low = row["trial_to_target_low"] if row.get("is_to_target") else None
    return _sample(row) if low is None else Sample.of(low)


def _sample(row: Row) -> Sample:
    return Sample.of(row["trial_seconds_per_pass" if row["by_pass"] else "trial_seconds"])


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _standing(
    main: list[Row],
    ran: Sequence[Row],
    fastest: Row,
    baseline: Row | None,
    tests: Sequence[Test],
    no_baseline: str | None,
) -> Standing:
    best = main[0]
    platform = best["platform"]
    cost, unit, reason = _cost(main, baseline, tests, no_baseline)
    factors: dict[tuple[Any, ...], Row] = {}
    for row in ran:
        if row["platform"] == platform and is_imported(row) == is_imported(best):
            factors.setdefault(tuple(row[name] for name in KINDS), row)
    factors.pop(tuple(best[name] for name in KINDS))
    return Standing(
        platform=platform,
        best=best,
        factors=tuple(factors.values()),
        against_fastest=ratio(_sample(best), _sample(fastest)),
        baseline=baseline,
        against_baseline=ratio(_sample(best), _sample(baseline)) if baseline is not None else None,
        cost_cores=cost,
        cost_unit=unit,
        reason=reason,
    )


def _cost(
    main: list[Row], baseline: Row | None, tests: Sequence[Test], no_baseline: str | None
) -> tuple[int | None, str, str]:
    """COST (McSherry, Isard, Murray 2015): the fewest cores with which a platform beats the baseline, or why none."""
    platform = main[0]["platform"]
    known = {
        name: sorted({row[name] for row in main if row[name] is not None}) for name in ("total_cores", "executors")
    }
    column = "executors" if known["executors"] and not known["total_cores"] else "total_cores"
    unit = "executors" if column == "executors" else "cores"
    if baseline is None:
        return None, unit, NO_BASELINE if is_imported(main[0]) else no_baseline or ""
    if platform == baseline["platform"]:
        return None, unit, "it is the baseline's own platform"
    mine = [test for test in tests if test.against == "baseline" and test.left["platform"] == platform]
    plain = "" if all(test.p is not None for test in mine) else PLAIN
    winners = [test.left for test in mine if test.beats]
    if not winners:
        sizes = known[column]
        if len(sizes) > 1:
            return None, unit, f"none of {', '.join(map(str, sizes))} {unit} did{plain}"
        return None, unit, f"{counted(sizes[0], unit[:-1]) if sizes else 'it'} did not{plain}"
    sized = [row for row in winners if row[column] is not None]
    if not sized:
        return None, unit, f"it beats the baseline, and has no number of {unit}{plain}"
    winner = min(sized, key=lambda row: (row[column], row["rank_by"]))
    own, other = distinct_seconds([winner["rank_by"], baseline["rank_by"]])
    return winner[column], unit, f"{own} against the baseline's {other}{plain}"


def _no_baseline(rows: Sequence[Row], spec: BaselineSpec) -> str:
    for row in rows:
        if (row["platform"], row["precision"], row["threads"]) == (spec.platform, spec.precision, spec.threads):
            return f"no baseline: {spec}: {row['status']}"
    return f"no baseline: {spec} is not among what was run on the same work"


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The contract's keys first, then what is ours."""
    work, fastest, baseline = comparison.work, comparison.fastest, comparison.baseline
    return {
        **{key: work[key] for key in WORK_KEYS},
        "baseline": None if baseline is None else _place(baseline),
        "platforms": {
            **{standing.platform: _standing_json(standing) for standing in comparison.standings},
            **{each.platform: _absent_json(each) for each in comparison.absent},
        },
        "fastest": None if fastest is None else fastest.platform,
        "flips": [],
        "rows": work["rows"],
        "updates_per_epoch": work["updates_per_epoch"],
        "epochs": work["whole_epochs"],
        "ranked_by": "seconds_per_pass" if comparison.by_pass else "seconds",
        "one_machine": None if comparison.machine is None else _place(comparison.machine),
        "no_baseline": comparison.no_baseline,
        "decided": None if comparison.runner_up is None else comparison.runner_up.call,
        "tests": [_test_json(test) for test in comparison.tests],
        "not_run": [{"configuration": comparison.label(row), "status": row["status"]} for row in comparison.not_run],
    }


def _place(row: Row) -> dict[str, Any]:
    return {
        "platform": row["platform"],
        "total_cores": row["total_cores"],
        "seconds": row["mean_seconds"],
        "seconds_per_pass": row["seconds_per_pass"],
        "precision": row["precision"],
        "gradient": row["gradient"],
        "compression": row["compression"],
        "ci_low": row["ci_low"],
        "ci_high": row["ci_high"],
        "trials": row["trials"],
        "executors": row["executors"],
        "cores": row["cores"],
        "threads": row["threads"],
    }


def _standing_json(standing: Standing) -> dict[str, Any]:
    return {
        "cost_cores": standing.cost_cores,
        "cost_unit": standing.cost_unit,
        "reason": standing.reason,
        "baseline": None if standing.baseline is None else label(standing.baseline),
        **_without_platform(standing.best),
        "status": standing.best["status"],
        **{name: standing.best[name] for name in ("exchange_seconds", "peak_memory_mib")},
        "over_fastest": _ratio_json(standing.against_fastest),
        "over_baseline": _ratio_json(standing.against_baseline),
        "factors": [_without_platform(row) for row in standing.factors],
    }


def _absent_json(absent: Absent) -> dict[str, Any]:
    return {
        "cost_cores": None,
        "cost_unit": "cores",
        "reason": absent.reason,
        "baseline": None,
        "total_cores": None,
        "seconds": None,
        "status": absent.reason,
        "exchange_seconds": None,
        "peak_memory_mib": None,
        "over_fastest": None,
        "over_baseline": None,
        "factors": [],
    }


def _without_platform(row: Row) -> dict[str, Any]:
    return {key: value for key, value in _place(row).items() if key != "platform"}


def _ratio_json(value: Ratio | None) -> dict[str, float | None] | None:
    return None if value is None else {"ratio": value.value, "low": value.low, "high": value.high}


def _test_json(test: Test) -> dict[str, Any]:
    return {
        "left": label(test.left, varying=("precision", "gradient")),
        "right": label(test.right, varying=("precision", "gradient")),
        "against": test.against,
        "t": test.t,
        "degrees_of_freedom": test.degrees,
        "p": test.p,
        "p_holm": test.p_holm,
        "call": test.call,
    }
