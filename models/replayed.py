"""From an event log to the outcome of a trial: one of ours, whose identity lies beside its log, or anybody's fit."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from models.event_log import Application, read_event_log
from models.fits import OWN, LoggedFit, fits, refuse_other_work
from models.ledger import Span, amortized, spans
from models.outcome import Outcome
from models.record import EpochRecord
from models.run import base_record
from models.spec import UNKNOWN, Hyperparameters, Network, Resources, TrialSpec
from store.errors import DataError

LOCAL = "driver"  # the name of an executor that is the driver itself: master local[N]
MEMORY = re.compile(r"(\d{1,15})([kmgt]?)b?", re.IGNORECASE)
MIB = {"k": 1 / 1024, "m": 1, "": 1, "g": 1024, "t": 1024**2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What no log of Spark's tells, as the user gives it."""

    dataset: str = UNKNOWN
    network: Network = field(default_factory=lambda: Network(sizes=()))
    rows: int | None = None
    machine: str = UNKNOWN


def own_trial(outcome: Outcome, logs: Sequence[Path], *, run_id: str) -> Outcome:
    """The trial as it was recorded, its times read again from its log."""
    group = outcome.logged_as
    application = next((read for log in logs if (read := read_event_log(log)).group(group)), None)
    if application is None:
        raise DataError(f"{logs[0].parent}: none of its event logs has a job of the trial {group}")
    timed = [record for record in outcome.records if record.seconds is not None]
    found = next((fit for fit in fits(application) if fit.group == group), None)
    if found is None:
        refuse_other_work(logs[0], application)
    if timed:
        known = _known_spans(outcome, timed, found, logs[0])
        records = [replace(_retimed(record, span), run_id=run_id) for record, span in zip(timed, known, strict=False)]
        return replace(outcome, records=tuple(records))
    base = replace(outcome.records[0], run_id=run_id)
    reason = "; ".join(filter(None, [found.broken, outcome.reason]))
    return replace(_outcome(outcome.spec, base, found, reason=reason), position=outcome.position, group=outcome.group)


def _known_spans(outcome: Outcome, timed: list[EpochRecord], fit: LoggedFit, log: Path) -> list[Span]:
    """How many passes each epoch had is known: of l-bfgs only the optimizer told it, while it ran."""
    if timed[0].clock == "amortized":
        return list(amortized(fit.passes, len(timed)))
    counts = [record.passes or 0 for record in timed]
    wanted = sum(counts) + (fit.solver == "gd")  # which has one more, for the loss of the final weights
    # A diverged trial has no record of what came after; a line search of l-bfgs may end with passes for nothing.
    exact = fit.solver == "gd" and outcome.outcome == "ok"
    if 0 in counts or len(fit.passes) < wanted or (exact and len(fit.passes) > wanted):
        raise DataError(
            f"{log} has {len(fit.passes)} gradient passes of the trial {outcome.spec.slug}, and its outcome tells of "
            f"{wanted}: the log is not whole, or not of this trial"
        )
    return list(spans(fit.passes, counts))


def foreign_trials(log: Path, names: Names, *, run_id: str) -> list[Outcome]:
    """A trial for each fit in a log."""
    application = read_event_log(log)
    found = fits(application)
    if not found:
        refuse_other_work(log, application)
    return [_foreign(application, fit, names, run_id=run_id) for fit in found]


def _foreign(application: Application, fit: LoggedFit, names: Names, *, run_id: str) -> Outcome:
    own = OWN.fullmatch(fit.group or "")
    network = names.network
    if own and not network.sizes:
        network = Network(sizes=tuple(map(int, own["sizes"].split("-"))))
    spec = TrialSpec(
        platform=own["platform"] if own else "mllib",
        dataset=names.dataset,
        data=own["digest"] if own else "",  # what tells configurations of one run apart, as far as a log goes
        network=network,
        resources=_resources(application, fit),
        hyperparameters=Hyperparameters(
            solver=fit.solver,
            learning_rate=None,
            precision="float64",
            gradient=None,
            batch_size=None,
            epochs=max(1, len(fit.passes) - (fit.solver == "gd")),
        ),
        data_fraction=1.0,
        trial=int(own["trial"]) if own else 0,
        attempt=int(own["attempt"]) if own else 1,
        seed=0,
    )
    there = application.executors_at(fit.passes[0].began)
    base = replace(
        base_record(spec, run_id=run_id, machine=names.machine),
        data_fraction=None,
        rows=names.rows,
        workers=len({each.host for each in there}) or None,
        nodes=None,
        seed=None,
        epochs_requested=None,
        startup_seconds=_startup_seconds(application, fit),
        load_seconds=round(sum((job.ended or job.began) - job.began for job in fit.loading), 3),
        bytes_read=sum(job.bytes_read for job in fit.loading),
        granted_executors=spec.resources.executors,
        granted_cores=sum(each.cores for each in there) or None,
        versions=json.dumps({"spark": application.spark_version, "java": application.java_version}),
        started_at=_date(fit.began),
    )
    made = _outcome(spec, base, fit, reason=fit.broken, tainted=_lost(application, fit))
    return replace(made, invocation=f"{application.id or 'an application'} {application.began}")


def _outcome(
    spec: TrialSpec,
    base: EpochRecord,
    fit: LoggedFit,
    *,
    reason: str | None,
    tainted: str | None = None,
) -> Outcome:
    """What did not come to its end is failed, with the epochs that it had."""
    became = "failed" if reason else "tainted" if tainted else "ok"
    reason = "; ".join(filter(None, [reason, tainted])) or None
    found = list(fit.spans()) if fit.finished else []
    epochs = [
        replace(
            _retimed(base, span),
            epoch=number,
            updates=1 if fit.solver == "gd" else None,
            samples=None if base.rows is None else span.passes * base.rows,
            warmup=number == 1,
        )
        for number, span in enumerate(found, 1)
    ]
    told = "which passes of l-bfgs were an iteration is not in Spark's event log: an epoch is a pass, and has the mean"
    return Outcome(
        spec=spec,
        outcome=became,
        reason=reason,
        noisy=False,
        invocation="",
        position=0,
        note=told if fit.solver == "l-bfgs" else None,
        records=tuple(
            replace(record, outcome=became, reason=reason, tainted=tainted is not None) for record in epochs or [base]
        ),
    )


def _retimed(record: EpochRecord, span: Span) -> EpochRecord:
    times: dict[str, Any] = span.ledger
    return replace(
        record,
        seconds=span.seconds,
        clock=span.clock,
        cpu_seconds=span.cpu_seconds,
        passes=span.passes,
        **times,
    )


def _resources(application: Application, fit: LoggedFit) -> Resources:
    there = application.executors_at(fit.passes[0].began)
    cores = {each.cores for each in there}
    if [each.name for each in there] == [LOCAL]:
        return Resources(threads=there[0].cores, partitions=fit.passes[0].partitions)
    return Resources(
        executors=len(there) or None,
        cores=cores.pop() if len(cores) == 1 else None,
        memory_mib=memory_mib(application.properties.get("spark.executor.memory", "1g")),
        partitions=fit.passes[0].partitions,
        deploy_mode=application.properties.get("spark.submit.deployMode"),
    )


def memory_mib(text: str) -> int | None:
    """As Spark writes memory: `2g`, `2048m`, and without a unit MiB."""
    match = MEMORY.fullmatch(text.strip())
    return int(int(match[1]) * MIB[match[2].lower()]) if match else None


def _startup_seconds(application: Application, fit: LoggedFit) -> float | None:
    """From the application's beginning until the last of the fit's executors had come."""
    there = application.executors_at(fit.began)
    if application.began is None or not there:
        return None
    return round(max(each.added for each in there) - application.began, 3)


def _lost(application: Application, fit: LoggedFit) -> str | None:
    lost = [each for each in application.executors_at(fit.began) if each.gone_by(fit.ended)]
    return f"executor {lost[0].name} was lost while it trained" if lost else None


def _date(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None  # a made or damaged log; its spans may still be right
