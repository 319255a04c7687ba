"""The history in words: a table with a line of small bars for each configuration, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from report.changes import LEAST_CHANGE, LEAST_VALUES, WINDOW, Size
from report.history import History, Series, Shift
from report.words import chance, counted, factor, listed, percent, seconds

BARS = "▁▂▃▄▅▆▇█"
NO_TIME = "·"
LONGEST_LINE = 24  # small bars
EQUAL = 5e-5  # a smaller change would be shown as 0.00 %
FLAT = 0.1  # a line of bars whose values differ by less uses fewer of the heights
MOST_TOLD = 6  # changes, in the terminal
MOST_BESIDE = 6
MOST_UNTIMED = 5
MOST_ABSENT = 8  # configurations of earlier runs, in the terminal
HEADS = ("configuration", "runs", "oldest to newest", "usual", "newest", "change", "the newest run")


def small_bars(values: Sequence[float | None]) -> str:
    """Of the last values a bar each, higher is slower; the heights span at least a tenth of the least value."""
    shown = values[-LONGEST_LINE:]
    known = [value for value in shown if value is not None]
    if not known:
        return NO_TIME * len(shown)
    low = min(known)
    span = max(max(known) - low, FLAT * low)
    return "".join(
        NO_TIME if value is None else BARS[min(len(BARS) - 1, math.floor((value - low) / span * len(BARS)))]
        for value in shown
    )


def change(size: Size, p: float | None = None) -> str:
    """`10 % slower (1.08x to 1.12x, p = 0.001)`: the interval is of the ratio."""
    moved = size.ratio - 1
    how = f"{percent(abs(moved), 2)} {'slower' if moved > 0 else 'faster'}" if abs(moved) >= EQUAL else "the same"
    known = size.low is not None and size.high is not None
    between = [f"{factor(size.low)}x to {factor(size.high)}x"] if known else []  # type: ignore[arg-type]
    inside = [*between, *([] if p is None else [chance(p)])]
    return f"{how} ({', '.join(inside)})" if inside else how


def usual(each: Series) -> float | None:
    """The mean of the runs that the newest is held against: those before it, or before times changed."""
    timed, told = each.timed, each.newest
    if not told.against:
        return None
    window = timed[-1 - told.against : -1]
    if told.since is not None:
        at = each.moved[-1]
        begin = max([0, at - WINDOW, *each.moved[:-1]])
        window = timed[begin:at]
    means = [point.mean for point in window if point.mean is not None]
    return sum(means) / len(means)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the table, in words; what is not known is empty."""

    name: str
    runs: str
    bars: str
    usual: str
    newest: str
    change: str
    standing: str

    def cells(self) -> tuple[str, ...]:
        return self.name, self.runs, self.bars, self.usual, self.newest, self.change, self.standing


def row(each: Series) -> Row:
    is_there = each.newest.standing not in ("absent", "no time")
    newest, before = each.points[-1].mean if is_there else None, usual(each)
    size = each.newest.since.size if each.newest.since is not None else each.newest.size
    return Row(
        name=each.name,
        runs=str(len(each.timed)),
        bars=small_bars([point.mean for point in each.points]),
        usual="" if before is None else seconds(before, 3),
        newest="" if newest is None else seconds(newest, 3),
        change="" if size is None else change(size),
        standing=standing(each),
    )


def timed(history: History) -> list[Series]:
    """Those that have a time in some run."""
    return [each for each in history.series if each.timed]


def in_table(history: History) -> tuple[list[Series], str]:
    """What the terminal shows of those with a time, and a sentence on those that it leaves out."""
    found = timed(history)
    gone = [each for each in found if each.newest.standing == "absent"]
    left_out = {id(each) for each in gone[MOST_ABSENT:]}
    more = f"{counted(len(left_out), 'configuration')} of earlier runs more; the page has all." if left_out else ""
    return [each for each in found if id(each) not in left_out], more


def untimed(history: History) -> str:
    """The others in a sentence, or nothing."""
    found = [each for each in history.series if not each.timed]
    if not found:
        return ""
    named = "; ".join(f"{each.name} ({each.points[-1].status})" for each in found[:MOST_UNTIMED])
    more = f"; {len(found) - MOST_UNTIMED} more" if len(found) > MOST_UNTIMED else ""
    return f"Without a time in any run: {named}{more}."


def standing(each: Series) -> str:
    """What may be said of the newest run, in a few words."""
    told = each.newest
    if told.standing == "absent":
        return "not in it"
    if told.standing == "no time":
        return each.points[-1].status
    if told.standing == "alone":
        return "the first one here"
    if told.standing == "too few":
        return f"too few trials to tell: {told.trials[1]} against {told.trials[0]}"
    if told.since is not None:
        return f"{told.standing} since {told.since.run_id}"
    if told.standing == "the same":
        small = told.p is not None and told.p < 0.05
        return f"a difference too small to matter ({chance(told.p or 0.0)})" if small else "no difference can be seen"
    return f"{told.standing} beyond doubt ({chance(told.p or 0.0)})"


def sentences(history: History) -> list[str]:
    """The verdict on the newest run, and what to do next."""
    slower, faster = history.regressions, history.improvements
    newest = history.newest.run_id
    tested = [each for each in history.series if each.newest.p is not None]
    here = [each for each in history.series if each.newest.standing not in ("absent", "no time")]
    if slower:
        told = [regression(history)]
    elif faster:
        told = [f"The newest run, {newest}, is faster: {_how(faster[0])}{_more(faster)}."]
    elif tested:
        told = [
            f"The newest run, {newest}, is as fast as those before it in all "
            f"{counted(len(tested), 'configuration')} that can be told: no difference of "
            f"{percent(LEAST_CHANGE, 1)} or more that is certain."
        ]
    elif here:
        told = [f"Nothing can be told of the newest run, {newest}, yet."]
    else:
        told = [f"The newest run, {newest}, has no time of any configuration: yarnstick runs show {newest} says why."]
    return [*told, *_next(history, here, tested)]


def regression(history: History) -> str:
    """One sentence on what is slower."""
    slower = history.regressions
    return f"The newest run, {history.newest.run_id}, is slower beyond doubt: {_how(slower[0])}{_more(slower)}."


def _how(each: Series) -> str:
    told, last = each.newest, each.points[-1]
    noise = f", though {last.noisy} of its {counted(len(last.values), 'trial')} were noisy" if last.noisy else ""
    if told.since is not None:
        return f"{each.name} is {change(told.since.size, told.since.p)} since run {told.since.run_id}{noise}"
    size = "" if told.size is None else change(told.size, told.p)
    return f"{each.name} is {size} than the {counted(told.against, 'run')} before it{noise}"


def _more(found: Sequence[Series]) -> str:
    if len(found) < 2:
        return ""
    return f", and so {'is' if len(found) == 2 else 'are'} {counted(len(found) - 1, 'more configuration')}"


def _next(history: History, here: Sequence[Series], tested: Sequence[Series]) -> list[str]:
    newest = history.newest.run_id
    found = []
    lost = [each for each in history.series if each.newest.standing == "no time" and each.timed]
    if lost:
        named = "; ".join(f"{each.name} ({each.points[-1].status})" for each in lost[:MOST_UNTIMED])
        more = f"; {len(lost) - MOST_UNTIMED} more" if len(lost) > MOST_UNTIMED else ""
        found.append(f"Timed in earlier runs and not in the newest: {named}{more}.")
    moved = [*history.regressions, *history.improvements][:1]
    for each in moved:
        since = each.newest.since
        before, at, beside = (
            (each.newest.last, newest, each.newest.beside)
            if since is None
            else (since.before, since.run_id, since.beside)
        )
        found.append(f"{beside_it(beside)} Next: yarnstick runs compare {before} {at} shows both side by side.")
        if each.points[-1].noisy:
            found.append("Its trials were disturbed: measure once more on a quiet machine before it is believed.")
        if history.regressions:
            found.append(
                f"If it is meant so: yarnstick history --profile {_quoted(history.profile)} --since {at} takes it as "
                "the new usual."
            )
    alone = [each for each in here if each.newest.standing == "alone"]
    few = [each for each in here if each.newest.standing == "too few"]
    others = {(each.machine, each.cpu) for each in history.series if each.newest.standing == "absent"} - {
        (each.machine, each.cpu) for each in here
    }
    if alone and not tested:
        where = f" on {history.newest.machine}" if others else ""
        found.append(
            f"It is the first{where}: run yarnstick run --profile {_quoted(history.profile)} --fresh once more, and "
            "there is something to hold it against."
        )
    if few:
        found.append(
            f"Of {counted(len(few), 'configuration')} there are too few trials for any difference to be certain: one "
            f"more run, or profile.{history.profile}.trials = {LEAST_VALUES}, and there are enough."
        )
    unsure = [each for each in tested if not each.newest.spread_known]
    if unsure:
        found.append(
            "How much whole runs differ by themselves is not known from so few: from three earlier runs on it counts."
        )
    if others:
        found.append(
            f"Times of {counted(len(others), 'other machine')} or processors are in the table, and are not compared "
            "with these."
        )
    return found


def beside_it(beside: Sequence[str]) -> str:
    """What else changed, as a sentence."""
    if not beside:
        return "Nothing else that is recorded changed with it."
    shown = list(beside[:MOST_BESIDE])
    more = [f"{len(beside) - MOST_BESIDE} more"] if len(beside) > MOST_BESIDE else []
    return f"What changed with it: {listed([*shown, *more])}."


def shift(each: Series, moved: Shift) -> str:
    """A change of the past as a sentence."""
    return (
        f"{moved.begun_at:%Y-%m-%d} run {moved.run_id}: {each.name} became {change(moved.size, moved.p)}. "
        f"{beside_it(moved.beside)}"
    )


def shifts(history: History) -> list[str]:
    """All changes, the newest first."""
    found = [(moved, each) for each in history.series for moved in each.shifts]
    found.sort(key=lambda pair: pair[0].begun_at, reverse=True)
    return [shift(each, moved) for moved, each in found]


def heading(history: History) -> str:
    runs, newest = history.runs, history.newest
    days = list(dict.fromkeys(f"{each.entry.begun_at:%Y-%m-%d}" for each in (runs[0], runs[-1])))
    cpu = f", {newest.cpu}" if newest.cpu else ""
    return (
        f"{counted(len(runs), 'run')} of profile {history.profile}, {' to '.join(days)}; the newest on "
        f"{newest.machine}{cpu}"
    )


def lines(history: History, *, table: Sequence[str]) -> list[str]:
    """What the terminal shows. `table`: HEADS and the cells of every row in columns."""
    found = shifts(history)
    more = [f"{MOST_TOLD} of {len(found)} changes shown; the page has all."] if len(found) > MOST_TOLD else []
    return [
        heading(history),
        "",
        *sentences(history),
        "",
        *table,
        *(text for text in (in_table(history)[1], untimed(history)) if text),
        "",
        *(["Changes, the newest first:", *found[:MOST_TOLD], *more] if found else ["No change in any series."]),
    ]


def _quoted(name: str) -> str:
    import shlex

    return shlex.quote(name)
