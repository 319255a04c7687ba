"""Publishes what report/ makes of a run's outcomes, each file by itself, and notes which trials it covers."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from models.outcome import LOG, Outcome
from models.target import Target
from pipeline.brought import brought
from pipeline.opening import open_store
from pipeline.peaks import read_probes
from pipeline.run_file import MERGED, PUBLISHED, RUN, RunFile, mark_finished, read_run, write_run
from pipeline.settings import INCIDENTAL, JUDGING, TARGETS
from pipeline.timelines import timelines
from pipeline.trials import published
from report.facts import BaselineSpec, Prices, RunFacts, Terms
from report.words import listed
from store.errors import SettingError, StoreError, UnfinishedError
from store.protocol import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.experiment import Experiment
    from pipeline.settings import Settings

REPORT = "report"
VERDICT = "verdict.json"  # the last of a report's files to be written
MOST_NAMED = 5  # runs, in one sentence
MERGED_FILES = ("epochs.parquet", "epochs.csv", "comparison.csv", "comparison.md")
MARKERS = (MERGED.rpartition("/")[2], PUBLISHED.rpartition("/")[2])


def merge(run: Experiment) -> None:
    run.trials.look()  # what another process published and merged is not to be lost
    begun = run.begin()
    publish_merged(run.store, begun, _gathered(run.store, begun, run.trials.outcomes()))
    run.mark(MERGED)


def report(run: Experiment) -> None:
    begun = run.begin()
    publish_report(run.store, begun, _records(run.store, begun), run.trials.outcomes())
    run.mark(PUBLISHED)


def again(settings: Settings, run_id: str) -> list[str]:
    """All of it once more from the records, judged by what was given for this call. What to tell of it.

    Which trials it covers does not change, unless there is nothing to measure: then it covers all there are.
    """
    store = open_store(settings)
    begun = known_run(store, run_id)
    run = begun.judged(settings.judging)
    outcomes: list[Outcome] = []
    records = _gathered(store, run, _noted(published(store, f"runs/{run_id}/trials"), outcomes))
    publish_merged(store, run, records)
    if run != begun:
        write_run(store, run)
    publish_report(store, run, records, outcomes)
    if not run.is_planned:
        slugs = [outcome.spec.slug for outcome in outcomes]
        for marker in (MERGED, PUBLISHED):
            mark_finished(store, run_id, marker, slugs)
    return [*summary(store, run), *judged_otherwise(settings, run)]


def _noted(found: Iterable[tuple[str, Outcome]], outcomes: list[Outcome]) -> Iterator[Outcome]:
    """All of them, one after the other; in `outcomes` without most of their records, which take much memory."""
    for _, outcome in found:
        outcomes.append(replace(outcome, records=outcome.records[:1]))
        yield outcome


def check_judging(settings: Settings) -> None:
    """A setting that a report cannot take must not look as if it had been."""
    refused = sorted(settings.given - JUDGING - INCIDENTAL)
    if refused:
        raise SettingError(
            f"--set {refused[0]}: a report is made of what was measured, and takes price.*, target.accuracies and "
            f"baseline.*; start a new run to measure something else"
        )


def judged_otherwise(settings: Settings, run: RunFile) -> list[str]:
    """Where baseline, targets or prices of now are others: the same run has the same report, whoever asks."""
    from report.words import listed

    now = settings.fingerprint()
    others = [name for name in now if name in JUDGING and now[name] != run.in_force.get(name, now[name])]
    if not others:
        return []
    return [
        f"Run {run.run_id} is judged by its own {listed(others)}, and the settings of now have another; "
        f"yarnstick report --run-id {run.run_id} --set takes what it is to be judged by."
    ]


def raise_if_failed(run: Experiment) -> None:
    """A failed trial is a failed run, though all that succeeded is reported."""
    failed = run.failed()
    if failed:
        log = run.store.local(f"{run.trials.path_of(failed[0])}/{LOG}")
        raise UnfinishedError(
            f"{len(failed)} of {len(run.planned)} trials failed, the first with: {failed[0].reason} (its log: {log}); "
            f"the report shows the rest, and the same command with --run-id {run.run_id} tries again what failed"
        )


def _nothing_to(do: str, run: RunFile) -> StoreError:
    return StoreError(
        f"run {run.run_id} has no trial that ended: there is nothing to {do} yet; yarnstick run with "
        f"--run-id {run.run_id} goes on with it"
    )


def _gathered(store: Store, run: RunFile, outcomes: Iterable[Outcome]) -> pa.Table:
    """All that was measured, then all that was brought."""
    from report.merge import all_records

    records = all_records(outcomes, brought(store, f"runs/{run.run_id}"))
    if not records.num_rows:
        raise _nothing_to("report", run)
    return records


def publish_merged(store: Store, run: RunFile, records: pa.Table) -> None:
    from report.merge import files_of

    files = files_of(records, baseline=baseline_of(run), terms=terms_of(run))
    for name, data in files.items():
        store.write(f"runs/{run.run_id}/{REPORT}/{name}", data)


def publish_report(store: Store, run: RunFile, records: pa.Table, outcomes: Iterable[Outcome]) -> None:
    """From the records that were merged; of the outcomes only the event logs beside them are looked at."""
    from pipeline import history_index
    from report.page import report_files

    facts = _facts(store, run, records)
    found, there = timelines(store, f"runs/{run.run_id}/trials", outcomes)
    if len(found) < there:
        facts = replace(facts, notes=(*facts.notes, f"tasks of {len(found)} of {there} configurations in timeline.csv"))
    files = report_files(records, run=facts, baseline=baseline_of(run), timelines=found)
    for name, data in files.items():
        store.write(f"runs/{run.run_id}/{REPORT}/{name}", data)
    _sweep_out(store, run, {*files, *MERGED_FILES, *MARKERS})
    history_index.note(store, run, records)


def summary(store: Store, run: RunFile) -> list[str]:
    """What the terminal says at the end: the page's first lines, as its report has them, and where the page is."""
    verdict = json.loads(store.read(f"runs/{run.run_id}/{REPORT}/{VERDICT}"))
    path = f"runs/{run.run_id}/{REPORT}/report.html"
    page = str(store.local(path))
    if not store.url.startswith("file:"):
        page = f"{store.url}/{path} (a copy to open here: {page})"
    return ["", *verdict["first_lines"], "", f"Report: {page}"]


def known_run(store: Store, run_id: str) -> RunFile:
    found = read_run(store, run_id)
    if found is None:
        raise StoreError(f"run {run_id} is not in {store.url}; {nearest_runs(store, run_id)}")
    if found.run_id != run_id:
        raise StoreError(
            f"{store.url}/runs/{run_id} is a copy of run {found.run_id}; give the directory that name, or write "
            f"{run_id} as run_id into its {RUN}"
        )
    return found


def nearest_runs(store: Store, run_id: str) -> str:
    """What there is instead, as the end of a sentence."""
    there = [entry.name for entry in store.list("runs")]
    if len(there) > MOST_NAMED:
        nearest = difflib.get_close_matches(run_id, there, n=1, cutoff=0.0)[0]
        return f"the nearest of {len(there)} is {nearest}; yarnstick runs list shows all"
    return f"known are {', '.join(there)}" if there else "there is none yet: start with yarnstick run"


def records_now(store: Store, run: RunFile) -> pa.Table:
    """All that ended so far and all that was brought, reported or not; where only the report is left, what it has."""
    return records_below(store, f"runs/{run.run_id}", run)


def records_below(store: Store, folder: str, run: RunFile) -> pa.Table:
    """The same of a run whose directory may lie anywhere in a store."""
    from report.merge import all_records

    records = all_records((outcome for _, outcome in published(store, f"{folder}/trials")), brought(store, folder))
    if records.num_rows:
        return records
    if not store.exists(f"{folder}/{REPORT}/epochs.parquet"):
        raise _nothing_to("compare", run)
    return merged_records(store, folder)


def _records(store: Store, run: RunFile) -> pa.Table:
    return merged_records(store, f"runs/{run.run_id}")


def merged_records(store: Store, folder: str) -> pa.Table:
    """What the report of a run was made of, whatever version wrote it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from report.merge import aligned

    path = f"{folder}/{REPORT}/epochs.parquet"
    try:
        # Without Arrow's threads: a command that ends right after may be aborted by those that just began.
        file = pq.ParquetFile(pa.BufferReader(store.read(path)), pre_buffer=False)
        return aligned(file.read(use_threads=False))
    except pa.ArrowException as error:
        raise StoreError(
            f"{store.url}/{path} cannot be read ({error}); yarnstick report --run-id {folder.rpartition('/')[2]} "
            f"makes it anew"
        ) from None


def baseline_of(run: RunFile) -> BaselineSpec:
    """The one that the run was begun with, or is judged by since."""
    names = {key: f"yarnstick.baseline.{key}" for key in ("platform", "precision", "threads")}
    if missing := [name for name in names.values() if name not in run.in_force]:
        raise StoreError(
            f"{RUN} of run {run.run_id} has no {listed(missing)}; yarnstick report --run-id {run.run_id} with --set "
            f"{missing[0]}=... gives it one"
        )
    return BaselineSpec(**{key: run.in_force[name] for key, name in names.items()})


def terms_of(run: RunFile) -> Terms:
    """The targets and prices that the run was begun with, or is judged by since; one of before they were has none."""
    accuracies = run.in_force.get(TARGETS, [])
    given = {name: run.in_force.get(f"yarnstick.price.{name}") for name in Prices.__dataclass_fields__}
    prices = Prices(**{name: value for name, value in given.items() if value is not None})
    return Terms(targets=tuple(map(Target.parse, accuracies)), prices=prices)


def _facts(store: Store, run: RunFile, records: pa.Table) -> RunFacts:
    return RunFacts(
        run_id=run.run_id,
        profile=run.profile,
        machine=run.machine,
        cpu=run.cpu,
        cores=run.cores,
        memory_gb=run.memory_gb,
        versions=_versions(records),
        commit=run.commit,
        settings=run.in_force,
        rows_of=run.rows,
        trials_planned=run.trials,
        terms=terms_of(run),
        probes=read_probes(store, f"runs/{run.run_id}"),
        notes=run.notes,
    )


def _versions(records: pa.Table) -> dict[str, str]:
    """Of each package; where machines had others, each with its machine. What was imported comes last, and counts."""
    pairs = records.select(["machine", "versions"]).group_by(["machine", "versions"]).aggregate([]).to_pylist()
    found: dict[str, dict[str, str]] = {}
    for pair in sorted(pairs, key=lambda pair: (pair["machine"], pair["versions"] or "")):
        for name, version in json.loads(pair["versions"] or "{}").items():
            found.setdefault(name, {})[pair["machine"]] = version
    return {name: _by_machine(of) for name, of in sorted(found.items())}


def _by_machine(versions: dict[str, str]) -> str:
    if len(set(versions.values())) == 1:
        return next(iter(versions.values()))
    return "; ".join(f"{version} on {machine}" for machine, version in versions.items())


def _sweep_out(store: Store, run: RunFile, wanted: set[str]) -> None:
    """Files of an earlier report that this one no longer has."""
    for folder in ("", "figures/"):
        path = f"runs/{run.run_id}/{REPORT}/{folder}"
        for entry in store.list(path.rstrip("/")):
            if not entry.is_directory and folder + entry.name not in wanted:
                store.remove(path + entry.name)
