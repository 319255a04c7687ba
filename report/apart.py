"""MLlib told apart from the cluster: PyTorch on the very same executors stands between MLlib and PyTorch alone.

MLlib over PyTorch there is MLlib's doing, by precision and by runtime; PyTorch there over as many threads of one
process is the cluster's: Spark, several processes, and the sums between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from report import communication
from report.statistics import ALIKE, LEAST_FASTER, Ratio, ratio
from report.verdict import Comparison, Row
from report.words import capped, period, resources, seconds, solver, times_between, title

LIBRARIES = ("mllib", "mllib-logistic")
THERE, ALONE = "torch-spark", "torch-cpu"
EXECUTORS = ("executors", "cores", "memory_mib", "deploy_mode", "device", "machine", "origin")
SAME_LOSS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Ratios of seconds, each of the first named over the second; None where a side did not run."""

    comparison: Comparison
    library: Row
    there: Row  # PyTorch on the very same executors, in the precision that it is judged by
    fine: Row | None  # the same in the library's own precision, where that is another
    alone: Row | None  # PyTorch in one process with as many threads
    thread: Row | None  # and with one

    @property
    def of_library(self) -> Ratio:
        return self.over(self.library, self.there)

    @property
    def precision(self) -> Ratio | None:
        return None if self.fine is None else self.over(self.fine, self.there)

    @property
    def runtime(self) -> Ratio | None:
        """What is left of it at equal precision."""
        if self.fine is not None:
            return self.over(self.library, self.fine)
        return self.of_library if self.library["precision"] == self.there["precision"] else None

    @property
    def of_cluster(self) -> Ratio | None:
        return None if self.alone is None else self.over(self.there, self.alone)

    @property
    def gain(self) -> Ratio | None:
        """Over one thread; how many times as fast."""
        return None if self.thread is None else self.over(self.thread, self.there)

    def differ(self, left: Row, right: Row) -> bool | None:
        """As the verdict tested these two, else by the interval of their ratio; None where one ran only once."""
        if min(len(self.comparison.values(row)) for row in (left, right)) < 2:
            return None
        pair = {left["configuration"], right["configuration"]}
        calls = {
            test.against: test.call in ("beats", "too little")
            for test in self.comparison.tests
            if {test.left["configuration"], test.right["configuration"]} == pair
        }
        if "runner-up" in calls:
            return calls["runner-up"]
        between = self.over(left, right)
        # Against the baseline only one direction was tested.
        return calls.get("baseline", False) or not (
            between.low is None or between.high is None or between.low <= 1 <= between.high
        )

    def over(self, left: Row, right: Row) -> Ratio:
        return ratio(self.comparison.sample(left), self.comparison.sample(right))


def apart(comparison: Comparison) -> Apart | None:
    """Of the fastest configuration of MLlib on whose executors PyTorch ran too."""
    judged = {standing.platform: standing.best for standing in comparison.standings}
    if THERE not in judged:
        return None
    usual = judged[THERE]
    for library in comparison.ran:
        if library["platform"] not in LIBRARIES:
            continue
        there = _first(comparison, THERE, like=usual, on=library)
        if there is not None:
            other = library["precision"] != there["precision"]
            precision = {**there, "precision": library["precision"]}
            return Apart(
                comparison=comparison,
                library=library,
                there=there,
                fine=_first(comparison, THERE, like=precision, on=library) if other else None,
                alone=_first(comparison, ALONE, like=there, threads=there["total_cores"]),
                thread=_first(comparison, ALONE, like=there, threads=1),
            )
    return None


def _first(
    comparison: Comparison, platform: str, *, like: Row, on: Row | None = None, threads: int | None = None
) -> Row | None:
    """The fastest with the precision and the gradient of `like`, and all of a gradient's digits on their way."""
    for row in comparison.ran:
        if (
            row["platform"] == platform
            and all(row[name] == like[name] for name in ("precision", "gradient", "machine", "origin"))
            and row["compression"] in (None, "none")
            and (on is None or all(row[name] == on[name] for name in EXECUTORS))
            and (threads is None or row["threads"] == threads)
        ):
            return row
    return None


def headline(each: Apart) -> str:
    """One sentence: what is MLlib's, by algorithm, precision and runtime, and what is the cluster's."""
    library, there = title(each.library["platform"]), title(THERE)
    said = _held_against(
        each,
        (each.library, library),
        (each.there, f"{there}, PyTorch on the very same {resources(each.there)}"),
        doing=f"that is MLlib{_parts(each)}",
        unseen="MLlib costs nothing that was seen",
        unknown="what MLlib costs is not known",
    )
    if each.alone is not None:
        cluster = _held_against(
            each,
            (each.there, there),
            (each.alone, f"{title(ALONE)} with {resources(each.alone)}"),
            doing="that is the cluster",
            unseen="the cluster costs nothing that was seen",
            unknown="what the cluster costs is not known",
        )
        said = f"{said}; {cluster}"
    return f"{said if said.startswith(library) else capped(said)}."


def _held_against(
    each: Apart, left: tuple[Row, str], right: tuple[Row, str], *, doing: str, unseen: str, unknown: str
) -> str:
    """How many times as long the left one takes, and no more than was found of it."""
    (row, name), (other, other_name) = left, right
    between = each.over(row, other)
    told = _with_interval(between)
    differ = each.differ(row, other)
    if differ is False:
        if abs(between.value - 1) <= ALIKE:
            return f"no difference was found between {name} and {other_name} ({_inside(between)}): {unseen}"
        return f"these trials cannot tell {name} from {other_name} ({_inside(between)}): {unknown}"
    plain = " in plain numbers" if differ is None else ""
    little = ", too little to matter" if abs(between.value - 1) < LEAST_FASTER else ""
    return f"{name} takes {told} as long as {other_name}{plain}{little}: {doing}"


def _inside(value: Ratio) -> str:
    """For brackets: `1.06x, 0.84 to 1.33`."""
    return _with_interval(value).replace(" (", ", ").removesuffix(")")


def _parts(each: Apart) -> str:
    if each.precision is not None and each.runtime is not None:
        parts = f"{_with_interval(each.precision)} by precision and {_with_interval(each.runtime)} by runtime"
        return f", {parts}, with the same algorithm"
    if each.runtime is not None:
        return ", all of it runtime, with the same precision and algorithm"
    return ""


def sentences(each: Apart) -> list[str]:
    """What follows the headline: how each part was told from the others."""
    return [text for text in (_split(each), _cluster(each), _communication(each)) if text]


def _split(each: Apart) -> str:
    library, there = each.library, each.there
    name = title(library["platform"])
    what = f"{name}'s {times_between(each.of_library.value, each.of_library.low, each.of_library.high)}"
    algorithm = f"the algorithm is the same, {solver(each.comparison.work)}{_losses(each)}"
    if each.precision is not None and each.runtime is not None:
        return (
            f"Of {what}, {_with_interval(each.precision)} is precision ({library['precision']} instead of "
            f"{there['precision']}, as {title(THERE)} shows there), and {_with_interval(each.runtime)} is runtime; "
            f"{algorithm}."
        )
    if each.runtime is not None:
        return f"{what} is runtime alone: both compute in {library['precision']}; {algorithm}."
    if library["precision"] is None or there["precision"] is None:
        return ""
    both = f"{there['precision']} {library['precision']}"
    return (
        f"Of {what}, precision and runtime are not told apart on these executors (precisions = {both} would do that); "
        f"{algorithm}."
    )


def _losses(each: Apart) -> str:
    """That both walked the same way is seen by where they came to."""
    one, other = each.library["loss"], each.there["loss"]
    if one is None or other is None or each.library["epochs_requested"] != each.there["epochs_requested"]:
        return ""
    if abs(one - other) <= SAME_LOSS * abs(other):
        return f", and both end at a loss of {other:.3g}"
    return f", though their losses end at {one:.3g} and {other:.3g}"


def _cluster(each: Apart) -> str:
    if each.thread is None or each.gain is None:
        return ""
    what = period(each.comparison.work, by_pass=each.comparison.by_pass)
    gain = _with_interval(each.gain)
    return (
        f"Against one thread of {title(ALONE)} ({seconds(each.thread['rank_by'])} {what}) {title(THERE)} is {gain} as "
        f"fast there ({seconds(each.there['rank_by'])})."
    )


def _communication(each: Apart) -> str:
    return communication.limit([each.there, each.library])


def _with_interval(value: Ratio) -> str:
    return times_between(value.value, value.low, value.high)


def as_json(each: Apart | None) -> dict[str, Any] | None:
    if each is None:
        return None
    exchanges = {
        row["platform"]: {"exchange_seconds": row["exchange_seconds"], "share_of_epoch": communication.share(row)}
        for row in (each.there, each.library)
    }
    return {
        **{name: each.there[name] for name in ("executors", "cores", "memory_mib", "total_cores")},
        "library": each.library["platform"],
        "library_seconds": each.library["rank_by"],
        "library_precision": each.library["precision"],
        "torch_spark_seconds": each.there["rank_by"],
        "torch_spark_precision": each.there["precision"],
        "library_over_torch_spark": _json(each.of_library),
        "of_that_precision": _json(each.precision),
        "of_that_runtime": _json(each.runtime),
        "torch_spark_over_as_many_threads": _json(each.of_cluster),
        "library_differs": each.differ(each.library, each.there),
        "cluster_differs": None if each.alone is None else each.differ(each.there, each.alone),
        "torch_spark_faster_than_one_thread": _json(each.gain),
        "communication": exchanges,
    }


def _json(value: Ratio | None) -> dict[str, float | None] | None:
    return None if value is None else {"ratio": value.value, "low": value.low, "high": value.high}
