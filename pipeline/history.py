"""`yarnstick history`: the runs of one profile from the index, in the terminal, as a page, and for other programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.runs import columns
from report.words import listed
from store.errors import SettingError, StoreError
from store.protocol import Store
from store.publish import temporary_name
from store.slug import slug

if TYPE_CHECKING:
    from report.history import History

STANDARD_OUTPUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What the store holds of a profile."""

    history: History | None  # None: no run of it
    profiles: tuple[str, ...]  # of all runs
    damaged: dict[str, str]  # runs that cannot be read, and why


def look(store: Store, profile: str, *, since: str | None = None) -> Looked:
    from pipeline.history_index import entries
    from report.history import history

    found, damaged = entries(store)
    mine = [entry for entry in found if entry.profile == profile]
    if since is not None and since not in {entry.run_id for entry in mine}:
        raise StoreError(
            f"run {since} is no run of profile {profile} in {store.url}; yarnstick history --profile {profile} lists "
            "what there is"
        )
    # A run without a report is not in the history yet.
    reported = [entry for entry in mine if entry.attempts or entry.run_id == since]
    return Looked(
        history=history(reported, profile=profile, since=since) if reported else None,
        profiles=tuple(sorted({entry.profile for entry in found})),
        damaged=damaged,
    )


def lines(history: History, damaged: dict[str, str]) -> list[str]:
    """What the terminal shows."""
    from report import history_words

    rows = [history_words.row(each).cells() for each in history_words.in_table(history)[0]]
    table = columns([history_words.HEADS, *rows]) if rows else ["no configuration has a time yet"]
    return [*history_words.lines(history, table=table), *(f"Note: {text}" for text in damaged.values())]


def publish_page(store: Store, history: History) -> str:
    """Write the page; where it is, to be opened here."""
    from report.history_page import page

    path = f"history/{slug(history.profile)}/history.html"
    store.write(path, page(history))
    here = str(store.local(path))
    return here if store.url.startswith("file:") else f"{store.url}/{path} (a copy to open here: {here})"


def export_json(history: History | None, target: str, *, profile: str, said: str) -> None:
    """`said` instead of sentences where there is no run."""
    from report.history_export import as_json, of_nothing

    found = of_nothing(profile, said) if history is None else as_json(history)
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if target == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    path = Path(target)
    temporary = path.with_name(temporary_name())
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise SettingError(
            f"{target} cannot be written: {error.strerror}; name a file in a directory that is there"
        ) from None


def export_mlflow(history: History, target: Path, *, store_url: str) -> Path:
    """The directory of the experiment, in place of what an earlier export left of it; others there stay."""
    from report.history_export import mlflow_files

    root = target.absolute()
    number, files = mlflow_files(history, experiment=f"yarnstick {history.profile} {store_url}", place=root.as_uri())
    whole, staged = root / number, root.with_name(f"{temporary_name()}-{root.name}")
    try:
        _write_all(staged, files)
        root.mkdir(parents=True, exist_ok=True)
        if whole.exists():
            shutil.rmtree(whole)
        os.rename(staged, whole)
    except OSError as error:
        raise SettingError(
            f"{target} cannot be written: {error.strerror}; name a directory, new or of MLflow, that you may write to"
        ) from None
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return whole


def _write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        if name.endswith("/meta.yaml"):
            for each in ("artifacts", "metrics", "params", "tags"):
                (folder / name).with_name(each).mkdir(exist_ok=True)


def no_run(store: Store, looked: Looked, profile: str) -> str:
    """What to do where the profile has none."""
    if looked.profiles:
        return (
            f"no run of profile {profile} in {store.url} has a report yet; there are some of "
            f"{listed(list(looked.profiles))}"
        )
    return f"no run in {store.url} yet: start with yarnstick run --profile {profile}"
