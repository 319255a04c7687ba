"""MLlib told apart from the cluster: PyTorch on the very same executors stands between MLlib and PyTorch alone.

MLlib over PyTorch there is MLlib's doing, by precision and by runtime; PyTorch there over as many threads of one
process is the cluster's: Spark, several processes, and the sums between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from report import communication
from report.statistics import Ratio, ratio
from report.verdict import Comparison, Row
from report.words import period, resources, seconds, solver, times, times_between, title

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
        return self._ratio(self.library, self.there)

    @property
    def precision(self) -> Ratio | None:
        return None if self.fine is None else self._ratio(self.fine, self.there)

    @property
    def runtime(self) -> Ratio | None:
        """What is left of it at equal precision."""
        if self.fine is not None:
            return self._ratio(self.library, self.fine)
        return self.of_library if self.library["precision"] == self.there["precision"] else None

    @property
    def of_cluster(self) -> Ratio | None:
        return None if self.alone is None else self._ratio(self.there, self.alone)

    @property
    def gain(self) -> Ratio | None:
        """Over one thread; how many times as fast."""
        return None if self.thread is None else self._ratio(self.thread, self.there)

    def _ratio(self, left: Row, right: Row) -> Ratio:
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
    said = (
        f"{library} takes {times(each.of_library.value)} as long as {there}, PyTorch on the very same "
        f"{resources(each.there)} (that is MLlib{_parts(each)})"
    )
    if each.alone is not None and each.of_cluster is not None:
        said += (
            f", and {there} {times(each.of_cluster.value)} as long as {title(ALONE)} with {resources(each.alone)} "
            f"(that is the cluster)"
        )
    return f"{said}."


def _parts(each: Apart) -> str:
    if each.precision is not None and each.runtime is not None:
        return f": {times(each.precision.value)} precision, {times(each.runtime.value)} runtime, the same algorithm"
    return "" if each.runtime is None else ": all of it runtime, with the same precision and algorithm"


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
    return ""


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
        "torch_spark_faster_than_one_thread": _json(each.gain),
        "communication": exchanges,
    }


def _json(value: Ratio | None) -> dict[str, float | None] | None:
    return None if value is None else {"ratio": value.value, "low": value.low, "high": value.high}
