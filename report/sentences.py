"""What may be said, in whole sentences: never more than the statistics do. The page and the terminal say the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from models.noise import crowded
from report import apart
from report.apart import Apart
from report.imported import all_imported, is_imported
from report.statistics import ALIKE
from report.verdict import PLAIN, Comparison, Row, Standing, Test
from report.words import (
    capped,
    chance,
    counted,
    distinct_seconds,
    listed,
    period,
    resources,
    rows,
    seconds,
    seconds_between,
    solver,
    times_between,
    title,
    work,
)

if TYPE_CHECKING:
    import polars as pl

    from report.facts import RunFacts

MOST_OTHERS = 3


def verdict(comparison: Comparison, *, run: RunFacts, machines: int = 1, told_apart: Apart | None = None) -> list[str]:
    """The answer: what is MLlib and what is the cluster, where that can be told apart; then what is fastest."""
    fastest = comparison.fastest
    if fastest is None:
        return [fastest_of(comparison, run=run)]
    others = comparison.standings[1:]
    said = [fastest_of(comparison, run=run, machines=machines)]
    if told_apart is not None:
        said = [apart.headline(told_apart), *said, *apart.sentences(told_apart)]
    slower = [standing for standing in others if not _is_tied(comparison, standing)]
    said += [_other(fastest, standing) for standing in slower[:MOST_OTHERS]]
    if len(slower) > MOST_OTHERS:
        said.append(f"{MOST_OTHERS} of {len(slower)} slower platforms are named here; the table has all.")
    said += [text for text in (_surely(comparison, others), _cost(comparison)) if text]
    return said


def fastest_of(comparison: Comparison, *, run: RunFacts, machines: int = 1) -> str:
    """The sentence that names what was trained, and the fastest."""
    if comparison.fastest is None:
        reasons = "; ".join(f"{title(each.platform)} {each.reason}" for each in comparison.absent)
        return f"{_task(comparison, run)} was trained on no platform: {reasons}."
    return _first(comparison, comparison.fastest, comparison.standings[1:], run, machines)


def trust(comparison: Comparison, *, run: RunFacts, attempts: pl.DataFrame) -> list[str]:
    """How many trials there were, which were noisy, what did not run and why, and how much of the data it was."""
    mine = _attempts_of(comparison, attempts)
    ranked = mine.filter(mine["ranked"])
    counts = sorted({row["trials"] for row in comparison.ran})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}" if counts else "0"
    parts = (
        [f"{each} {'trial' if counts == [1] else 'trials'} each, {ranked.height:,} in all"]
        if counts
        else ["no trial ran"]
    )
    loud = ranked.filter(ranked["noisy"])
    if counts:
        unknown = sum(row["trials"] for row in comparison.ran if is_imported(row))
        if unknown < ranked.height:
            parts.append(f"{loud.height} of {ranked.height} noisy{_crowded(loud)}" if loud.height else "none noisy")
        if unknown:
            parts.append(f"{counted(unknown, 'trial')} imported, of which nobody knows how noisy they were")
    repeated = mine.filter(mine["noisy"] & ~mine["counts"])
    if repeated.height:
        parts.append(f"{counted(repeated.height, 'noisy attempt')} repeated{_crowded(repeated)}")
    for outcome in ("failed", "diverged", "tainted"):
        mine_lost = mine.filter(mine["counts"] & (mine["outcome"] == outcome)).height
        if mine_lost:
            parts.append(f"{counted(mine_lost, 'trial')} {outcome}")
    if any(row["warmup_kept"] for row in comparison.ran):
        parts.append("one epoch a trial, so that the warm-up is in it")
    parts += _missing(comparison)
    if share := rows(comparison.work, of=run.rows_of.get(comparison.work["dataset"])):
        parts.append(share)
    parts.append(f"profile {run.profile}")
    return parts


def _crowded(loud: pl.DataFrame) -> str:
    """How many of them were noisy because of others' containers, apart from those whose machine was busy."""
    number = crowded(loud["noise"].to_list())
    if not number:
        return ""
    return f" ({number if number < loud.height else 'all'} because others had part of the nodes)"


def grouped_by_status(comparison: Comparison) -> dict[str, list[str]]:
    """What has no number, by the reason; a platform that did nothing at all in one configuration goes by its name."""
    tried: dict[str, int] = {}
    for row in (*comparison.ran, *comparison.not_run):
        tried[row["platform"]] = tried.get(row["platform"], 0) + 1
    groups: dict[str, list[str]] = {}
    for row in comparison.not_run:
        name = title(row["platform"]) if tried[row["platform"]] == 1 else comparison.label(row)
        groups.setdefault(row["status"], []).append(name)
    return groups


def _missing(comparison: Comparison, at_most: int = 3) -> list[str]:
    """`not run: torch-cuda (no CUDA device)`."""
    parts: dict[str, list[str]] = {}
    for status, labels in grouped_by_status(comparison).items():
        named = labels if len(labels) <= at_most else [*labels[: at_most - 1], f"{len(labels) - at_most + 1} more"]
        what, _, reason = status.partition(": ")
        parts.setdefault(what, []).append(listed(named) + (f" ({reason})" if reason else ""))
    return [f"{what}: {'; '.join(texts)}" for what, texts in parts.items()]


def _task(comparison: Comparison, run: RunFacts) -> str:
    share = rows(comparison.work, of=run.rows_of.get(comparison.work["dataset"]))
    inside = ", ".join(text for text in (share, solver(comparison.work)) if text)
    return f"{work(comparison.work)} ({inside})"


def _first(comparison: Comparison, fastest: Standing, others: Sequence[Standing], run: RunFacts, machines: int) -> str:
    where = "On this machine" if machines <= 1 else f"On these {machines} machines"
    where = "By imported timings" if all_imported(comparison.ran) else where
    what = period(comparison.work, by_pass=comparison.by_pass)
    best = fastest.best
    tied = [standing for standing in others if _is_tied(comparison, standing)]
    if tied:
        times_said = distinct_seconds([best["rank_by"], *(standing.best["rank_by"] for standing in tied)])
        named = [
            f"{title(standing.platform)} ({said} {what}{_with(standing.best)})"
            for standing, said in zip([fastest, *tied], times_said, strict=True)
        ]
        found, last = _undecided(comparison, best, tied)
        return f"{where}, {found} for {_task(comparison, run)}: {listed(named, last)}."
    said = seconds(best["rank_by"])
    verb = "trains fastest" if others else "was trained only"
    test = comparison.runner_up
    plain = " in plain numbers" if others and test is not None and test.p is None else ""
    return f"{where}, {_task(comparison, run)} {verb} on {title(fastest.platform)}{plain}: {said} {what}{_with(best)}."


def _undecided(comparison: Comparison, best: Row, tied: Sequence[Standing]) -> tuple[str, str]:
    """What may be said of the fastest two where neither beats the other, and how they are listed."""
    call = comparison.runner_up.call if comparison.runner_up is not None else ""
    if call == "too little":
        return "the two fastest differ by less than 2 %, too little to matter,", "and"
    if call == "plain slower":
        return "in plain numbers the two fastest differ by less than 2 %", "and"
    # Far apart, and yet not certain: whoever reads that there is no difference would take them for equal.
    if max(standing.best["rank_by"] for standing in tied) <= (1 + ALIKE) * best["rank_by"]:
        return "no difference was found between the fastest", "and"
    return "these trials cannot tell which is fastest", "or"


def _with(row: Row) -> str:
    text = resources(row)
    return f" with {text}" if text else ""


def _other(fastest: Standing, standing: Standing) -> str:
    best, first, against = standing.best, fastest.best, standing.against_fastest
    inside = [resources(best)] if resources(best) else []
    if best["precision"] != first["precision"] and best["precision"]:
        inside.append(best["precision"])
    at = f" at its best ({', '.join(inside)})" if inside else ""
    with_cores = ""
    if best["total_cores"] is not None and first["total_cores"] is not None:
        same = best["total_cores"] == first["total_cores"]
        with_cores = " with as many cores" if same else f" with {counted(best['total_cores'], 'core')}"
    _, said = distinct_seconds([first["rank_by"], best["rank_by"]])
    long = times_between(against.value, against.low, against.high).replace("x", "x as long", 1)
    return f"{title(standing.platform)}{at} needs {said}{with_cores}: {long}."


def _is_tied(comparison: Comparison, standing: Standing) -> bool:
    """Only the runner-up was tested against the fastest; what is slower than it in the mean is told as numbers."""
    test = comparison.runner_up
    return test is not None and test.right["platform"] == standing.platform and not test.beats


def _surely(comparison: Comparison, others: Sequence[Standing]) -> str:
    test = comparison.runner_up
    if test is None:
        return "" if all(row["trials"] > 1 for row in comparison.ran) else _single(comparison)
    pair = (
        f"{comparison.label(test.left)} and {comparison.label(test.right)}"
        if not others
        else "the two fastest platforms"
    )
    if test.p is None or test.p_holm is None:
        return _single(comparison)
    tested = f"(Welch's test, {chance(test.p_holm)}{_corrected(comparison)})"
    certain = f"The difference between {pair} is beyond doubt at the 5 % level {tested}"
    if test.call == "beats":
        return f"{certain}."
    if test.call == "too little":
        return f"{certain}, and below 2 %: too little to matter."
    return f"{capped(pair)} may differ all the same: these trials cannot tell {tested}."


def _corrected(comparison: Comparison) -> str:
    tested = sum(test.p is not None for test in comparison.tests)
    return f", Holm over {counted(tested, 'comparison')}" if tested > 1 else ""


def _single(comparison: Comparison) -> str:
    once = [row for row in comparison.ran if row["trials"] == 1]
    if len(once) == len(comparison.ran):
        return "Each configuration ran once: these are plain numbers, and how sure they are cannot be said."
    return f"{counted(len(once), 'configuration')} ran only once: that comparison is of plain numbers, without a test."


def _cost(comparison: Comparison) -> str:
    """COST: from how many cores on each platform beats the baseline."""
    if comparison.baseline is None:
        return f"{capped(comparison.no_baseline)}." if comparison.no_baseline else ""
    against: dict[int, tuple[Row, list[Standing]]] = {}  # imported platforms may each have another one
    for each in comparison.standings:
        if each.baseline is not None and each.platform != each.baseline["platform"]:
            against.setdefault(each.baseline["configuration"], (each.baseline, []))[1].append(each)
    return " ".join(_beaten(comparison, baseline, others) for baseline, others in against.values())


def _beaten(comparison: Comparison, baseline: Row, others: Sequence[Standing]) -> str:
    name = f"{title(baseline['platform'])}{_with(baseline)} ({seconds(baseline['rank_by'])})"
    plain = " In plain numbers:" if all(each.reason.endswith(PLAIN) for each in others) else ""
    won = [_won(each) for each in others if _beats(each)]
    lost = [_lost(comparison, each) for each in others if not _beats(each)]
    said = [f"the baseline, {name}, is beaten by {listed(won)}"] if won else []
    if lost:
        what = "it" if won else f"the baseline, {name}"
        said.append(f"{listed(lost)} did not beat {what}")
    text = "; ".join(said)
    return f"{plain} {text if plain or not won else capped(text)}.".strip()


def _beats(standing: Standing) -> bool:
    return standing.cost_cores is not None or standing.reason.startswith("it beats")


def _won(standing: Standing) -> str:
    if standing.cost_cores is None:
        return title(standing.platform)
    return f"{title(standing.platform)} from {counted(standing.cost_cores, standing.cost_unit[:-1])} on"


def _lost(comparison: Comparison, standing: Standing) -> str:
    column = "executors" if standing.cost_unit == "executors" else "total_cores"
    mine = [test.left for test in comparison.tests if test.against == "baseline"]
    sizes = sorted({row[column] for row in mine if row["platform"] == standing.platform and row[column] is not None})
    if not sizes:
        return title(standing.platform)
    unit = standing.cost_unit[:-1] if sizes == [1] else standing.cost_unit
    return f"{title(standing.platform)} with {listed([f'{size:,}' for size in sizes], 'or')} {unit}"


# The terminal.


def terminal_table(comparison: Comparison) -> list[str]:
    """The first screen's small table as plain text."""
    heads = ("platform", "at its best", "seconds", "95 % interval", "x fastest", "COST")
    lines = [heads, *(table_row(comparison, standing) for standing in comparison.standings)]
    absent = [(title(each.platform), each.reason) for each in comparison.absent]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    widths[0] = max([widths[0], *(len(name) for name, _ in absent)])
    return [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=False)).rstrip()
        for line in [*lines, *absent]
    ]


def table_row(comparison: Comparison, standing: Standing) -> tuple[str, ...]:
    best, against = standing.best, standing.against_fastest
    others = [best[name] for name in ("origin", "machine") if name in comparison.varying]
    at = ", ".join(text for text in (resources(best), best["precision"] or "", *others) if text)
    inside = seconds_between(*comparison.interval(best))
    ratio = "" if standing is comparison.fastest else times_between(against.value, against.low, against.high)
    return (title(standing.platform), at, seconds(best["rank_by"], 3), inside, ratio, cost(comparison, standing))


def cost(comparison: Comparison, standing: Standing) -> str:
    if comparison.baseline is None:
        return "no baseline"
    if standing.cost_cores is not None:
        return counted(standing.cost_cores, standing.cost_unit[:-1])
    if standing.platform == comparison.baseline["platform"]:
        return "baseline"
    return "beats it" if _beats(standing) else standing.reason


def tests_said(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    """The planned comparisons, a line each."""
    calls = {
        "beats": "faster",
        "does not": "no difference found",
        "too little": "faster by less than 2 %",
        "plain faster": "faster in plain numbers",
        "plain slower": "not faster in plain numbers",
    }
    return [
        (comparison.label(test.left), comparison.label(test.right), _p(test), calls[test.call])
        for test in comparison.tests
    ]


def _p(test: Test) -> str:
    return "no test" if test.p_holm is None else chance(test.p_holm).removeprefix("p ").removeprefix("= ")


def _attempts_of(comparison: Comparison, attempts: pl.DataFrame) -> pl.DataFrame:
    numbers = [row["configuration"] for row in (*comparison.ran, *comparison.not_run)]
    return attempts.filter(attempts["configuration"].is_in(numbers))
