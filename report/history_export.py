"""The history for other programs: as JSON, and as the files of an MLflow tracking directory."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from report.history import History, Point, Series, Shift
from report.history_entry import RunEntry
from report.history_words import sentences

LONGEST_NAME, LONGEST_PARAM, LONGEST_TAG, LONGEST_EXPERIMENT = 250, 500, 5000, 500
FINISHED, FAILED = 3, 4  # MLflow's RunStatus
LOCAL = 4  # MLflow's SourceType


def as_json(history: History) -> dict[str, Any]:
    """All of it, numbers as numbers."""
    return {
        "profile": history.profile,
        "since": history.since,
        "newest": history.newest.run_id,
        "regression": bool(history.regressions),
        "sentences": sentences(history),
        "runs": [
            {
                "run_id": each.entry.run_id,
                "begun_at": each.entry.begun_at.isoformat(),
                "machine": each.entry.machine,
                "cpu": each.entry.cpu,
                "cores": each.entry.cores,
                "memory_gb": each.entry.memory_gb,
                "commit": each.entry.commit,
                "versions": each.entry.versions,
                "before": each.before,
                "changed": list(each.changed),
            }
            for each in history.runs
        ],
        "series": [_series(each) for each in history.series],
    }


def of_nothing(profile: str, said: str) -> dict[str, Any]:
    """The same keys where there is no run."""
    empty: dict[str, Any] = {"runs": [], "series": []}
    return {"profile": profile, "since": None, "newest": None, "regression": False, "sentences": [said], **empty}


def _series(each: Series) -> dict[str, Any]:
    newest = each.newest
    return {
        "name": each.name,
        "unit": each.unit,
        "identity": {name: value for name, value in each.identity.items() if value is not None},
        "machine": each.machine,
        "cpu": each.cpu,
        "points": [
            {
                "run_id": point.run_id,
                "mean_seconds": point.mean,
                "trial_seconds": list(point.values),
                "noisy": point.noisy,
                "status": point.status,
            }
            for point in each.points
        ],
        "changes": [_shift(moved) for moved in each.shifts],
        "newest": {
            "standing": newest.standing,
            "ratio": newest.size and newest.size.ratio,
            "ratio_low": newest.size and newest.size.low,
            "ratio_high": newest.size and newest.size.high,
            "p": newest.p,
            "since": newest.since and newest.since.run_id,
            "against": newest.against,
            "changed": list(newest.beside),
        },
    }


def _shift(moved: Shift) -> dict[str, Any]:
    return {
        "run_id": moved.run_id,
        "before": moved.before,
        "ratio": moved.size.ratio,
        "ratio_low": moved.size.low,
        "ratio_high": moved.size.high,
        "p": moved.p,
        "changed": list(moved.beside),
    }


def mlflow_name(text: str) -> str:
    """A name that MLflow takes for a parameter, metric or tag, and that is one file: it would take a / for a folder."""
    clean = re.sub(r"[^\w.\- ]", "_", text, flags=re.ASCII)[:LONGEST_NAME]
    return clean if clean.strip(". ") else "_"


def mlflow_files(history: History, *, experiment: str, place: str) -> tuple[str, dict[str, bytes]]:
    """The id of the experiment, and its files below a directory of that name; `place` is the address of that directory.

    A run of MLflow is a configuration in a run of ours; its metrics have a line for each trial.
    """
    name = _line(experiment)[:LONGEST_EXPERIMENT]
    # MLflow's own ids are of 18 digits.
    number = str(10**17 + int(_digest(experiment)[:14], 16) % (9 * 10**17))
    entries = {each.entry.run_id: each.entry for each in history.runs}
    began, ended = (_milliseconds(history.runs[at].entry) for at in (0, -1))
    files = {
        "meta.yaml": _yaml(
            {
                "artifact_location": f"{place}/{number}",
                "creation_time": began,
                "experiment_id": number,
                "last_update_time": ended,
                "lifecycle_stage": "active",
                "name": name,
            }
        )
    }
    for each in history.series:
        for point in each.points:
            files |= _run(each, point, entries[point.run_id], number=number, place=place)
    return number, dict(sorted(files.items()))


def _run(each: Series, point: Point, entry: RunEntry, *, number: str, place: str) -> dict[str, bytes]:
    identity = {name: value for name, value in each.identity.items() if value is not None}
    run = _digest(json.dumps([point.run_id, each.cpu, identity], sort_keys=True))[:32]
    began = _milliseconds(entry)
    about = {
        "artifact_uri": f"{place}/{number}/{run}/artifacts",
        "end_time": began,
        "entry_point_name": "",
        "experiment_id": number,
        "lifecycle_stage": "active",
        "run_id": run,
        "run_name": _line(f"{point.run_id}: {each.name}"),
        "run_uuid": run,
        "source_name": "",
        "source_type": LOCAL,
        "source_version": "",
        "start_time": began,
        "status": FINISHED if point.values else FAILED,
        "tags": [],
        "user_id": "",
    }
    tags = {
        "mlflow.runName": about["run_name"],
        "mlflow.source.name": "yarnstick",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": entry.commit,
        "yarnstick.run_id": point.run_id,
        "yarnstick.profile": entry.profile,
        "yarnstick.status": point.status,
        "yarnstick.cpu": each.cpu,
        **{f"version.{name}": version for name, version in entry.versions.items()},
    }
    metrics = {
        "seconds": point.values,
        "mean_seconds": (point.mean,),
        "noisy_trials": (float(point.noisy),),
        "final_accuracy": (point.measured.final_accuracy,),
        "loss": (point.measured.loss,),
        "startup_seconds": (point.measured.startup_seconds,),
    }
    return {
        f"{run}/meta.yaml": _yaml(about),
        **_texts(f"{run}/params", identity, LONGEST_PARAM),
        **_texts(f"{run}/tags", tags, LONGEST_TAG),
        **_metrics(f"{run}/metrics", metrics, began),
    }


def _texts(folder: str, values: Mapping[str, Any], longest: int) -> dict[str, bytes]:
    return {
        f"{folder}/{mlflow_name(name)}": _line(str(value))[:longest].encode()
        for name, value in values.items()
        if value is not None
    }


def _metrics(folder: str, metrics: Mapping[str, Sequence[float | None]], timestamp: int) -> dict[str, bytes]:
    """`timestamp value step`, a line each."""
    found = {}
    for name, values in metrics.items():
        lines = [
            f"{timestamp} {value!r} {step}\n"
            for step, value in enumerate(values, 1)
            if value is not None and math.isfinite(value)
        ]
        if lines:
            found[f"{folder}/{mlflow_name(name)}"] = "".join(lines).encode()
    return found


def _yaml(values: Mapping[str, Any]) -> bytes:
    """JSON's strings, numbers and empty lists are YAML's too."""
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in values.items()).encode()


def _line(text: str) -> str:
    """In one line, without control characters."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _milliseconds(entry: RunEntry) -> int:
    return max(0, round(entry.begun_at.timestamp() * 1000))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
