"""What Report publishes: the verdict, one self-contained page, its figures as files, and the tables of the sweeps."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from models.noise import told
from report.facts import BaselineSpec, RunFacts, Terms

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from markupsafe import Markup

    from models.probes import MachineProbes
    from report.breakdown import Breakdown
    from report.drawing import Figure, Palette
    from report.predictions import Series
    from report.timeline import Timeline
    from report.verdict import Comparison

# The classes of equal work that get figures; all others are in the verdict and the tables.
MOST_COMPARISONS = 4
FIGURES = ("seconds", "ledger", "timeline", "cores", "scaling", "learning", "boxes", "accuracy", "price")


def report_files(
    records: pa.Table, *, run: RunFacts, baseline: BaselineSpec, timelines: Sequence[Timeline] = ()
) -> dict[str, bytes]:
    """Every file of the report but what Merge writes, by its path below the report's directory."""
    from report import cost, fits, planned, priced, sweeps, timeline, unequal
    from report.axes import said, swept
    from report.drawing import colours
    from report.figure_boxes import boxes_figure
    from report.figure_cores import cores_figure
    from report.figure_learning import learning_figure
    from report.figure_ledger import ledger_figure
    from report.figure_order import order_figure
    from report.figure_predicted import predicted_figure
    from report.figure_scaling import scaling_figure
    from report.figure_seconds import seconds_figure
    from report.figure_timeline import timeline_figure
    from report.predictions import all_series
    from report.trials import ranked_epochs

    frame, attempts, configurations, found = _analysed(records, baseline, run.terms)
    palette = colours(configurations["platform"].unique().to_list())
    epochs = ranked_epochs(frame, attempts)
    drawn: list[dict[str, Figure | None]] = []
    for number, comparison in enumerate(found[:MOST_COMPARISONS], 1):
        if not comparison.ran:
            drawn.append(dict.fromkeys(FIGURES))
            continue
        end = "" if number == 1 else f"_{number}"
        spent = _spent(comparison, run, baseline)
        tasks = timeline.in_order(timelines, comparison)
        drawn.append(
            {
                "seconds": seconds_figure(comparison, name=f"seconds{end}", palette=palette),
                "ledger": ledger_figure(comparison, spent, name=f"ledger{end}", palette=palette),
                "timeline": timeline_figure(tasks, names=comparison.varying, name=f"timeline{end}", palette=palette),
                "cores": cores_figure(
                    comparison,
                    name=f"cores{end}",
                    palette=palette,
                    asked=cost.questions(comparison, spec=baseline),
                ),
                "scaling": scaling_figure(comparison, name=f"scaling{end}", palette=palette),
                "learning": learning_figure(
                    comparison,
                    beside=[other for other in found if other.is_beside(comparison)],
                    epochs=epochs,
                    name=f"learning{end}",
                    palette=palette,
                ),
                "boxes": boxes_figure(comparison, name=f"boxes{end}", palette=palette),
                **priced.figures(comparison, configurations, found, run=run, end=end, palette=palette),
            }
        )
    order = order_figure(attempts, configurations, name="order", palette=palette)
    series = all_series(attempts)
    predicted = predicted_figure(series, name="predicted", palette=palette)
    flips = _flips(found, series)
    environment = _environment(attempts, run)
    axes, lines = swept(configurations), fits.fits(configurations)
    files = {
        "verdict.json": _json(_summary(found, configurations, attempts, run, baseline, flips)),
        "environment.json": _json(environment),
        "fits.csv": fits.csv(lines),
        "tests.csv": planned.csv(found, axes, to_target=unequal.by_target(configurations, baseline=baseline)),
        **sweeps.files(configurations),
        **({"timeline.csv": timeline.csv(timelines)} if timelines else {}),
    }
    for figure in [*(each for group in drawn for each in group.values()), order, predicted]:
        files |= figure.files if figure else {}
    files["report.html"] = _html(
        found, drawn, order, palette, attempts, configurations, run, baseline, environment, timelines, sorted(files),
        {"axes": said(axes), "lines": fits.sentences(lines), "predicted": predicted, "flips": flips},
    ).encode()  # fmt: skip
    return dict(sorted(files.items()))


def summary(records: pa.Table, *, run: RunFacts, baseline: BaselineSpec) -> dict[str, Any]:
    """What verdict.json holds, without the cost of a figure."""
    from report.predictions import all_series

    _, attempts, configurations, found = _analysed(records, baseline, run.terms)
    return _summary(found, configurations, attempts, run, baseline, _flips(found, all_series(attempts)))


def first_lines(records: pa.Table, *, run: RunFacts, baseline: BaselineSpec) -> list[str]:
    """For the terminal at the end of a run: the page's first sentences and its first table. In verdict.json too."""
    _, attempts, _, found = _analysed(records, baseline, run.terms)
    return _first_lines(found, attempts, run, baseline)


def _summary(
    found: list[Comparison],
    configurations: pl.DataFrame,
    attempts: pl.DataFrame,
    run: RunFacts,
    baseline: BaselineSpec,
    flips: list[list[str]],
) -> dict[str, Any]:
    from report import apart, cost, drift, factors, marginal, price, unequal
    from report.verdict import as_json

    return {
        "comparisons": [
            {
                **as_json(comparison),
                "flips": flips[number],
                "apart": apart.as_json(apart.apart(comparison)),
                "cost": [cost.to_json(each) for each in cost.questions(comparison, spec=baseline)],
                "marginal": [marginal.to_json(each) for each in marginal.lines(comparison)],
                "price": price.to_json(comparison, cost.questions(comparison, spec=baseline)),
                "sentences": [*_said(comparison, run), *_went(comparison, run, baseline)],
                "factors": [
                    factors.as_json(each) for each in factors.factors(comparison, precision=baseline.precision)
                ],
            }
            for number, comparison in enumerate(found)
        ],
        "targets": [
            unequal.to_json(each, baseline=baseline) for each in unequal.by_target(configurations, baseline=baseline)
        ],
        "run_id": run.run_id,
        "profile": run.profile,
        "drift": drift.as_json(drift.drift(attempts)),
        "first_lines": _first_lines(found, attempts, run, baseline),
    }


def _analysed(
    records: pa.Table, baseline: BaselineSpec, terms: Terms
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, list[Comparison]]:
    import polars as pl

    from report.comparison import compared
    from report.verdict import comparisons

    frame = pl.DataFrame(records)
    attempts, configurations = compared(frame, baseline=baseline, terms=terms)
    return frame, attempts, configurations, comparisons(configurations, baseline=baseline)


def _said(comparison: Comparison, run: RunFacts) -> list[str]:
    from report import apart, sentences

    return sentences.verdict(comparison, run=run, machines=_machines(comparison), told_apart=apart.apart(comparison))


def _answer(comparison: Comparison, run: RunFacts) -> str:
    """The one sentence of it that says what was trained."""
    from report import sentences

    return sentences.fastest_of(comparison, run=run, machines=_machines(comparison))


def _machines(comparison: Comparison) -> int:
    return len({row["machine"] for row in comparison.ran})


def _spent(comparison: Comparison, run: RunFacts, baseline: BaselineSpec) -> list[Breakdown]:
    from report.breakdown import breakdowns

    return breakdowns(comparison, precision=baseline.precision, probes=run.probes)


def _went(comparison: Comparison, run: RunFacts, baseline: BaselineSpec) -> list[str]:
    """Of every platform with a ledger where its seconds went, at its best, and what of that is precision."""
    from report import apart, factors, spent

    bests = [standing.best["configuration"] for standing in comparison.standings]
    best = [each for each in _spent(comparison, run, baseline) if each.row["configuration"] in bests]
    each = apart.apart(comparison)
    told = each.library["platform"] if each is not None and each.precision is not None else None
    splits = factors.splits(comparison, platform=baseline.platform, precision=baseline.precision)
    return [
        *(spent.whole(comparison, each) for each in best if each.has_ledger),
        *(spent.split(comparison, each) for each in splits if each.row["platform"] != told),
    ]


def _flips(found: list[Comparison], series: Sequence[Series]) -> list[list[str]]:
    """Of each comparison when its answer would be another one."""
    from report.flips import flips

    return [flips(comparison, series) for comparison in found]


def _first_lines(found: list[Comparison], attempts: pl.DataFrame, run: RunFacts, baseline: BaselineSpec) -> list[str]:
    from report import sentences, spent
    from report.words import capped

    if not found:
        return [f"Run {run.run_id} has no trial yet."]
    first = found[0]
    trusted = ". ".join(capped(part) for part in sentences.trust(first, run=run, attempts=attempts))
    lines = [*_said(first, run), *_went(first, run, baseline), "", *sentences.terminal_table(first), "", f"{trusted}."]
    lines += [f"{capped(text)}." for text in spent.doubt(run)]
    if len(found) > 1:
        lines.append(f"1 of {len(found)} comparisons of equal work shown; the page has the others.")
    if unfinished := _unfinished(attempts, run):
        lines.append(unfinished)
    return lines


def _kept(text: str) -> Markup:
    """Text for the page whose names and numbers with their units are not broken over two lines."""
    from markupsafe import Markup, escape

    pieces = re.split(r"(p [=<] [\d.]+\d|(?<![\w.,-])[\d.,]+ (?:s|ms|min|%)(?!\w)|[^\s()]*\w-[^\s()]{1,30})", text)
    whole = Markup('<span class="kept">{}</span>')
    return Markup("").join(whole.format(piece) if n % 2 else escape(piece) for n, piece in enumerate(pieces))


def _unfinished(attempts: pl.DataFrame, run: RunFacts) -> str:
    done = int((attempts["counts"] & attempts["origin"].is_null()).sum())
    if run.trials_planned is None or done >= run.trials_planned:
        return ""
    return f"The run is not finished: {done:,} of {run.trials_planned:,} trials so far."


def _environment(attempts: pl.DataFrame, run: RunFacts) -> dict[str, Any]:
    order = attempts.select(
        "platform", "dataset", "network", "solver", "precision", "batch_size", "data_fraction", "executors", "cores",
        "threads", "memory_mib", "trial", "attempt", "outcome", "reason", "noisy", "noise", "other_load",
        "others_vcores", "nodes_vcores", "ranked", "seconds", "started_at",
    )  # fmt: skip
    return {
        "run_id": run.run_id,
        "profile": run.profile,
        "machine": run.machine,
        "cpu": run.cpu,
        "cores": run.cores,
        "memory_gb": run.memory_gb,
        "versions": dict(run.versions),
        "commit": run.commit,
        "settings": dict(run.settings),
        "notes": list(run.notes),
        "probes": [_probes(each) for each in run.probes],
        "trial_order": [
            {**row, "started_at": row["started_at"] and row["started_at"].isoformat()} for row in order.to_dicts()
        ],
    }


def _probes(machine: MachineProbes) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(machine), "measured_at": machine.measured_at.isoformat()}


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n").encode()


def _html(
    found: list[Comparison],
    drawn: list[dict[str, Figure | None]],
    order: Figure | None,
    palette: Palette,
    attempts: pl.DataFrame,
    configurations: pl.DataFrame,
    run: RunFacts,
    baseline: BaselineSpec,
    environment: dict[str, Any],
    timelines: Sequence[Timeline],
    files: list[str],
    more: dict[str, Any],
) -> str:
    from importlib.resources import files as resources

    import jinja2

    from report import captions, paying, sentences, words
    from report.drawing import PALETTE

    folder = resources("report")
    engine = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    engine.filters |= {"capped": words.capped, "kept": _kept}
    template = engine.from_string(folder.joinpath("page.html.j2").read_text(encoding="utf-8"))
    tables = ["comparison.csv", "comparison.md", "epochs.csv", "epochs.parquet", *files]
    return template.render(
        css=folder.joinpath("page.css").read_text(encoding="utf-8"),
        run=run,
        baseline=baseline,
        day=_days(attempts),
        first=_screen(found[0], attempts, run, baseline, timelines) if found else None,
        shown=[
            {**_screen(comparison, attempts, run, baseline, timelines), "figures": figures, "flips": flipping}
            for comparison, figures, flipping in zip(found, drawn, more["flips"], strict=False)
        ],
        targets=paying.targets_shown(configurations, baseline),
        total=len(found),
        rest=[_answer(comparison, run) for comparison in found[MOST_COMPARISONS:][:40]],
        order=order,
        blocks=captions.of_blocks(attempts["run_id"].unique().to_list(), run.settings, run_id=run.run_id),
        place={name: PALETTE.index(colour) for name, (colour, _) in palette.items()},
        unfinished=_unfinished(attempts, run),
        lost=_lost(attempts),
        environment=environment,
        downloads=[name for name in tables if "/" not in name],
        pictures=[name for name in tables if name.startswith("figures/")],
        sentences=sentences,
        words=words,
        **more,
    )


def _screen(
    comparison: Comparison,
    attempts: pl.DataFrame,
    run: RunFacts,
    baseline: BaselineSpec,
    timelines: Sequence[Timeline],
) -> dict[str, Any]:
    """What the first screen and the sections say of one class of equal work."""
    from report import factors, paying, sentences, spent, timeline, words

    slowest = max((each.best["rank_by"] for each in comparison.standings), default=1.0)
    of = run.rows_of.get(comparison.work["dataset"])
    return {
        "comparison": comparison,
        "subject": words.work(comparison.work),
        "heading": words.heading(comparison.work, of=of),
        "share": words.rows(comparison.work, of=of),
        "period": words.period(comparison.work, by_pass=comparison.by_pass),
        "said": _said(comparison, run),
        "answer": _answer(comparison, run),
        "trust": [*sentences.trust(comparison, run=run, attempts=attempts), *spent.doubt(run)],
        "standings": [
            {
                "standing": each,
                "cells": sentences.table_row(comparison, each),
                "share": 100 * each.best["rank_by"] / slowest,
            }
            for each in comparison.standings
        ],
        "repeated": any(row["trials"] > 1 for row in comparison.ran),
        "tests": sentences.tests_said(comparison),
        "not_run": sentences.grouped_by_status(comparison),
        "went": _went(comparison, run, baseline),
        "factors": [spent.factor(each) for each in factors.factors(comparison, precision=baseline.precision)],
        "load": timeline.load_rows(comparison, timelines),
        "of_load": timeline.of_load(comparison),
        **paying.shown(comparison, baseline, run.terms.prices),
    }


def _days(attempts: pl.DataFrame) -> str:
    days = [str(moment)[:10] for moment in (attempts["started_at"].min(), attempts["last_started_at"].max()) if moment]
    return " to ".join(dict.fromkeys(days))


def _lost(attempts: pl.DataFrame) -> list[dict[str, Any]]:
    """Attempts that were kept and not ranked, though their configuration ran."""
    import polars as pl

    ran = pl.col("ranked").any().over("configuration")
    rows = attempts.filter(ran & ~pl.col("ranked") & (pl.col("outcome") != "unavailable")).to_dicts()
    return [{**row, "why": _why(row)} for row in rows]


def _why(row: dict[str, Any]) -> str:
    if row["outcome"] != "ok":
        return str(row["outcome"])
    if not row["noisy"]:
        return "a later attempt counts"
    said = told(**{name: row[name] for name in ("noise", "other_load", "others_vcores", "nodes_vcores")})
    return f"noisy: {said}" if said else "noisy"
