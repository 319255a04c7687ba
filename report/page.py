"""What Report publishes: the verdict, one self-contained page, its figures as files, and the tables of the sweeps."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from models.noise import told
from report.facts import BaselineSpec, RunFacts

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from markupsafe import Markup

    from models.probes import MachineProbes
    from report.analysis import Analysis, Findings
    from report.drawing import Figure, Palette
    from report.timeline import Timeline

# The classes of equal work that get figures; all others are in the verdict and the tables.
MOST_COMPARISONS = 4
LARGEST = 2_000_000  # bytes of the page: it opens at once, and goes as an attachment
FIGURES = ("seconds", "ledger", "timeline", "cores", "scaling", "learning", "boxes", "accuracy", "price")


def report_files(
    records: pa.Table, *, run: RunFacts, baseline: BaselineSpec, timelines: Sequence[Timeline] = ()
) -> dict[str, bytes]:
    """Every file of the report but what Merge writes, by its path below the report's directory."""
    from report import fits, planned, sweeps, timeline
    from report.analysis import Analysis
    from report.axes import said, swept
    from report.drawing import colours
    from report.figure_order import order_figure
    from report.figure_predicted import predicted_figure
    from report.summary import summary as summed_up

    analysis = Analysis.of(records, run=run, baseline=baseline)
    attempts, configurations, found = analysis.attempts, analysis.configurations, analysis.found
    palette = colours(configurations["platform"].unique().to_list())
    drawn = _drawn(analysis, timelines, palette)
    order = order_figure(attempts, configurations, name="order", palette=palette)
    predicted = predicted_figure(analysis.series, name="predicted", palette=palette)
    environment = _environment(attempts, run)
    axes, lines = swept(configurations), fits.fits(configurations)
    files = {
        "verdict.json": _json(summed_up(analysis)),
        "environment.json": _json(environment),
        "fits.csv": fits.csv(lines),
        "tests.csv": planned.csv(found, axes, to_target=analysis.to_target),
        **sweeps.files(configurations),
        **({"timeline.csv": timeline.csv(timelines)} if timelines else {}),
    }
    for figure in [*(each for group in drawn for each in group.values()), order, predicted]:
        files |= figure.files if figure else {}
    more = {"axes": said(axes), "lines": fits.sentences(lines), "predicted": predicted}
    # Of many large comparisons fewer have figures in the page: all are files beside it.
    for shown in range(len(drawn), -1, -1):
        page = _html(analysis, drawn[:shown], order, palette, environment, timelines, sorted(files), more).encode()
        if len(page) < LARGEST or shown <= 1:
            break
    return dict(sorted({**files, "report.html": page}.items()))


def summary(records: pa.Table, *, run: RunFacts, baseline: BaselineSpec) -> dict[str, Any]:
    """What verdict.json holds, without the cost of a figure."""
    from report.analysis import Analysis
    from report.summary import summary

    return summary(Analysis.of(records, run=run, baseline=baseline))


def _drawn(analysis: Analysis, timelines: Sequence[Timeline], palette: Palette) -> list[dict[str, Figure | None]]:
    """The figures of the first classes of equal work."""
    from report import priced, timeline
    from report.figure_boxes import boxes_figure
    from report.figure_cores import cores_figure
    from report.figure_learning import learning_figure
    from report.figure_ledger import ledger_figure
    from report.figure_scaling import scaling_figure
    from report.figure_seconds import seconds_figure
    from report.figure_timeline import timeline_figure
    from report.trials import ranked_epochs

    found, run = analysis.found, analysis.run
    epochs = ranked_epochs(analysis.records, analysis.attempts)
    drawn: list[dict[str, Figure | None]] = []
    for number, each in enumerate(analysis.findings[:MOST_COMPARISONS], 1):
        comparison = each.comparison
        if not comparison.ran:
            drawn.append(dict.fromkeys(FIGURES))
            continue
        end = "" if number == 1 else f"_{number}"
        tasks = timeline.in_order(timelines, comparison)
        drawn.append(
            {
                "seconds": seconds_figure(comparison, name=f"seconds{end}", palette=palette),
                "ledger": ledger_figure(comparison, each.spent, name=f"ledger{end}", palette=palette),
                "timeline": timeline_figure(tasks, names=comparison.varying, name=f"timeline{end}", palette=palette),
                "cores": cores_figure(comparison, name=f"cores{end}", palette=palette, asked=each.asked),
                "scaling": scaling_figure(comparison, name=f"scaling{end}", palette=palette),
                "learning": learning_figure(
                    comparison,
                    beside=[other for other in found if other.is_beside(comparison)],
                    epochs=epochs,
                    name=f"learning{end}",
                    palette=palette,
                ),
                "boxes": boxes_figure(comparison, name=f"boxes{end}", palette=palette),
                **priced.figures(comparison, analysis.configurations, found, run=run, end=end, palette=palette),
            }
        )
    return drawn


def _kept(text: str) -> Markup:
    """Text for the page whose names and numbers with their units are not broken over two lines."""
    from markupsafe import Markup, escape

    pieces = re.split(r"(p [=<] [\d.]+\d|(?<![\w.,-])[\d.,]+ (?:s|ms|min|%)(?!\w)|[^\s()]*\w-[^\s()]{1,30})", text)
    whole = Markup('<span class="kept">{}</span>')
    return Markup("").join(whole.format(piece) if n % 2 else escape(piece) for n, piece in enumerate(pieces))


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
    analysis: Analysis,
    drawn: list[dict[str, Figure | None]],
    order: Figure | None,
    palette: Palette,
    environment: dict[str, Any],
    timelines: Sequence[Timeline],
    files: list[str],
    more: dict[str, Any],
) -> str:
    from importlib.resources import files as resources

    import jinja2

    from report import captions, paying, sentences, words
    from report.drawing import PALETTE
    from report.summary import unfinished

    run, attempts, found = analysis.run, analysis.attempts, analysis.findings
    folder = resources("report")
    engine = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    engine.filters |= {"capped": words.capped, "kept": _kept}
    template = engine.from_string(folder.joinpath("page.html.j2").read_text(encoding="utf-8"))
    shown = [
        {**_screen(each, attempts, timelines), "figures": figures} for each, figures in zip(found, drawn, strict=False)
    ]
    tables = ["comparison.csv", "comparison.md", "epochs.csv", "epochs.parquet", *files]
    return template.render(
        css=folder.joinpath("page.css").read_text(encoding="utf-8"),
        run=run,
        baseline=analysis.baseline,
        day=_days(attempts),
        first=shown[0] if shown else None,
        shown=shown,
        targets=paying.targets_shown(analysis.configurations, analysis.baseline, run),
        total=len(found),
        rest=[each.answer for each in found[len(drawn) :][:40]],
        order=order,
        blocks=captions.of_blocks(attempts["run_id"].unique().to_list(), run.settings, run_id=run.run_id),
        place={name: PALETTE.index(colour) for name, (colour, _) in palette.items()},
        unfinished=unfinished(attempts, run),
        lost=_lost(attempts),
        environment=environment,
        downloads=[name for name in tables if "/" not in name],
        pictures=[name for name in tables if name.startswith("figures/")],
        sentences=sentences,
        words=words,
        **more,
    )


def _screen(each: Findings, attempts: pl.DataFrame, timelines: Sequence[Timeline]) -> dict[str, Any]:
    """What the first screen and the sections say of one class of equal work."""
    from report import factors, paying, sentences, spent, timeline, words

    comparison, run, baseline = each.comparison, each.run, each.baseline
    slowest = max((standing.best["rank_by"] for standing in comparison.standings), default=1.0)
    of = run.rows_of.get(comparison.work["dataset"])
    return {
        "comparison": comparison,
        "subject": words.work(comparison.work),
        "heading": words.heading(comparison.work, of=of),
        "period": words.period(comparison.work, by_pass=comparison.by_pass),
        "said": each.said,
        "answer": each.answer,
        "trust": [*sentences.trust(comparison, run=run, attempts=attempts), *spent.doubt(run)],
        "standings": [
            {
                "standing": standing,
                "cells": sentences.table_row(comparison, standing),
                "share": 100 * standing.best["rank_by"] / slowest,
            }
            for standing in comparison.standings
        ],
        "repeated": any(row["trials"] > 1 for row in comparison.ran),
        "tests": sentences.tests_said(comparison),
        "not_run": sentences.grouped_by_status(comparison),
        "went": each.went,
        "turning": each.turning,
        "factors": [spent.factor(factor) for factor in factors.factors(comparison, precision=baseline.precision)],
        "load": timeline.load_rows(comparison, timelines),
        "of_load": timeline.of_load(comparison),
        **paying.shown(comparison, baseline, run),
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
