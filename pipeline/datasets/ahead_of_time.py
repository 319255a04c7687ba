"""`yarnstick data`: datasets fetched and checked before they are needed, and what there is to say of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipeline.datasets.sources import REAL, source
from pipeline.settings import Settings
from store.errors import YarnstickError


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One dataset: what it is and where, or the sentence that says why it is not here."""

    name: str
    ok: bool
    problem: str | None = None
    train_rows: int | None = None
    test_rows: int | None = None
    columns: int | None = None
    classes: int | None = None
    place: str | None = None


def fetch_all(names: Iterable[str], settings: Settings) -> Iterator[Found]:
    """Each of them, or all real ones; one that can't be had does not keep the others from being fetched."""
    wanted = [source(name, settings) for name in dict.fromkeys(names) or REAL]
    for each in wanted:
        try:
            place = each.fetch()
            about = each.description()
        except YarnstickError as error:
            yield Found(name=each.name, ok=False, problem=str(error))
            continue
        yield Found(
            name=each.name,
            ok=True,
            train_rows=about.train_rows,
            test_rows=about.test_rows,
            columns=about.columns,
            classes=about.classes,
            place=str(place) if place is not None else None,
        )


def line(found: Found) -> str:
    if not found.ok:
        return f"{found.name}: {found.problem}"
    rows = f"{found.train_rows} rows to train and {found.test_rows} to test"
    place = f"in {found.place}" if found.place else "generated when it is needed"
    return f"{found.name}: ok, {rows}, {found.columns} columns, {found.classes} classes, {place}"
