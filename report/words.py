"""Numbers and names as people read them: two or three significant digits, units, plurals. Imports nothing heavy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

TITLES = {"mllib": "Spark MLlib"}
SOLVERS = {
    "gd": "full-batch gradient descent",
    "l-bfgs": "L-BFGS",
    "sgd": "stochastic gradient descent",
    "momentum": "gradient descent with momentum",
    "adam": "Adam",
}


def capped(text: str) -> str:
    return text[:1].upper() + text[1:]


def title(platform: str) -> str:
    return TITLES.get(platform, platform)


def significant(value: float, digits: int = 2) -> str:
    """`0.33`, `2.0`, `119`: never an exponent, and no digit of a whole number is lost."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    # 9.96 has one more digit than 9.9 once it is rounded.
    decimals = digits - 1 - math.floor(math.log10(abs(round(value, decimals))))
    return f"{value:,.{max(decimals, 0)}f}"


def seconds(value: float, digits: int = 2) -> str:
    """`42 ms`, `0.33 s`, `3 min 20 s`, `2 h 5 min`."""
    if value < 0.0995:
        return f"{significant(value * 1000, digits)} ms"
    if value <= 120:
        return f"{significant(value, digits)} s"
    whole = round(value)
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    minutes = round(value / 60)
    return f"{minutes // 60:,} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60:,} h"


def distinct_seconds(values: Sequence[float]) -> list[str]:
    """As `seconds`, with a third digit where two would look equal and are not."""
    for digits in (2, 3):
        said = [seconds(value, digits) for value in values]
        if len(set(said)) == len(set(values)):
            break
    return said


def seconds_between(low: float | None, high: float | None, digits: int = 3) -> str:
    """`0.325 to 0.337 s`, or nothing."""
    if low is None or high is None:
        return ""
    first, last = seconds(max(low, 0.0), digits), seconds(high, digits)
    unit = last.rpartition(" ")[2]
    if first.count(" ") == last.count(" ") == 1 and first.endswith(f" {unit}"):
        first = first.removesuffix(f" {unit}")
    return f"{first} to {last}"


def times(value: float) -> str:
    """`6.4x`, `1.03x`: closer to one, more digits."""
    return f"{factor(value)}x"


def factor(value: float) -> str:
    return significant(value, 3 if 0.5 < value < 2 or value >= 100 else 2)


def times_between(value: float, low: float | None, high: float | None) -> str:
    """`6.4x (6.1 to 6.8)`, without brackets where there is no interval."""
    return times(value) if low is None or high is None else f"{times(value)} ({factor(low)} to {factor(high)})"


def size(count: int) -> str:
    """`42 bytes`, `9.4 MB`: powers of ten, as disks and networks count."""
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if count >= 0.9995 * 10**power:
            return f"{significant(count / 10**power, 3)} {unit}"
    return counted(count, "byte")


def money(value: float, currency: str) -> str:
    """`0.0123 EUR`."""
    return f"{significant(value, 3)} {currency}".rstrip()


def percent(value: float, digits: int = 3) -> str:
    return f"{significant(100 * value, digits)} %"


def signed_percent(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{abs(100 * value):.1f} %"


def chance(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p = {significant(p, 2)}"


def counted(number: int, thing: str) -> str:
    """`1 thread`, `2 threads`."""
    plural = thing[:-1] + "ies" if thing.endswith("y") else thing + "s"
    return f"{number:,} {thing if number == 1 else plural}"


def listed(items: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else ""


def resources(row: Mapping[str, Any]) -> str:
    """`2 executors x 1 core`, `2 threads`, or nothing where the platform has no such axis."""
    executors, cores, threads = row["executors"], row["cores"], row["threads"]
    if executors is not None:
        return counted(executors, "executor") + (f" x {counted(cores, 'core')}" if cores is not None else "")
    if threads is not None:
        return counted(threads, "thread")
    return counted(cores, "core") if cores is not None else ""


def work(row: Mapping[str, Any]) -> str:
    """What was trained, without its rows: `mnist with mlp:784-1024-10`."""
    return f"{row['dataset']} with {row['network']}"


def heading(row: Mapping[str, Any], *, of: int | None) -> str:
    """Of a comparison: with other rows, or whole trainings of other lengths, it is another one."""
    length = period(row) if row["unit"] == "training" else ""
    share = rows(row, of=of) if row["rows"] != of and (row["data_fraction"] or 1) < 1 else ""
    return ", ".join(text for text in (work(row), solver(row), share, length) if text)


def solver(row: Mapping[str, Any]) -> str:
    name = row["solver"]
    if name is None:
        return "solver not known"
    said = SOLVERS.get(name, name)
    if row["batch_size"] is not None:
        said += f", batches of {row['batch_size']:,}"
    return f"{said}, gradients of earlier weights" if row.get("is_stale") else said


def rows(row: Mapping[str, Any], *, of: int | None) -> str:
    """`15,000 of 60,000 rows`."""
    used, share = row["rows"], row["data_fraction"]
    if used is None:
        return f"{percent(share, 2)} of the rows" if share is not None and share < 1 else ""
    return f"{used:,} of {of:,} rows" if of is not None and of != used else f"{used:,} rows"


def period(row: Mapping[str, Any], *, by_pass: bool = False) -> str:
    """What the seconds are of: `an epoch`."""
    if by_pass:
        return "a pass over the rows"
    if row["unit"] == "training":
        epochs = row.get("whole_epochs")
        return f"a training of {counted(epochs, 'epoch')}" if epochs else "a whole training"
    return "an epoch"


VARYING: dict[str, Callable[[Any], str]] = {
    "precision": str,
    "gradient": str,
    "compression": lambda value: "gradients sent whole" if value == "none" else f"gradients sent in {value}",
    "learning_rate": lambda value: f"step {value:g}",
    "initial_weights": lambda value: f"initial weights as {value} draws them",
    "memory_mib": lambda value: f"{value:,} MiB",
    "partitions": lambda value: counted(value, "partition"),
    "workers": lambda value: counted(value, "worker"),
    "nodes": lambda value: counted(value, "node"),
    "deploy_mode": lambda value: f"{value} mode",
    "device": str,
    "balance": lambda value: "even shares" if value == "even" else f"shares by {value}",
    "shards": lambda value: counted(value, "shard"),
    "staleness": lambda value: f"staleness {value}",
    "origin": lambda value: f"imported from {value}",
    "machine": str,
    "machine_memory_gb": lambda value: f"machine of {value:g} GB",
    "run_id": lambda value: f"run {value}",
}


# Where one platform differs from another in these, a reader has to know it.
ANYWHERE = ("precision", "origin", "machine")


def varying(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What a label has to say: ANYWHERE wherever it differs at all, the rest where it differs within a platform."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["platform"], []).append(row)
    return tuple(
        name
        for name in VARYING
        if any(len({row[name] for row in group}) > 1 for group in ([rows] if name in ANYWHERE else groups.values()))
    )


def label(row: Mapping[str, Any], *, varying: Sequence[str] = ()) -> str:
    """`Spark MLlib, 2 executors x 1 core, float64`: the resources, and what else varies among its neighbours."""
    extras = [VARYING[name](row[name]) for name in VARYING if name in varying and row[name] is not None]
    return ", ".join([text for text in (title(row["platform"]), resources(row), *extras) if text])
