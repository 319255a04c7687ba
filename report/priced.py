"""Prices as the page says them: sentences, and the points of the figures of time beside price and accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from report import price
from report.cost import Question
from report.drawing import Figure, Palette
from report.facts import Prices, RunFacts
from report.figure_pareto import Point, pareto_figure
from report.imported import is_imported
from report.price import BreakEven, Payback
from report.verdict import Comparison
from report.words import counted, label, listed, money, percent, resources, seconds, significant, solver, title, varying


def said(comparison: Comparison, questions: Sequence[Question], run: RunFacts) -> list[str]:
    """What the fastest and the cheapest cost, when renting is cheaper, and when start-up is paid back."""
    prices = run.terms.prices
    rows = price.priced(comparison)
    lines = []
    if rows:
        cheapest = min(rows, key=lambda row: (row["price_per_training"], row["whole_seconds"]))
        fastest = min(rows, key=lambda row: (row["whole_seconds"], row["price_per_training"]))
        named = [("cheapest", cheapest), ("fastest", fastest)]
        if cheapest is fastest:
            named = [("cheapest and the fastest", cheapest)]
        lines += [
            f"The {what} training is that of {comparison.label(row)}: "
            f"{money(row['price_per_training'], prices.currency)} and {seconds(row['whole_seconds'])}, start-up and "
            f"loading included."
            for what, row in named
        ]
    lines += [_rented(each, run) for each in price.break_evens(comparison, questions)]
    lines += [f"Not compared by whole trainings: {why}." for why in price.not_compared(comparison)]
    return lines + _paid_back(price.paybacks(comparison), comparison)


def _rented(each: BreakEven, run: RunFacts) -> str:
    prices = run.terms.prices
    name = f"{title(each.cluster['platform'])} with {resources(each.cluster)}"
    share = run.share_of_machine(each.rented)
    what = "a GPU" if each.against == "one GPU" else share or f"one machine with {resources(each.rented)}"
    priced = "" if each.price is None else f" ({money(each.price, prices.currency)}{_included(each, prices)})"
    if each.core_hours is not None:
        hours = significant(each.core_hours, 3)
        text = f"its hour costs less than {hours} core-hours of the cluster{priced}"
    else:
        text = f"its hour costs less than {significant(each.ratio, 3)} hours of the cluster{priced}"
    idle = "on an idle cluster of one's own that buys nothing"
    if each.saved_seconds > 0:
        what_each = "training" if each.is_whole else "pass" if each.cluster["by_pass"] else "epoch"
        idle = (
            f"on an idle cluster of one's own it saves no money but saves {seconds(each.saved_seconds)} of each "
            f"{what_each}"
        )
    return f"Renting {what} is cheaper than {name} as long as {text}; {idle}{_plain(each)}."


def _included(each: BreakEven, prices: Prices) -> str:
    """What an hour of the cluster costs beside its cores."""
    if is_imported(each.cluster):
        return ""  # it may have brought its own price
    known = {"memory": prices.memory_gb_hour, "GPUs": price.gpus_of(each.cluster)}
    extras = [name for name, there in known.items() if there]
    return f" with their {listed(extras)}" if extras else ""


def _plain(each: BreakEven) -> str:
    if not each.is_imported:
        return ""
    row = each.rented if is_imported(each.rented) else each.cluster
    left_out = "" if each.is_whole else ", so start-up and loading are left out"
    return f" (in plain numbers: {title(row['platform'])} is imported from {row['origin']}{left_out})"


def _paid_back(found: Sequence[Payback], comparison: Comparison) -> list[str]:
    never = [title(each.row["platform"]) for each in found if each.epochs is None]
    no_later = [comparison.label(each.row) for each in found if each.epochs == 0]
    lines = [
        f"{comparison.label(each.row)} has made up for its start-up against the baseline after "
        f"{counted(each.epochs, 'epoch')}."
        for each in found
        if each.epochs
    ]
    if no_later:
        has = "has" if len(no_later) == 1 else "have"
        lines.append(f"{listed(no_later)} {has} no start-up to make up for, being ready no later than the baseline.")
    if never:
        lines.append(
            f"No number of epochs makes up for the start-up of {listed(never, 'or')}: none is faster an epoch."
        )
    return lines


def price_points(comparison: Comparison, prices: Prices) -> list[Point]:
    return [
        Point(
            platform=row["platform"],
            label=comparison.label(row),
            seconds=row["whole_seconds"],
            value=row["price_per_training"],
            said=money(row["price_per_training"], prices.currency),
        )
        for row in price.priced(comparison)
    ]


def accuracy_points(configurations: pl.DataFrame, *, dataset: str, network: str) -> list[Point]:
    """Of all work on a dataset with a network: where each training ended, after how many seconds of training."""
    known = pl.col("final_accuracy").is_finite() & pl.col("training_seconds").is_not_null()
    mine = (pl.col("dataset") == dataset) & (pl.col("network") == network)
    rows = configurations.filter(known.fill_null(False) & mine).to_dicts()
    names = varying(rows)
    return [
        Point(
            platform=row["platform"],
            label=f"{label(row, varying=names)}, {solver(row)}",
            seconds=row["training_seconds"],
            value=100 * row["final_accuracy"],
            said=percent(row["final_accuracy"]),
        )
        for row in rows
    ]


def figures(
    comparison: Comparison,
    configurations: pl.DataFrame,
    found: Sequence[Comparison],
    *,
    run: RunFacts,
    end: str,
    palette: Palette,
) -> dict[str, Figure | None]:
    """Of a comparison time beside price; and of all work on its dataset with its network, once, beside accuracy."""
    subject = {name: comparison.work[name] for name in ("dataset", "network")}
    first = next(each for each in found if each.ran and subject.items() <= dict(each.work).items())
    prices = run.terms.prices
    return {
        "price": pareto_figure(
            price_points(comparison, prices),
            name=f"price{end}",
            palette=palette,
            heading=f"price of a training{f', {prices.currency}' if prices.currency else ''}",
            time="a training with start-up and loading",
            more_is_better=False,
            what="price",
        ),
        "accuracy": pareto_figure(
            accuracy_points(configurations, **subject) if first is comparison else [],
            name=f"accuracy{end}",
            palette=palette,
            heading="test accuracy at the end, percent",
            time="training time",
            more_is_better=True,
            what="test accuracy",
        ),
    }
