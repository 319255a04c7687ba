"""What `yarnstick predict` is asked, found among what a run measured, and its answer in plain values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from models.spec import Network
from report.facts import BaselineSpec
from report.predictions import ALIKE, Prediction, Series, predicted
from report.scaling_model import Point, Size
from report.words import listed
from store.errors import SettingError

SYNTHETIC = re.compile(r"synthetic:([1-9][0-9]{0,9})x([1-9][0-9]{0,9})x([1-9][0-9]{0,9})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """As it comes from the command line; None is for what was measured."""

    run_id: str
    platform: str
    dataset: str
    executors: int | None = None
    cores: int | None = None
    rows: int | None = None
    hidden: tuple[int, ...] | None = None
    solver: str | None = None
    precision: str | None = None


def answer(question: Question, found: Sequence[Series], *, baseline: BaselineSpec) -> dict[str, Any]:
    """Seconds an epoch; SettingError with one sentence where there is none."""
    series = _series_for(question, found, baseline)
    return as_json(question, series, predicted(series, _size(question, series)))


def as_json(question: Question, series: Series, prediction: Prediction) -> dict[str, Any]:
    """The contract's: seconds of an epoch, their interval, and what is known of how far off they may be."""
    size, passes = prediction.size, series.passes
    network = _named(series, size)
    low, high = (None if each is None else each * passes for each in (prediction.low, prediction.high))
    return {
        "run_id": question.run_id,
        "platform": question.platform,
        "dataset": question.dataset,
        "network": network,
        "rows": size.rows,
        "executors": size.executors,
        "cores": size.cores,
        "threads": size.threads,
        "total_cores": size.total_cores,
        "partitions": size.partitions,
        **{name: series.of[name] for name in ALIKE if name != "platform"},
        "seconds": prediction.seconds * passes,
        "ci_low": low,
        "ci_high": high,
        "interval": None if low is None else [low, high],
        "held_out_error": prediction.error,
        "held_out_error_largest": series.largest.error,
        "extrapolated": bool(prediction.extrapolated),
        "extrapolated_in": list(prediction.extrapolated),
        "validated": prediction.is_validated,
        "note": prediction.note,
        "configurations": len(series.points),
        "measured": {name: [values[0], values[-1]] for name, values in series.known.items()},
        "seconds_per_pass": prediction.seconds,
        "passes_per_epoch": passes,
        "parts": {name: value * passes for name, value in prediction.parts.items()},
    }


def _series_for(question: Question, found: Sequence[Series], baseline: BaselineSpec) -> Series:
    """Of several that fit, one at the baseline's precision, then the one with most configurations."""
    run = f"run {question.run_id}"
    left = [series for series in found if series.of["platform"] == question.platform]
    if not left:
        known = sorted({str(series.of["platform"]) for series in found})
        raise SettingError(f"platform {_shown(question.platform)} has no epochs in {run}; {_known(known)}")
    datasets = sorted({name for series in left for point in series.points for name in point.datasets})
    # Of data that is made up, all of a kind but for their sizes, any tells of any.
    made_up = SYNTHETIC.fullmatch(question.dataset) is not None
    left = [series for series in left if (series.kind == "synthetic" if made_up else _of_dataset(question, series))]
    if not left:
        raise SettingError(
            f"dataset {_shown(question.dataset)} was not trained on by {question.platform} in {run}; {_known(datasets)}"
        )
    subject = "synthetic data" if made_up else question.dataset
    for name in ("solver", "precision"):
        wanted = getattr(question, name)
        known = sorted({str(series.of[name]) for series in left})
        left = [series for series in left if wanted is None or series.of[name] == wanted]
        if not left:
            raise SettingError(
                f"{name} {_shown(wanted)} of {question.platform} was not measured on {subject} in {run}; "
                f"{_known(known)}"
            )

    def first(series: Series) -> tuple[bool, bool, bool, bool, int]:
        return (
            series.model is not None,
            bool(_of_dataset(question, series)),
            series.of["precision"] == baseline.precision,
            series.of["solver"] == "gd",
            len(series.points),
        )

    return max(left, key=first)


def _of_dataset(question: Question, series: Series) -> list[Point]:
    return [point for point in series.points if question.dataset in point.datasets]


def _size(question: Question, series: Series) -> Size:
    mine = _of_dataset(question, series)
    executors, cores, threads = _resources(question, series)
    size = Size(
        rows=_rows(question, mine),
        layers=_layers(question, series, mine),
        executors=executors,
        cores=cores,
        threads=threads,
        batch_size=series.of["batch_size"],
    )
    known = [point.size.partitions for point in series.points if point.size.partitions is not None]
    # As a profile chooses them: no fewer than there are cores.
    partitions = max([*known, size.total_cores]) if known else None
    return Size(
        rows=size.rows, layers=size.layers, executors=executors, cores=cores, threads=threads,
        batch_size=size.batch_size, partitions=partitions,
    )  # fmt: skip


def _rows(question: Question, mine: Sequence[Point]) -> int:
    if question.rows is not None:
        return question.rows
    return max(point.size.rows for point in mine) if mine else _made_up(question.dataset)[0]


def _made_up(dataset: str) -> tuple[int, int, int]:
    """Rows, columns and classes of synthetic data."""
    rows, columns, classes = map(int, dataset.partition(":")[2].split("x"))
    return rows, columns, classes


def _layers(question: Question, series: Series, mine: Sequence[Point]) -> tuple[int, ...]:
    """The network that was measured most on this dataset, with other hidden layers where they are asked for."""
    layers = _commonest(mine or series.points)
    if question.hidden is not None and len(layers) < 2:
        raise SettingError(
            f"--hidden: the arithmetic of {series.family} is not known, so nothing can be told of another size of it; "
            f"leave it out"
        )
    if not layers:
        return ()
    if not mine:
        _, columns, classes = _made_up(question.dataset)
        layers = (columns, *layers[1:-1], classes)
    return (layers[0], *question.hidden, layers[-1]) if question.hidden is not None else layers


def _commonest(points: Sequence[Point]) -> tuple[int, ...]:
    counts = Counter(point.size.layers for point in points)
    return max(counts, key=lambda layers: (counts[layers], Network(sizes=layers).parameters or 0))


def _resources(question: Question, series: Series) -> tuple[int | None, int | None, int | None]:
    """Executors and the cores of each; threads are the cores of a platform without executors."""
    first = series.points[0].size
    if first.executors is not None:
        missing = [f"--{name}" for name in ("executors", "cores") if getattr(question, name) is None]
        if missing:
            raise SettingError(
                f"{question.platform} runs on executors: say {listed(missing)}, as --executors 2 --cores 1"
            )
        return question.executors, question.cores, None
    if question.executors not in (None, 1):
        raise SettingError(
            f"--executors {question.executors}: {question.platform} has no executors; leave it out, or give 1, and its "
            f"threads as --cores"
        )
    return None, None, None if first.threads is None else question.cores or first.threads


def _named(series: Series, size: Size) -> str:
    kind, _, activations = series.family.partition(":")
    if not size.layers:
        return series.family
    return Network(sizes=size.layers, activations=tuple(filter(None, activations.split(",")))).name if kind else ""


def _known(names: Sequence[str]) -> str:
    return f"known are {', '.join(names)}" if names else "it has none that may be ranked"


def _shown(name: str) -> str:
    return name if name.isprintable() else ascii(name)
