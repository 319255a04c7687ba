"""Whole trainings, start-up and loading included: which of them did equal work, and why others are not compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from report.words import counted, title

Row = Mapping[str, Any]  # of comparison.configurations
UNEQUAL_PASSES = "an epoch is not the same number of passes over the rows for all, so trainings are not equal work"


def unequal(row: Row, other: Row) -> str | None:
    """Why the one training is not the same work as the other; None where it is."""
    if row["unit"] == "training":
        return None  # of as many epochs, else they would not be in one class
    if row["by_pass"]:
        return UNEQUAL_PASSES
    for each in (row, other):
        if each["training_epochs"] is None:
            name = title(each["platform"])
            return f"not all trainings of {name} are known to have had as many epochs, all of them timed"
    if row["training_epochs"] != other["training_epochs"]:
        return (
            f"a training of {title(row['platform'])} had {counted(row['training_epochs'], 'epoch')}, and one of "
            f"{title(other['platform'])} {other['training_epochs']:,}"
        )
    return None


def without_start_up(row: Row, *, to_target: bool) -> str | None:
    """Why nothing can be said of it with start-up; None where it was recorded in every trial."""
    fixed = row["trial_fixed_to_target" if to_target else "trial_fixed_seconds"]
    if fixed is None or None in fixed:
        return f"the start-up of {title(row['platform'])} was not recorded"
    return None
