"""A table for each axis that was varied on a platform and dataset."""

from __future__ import annotations

import polars as pl

from report import tables

AXES = {
    "executors": ("executors", "cores"),
    "threads": ("threads",),
    "fraction": ("data_fraction",),
    "batch_size": ("batch_size",),
    "workers": ("workers",),
    "memory": ("memory_mib",),
    "partitions": ("partitions",),
    "balance": ("balance",),
    "shards": ("shards",),
    "staleness": ("staleness",),
}
COLUMNS = (
    "network",
    "solver",
    "learning_rate",
    "precision",
    "gradient",
    "batch_size",
    "data_fraction",
    "rows",
    "executors",
    "cores",
    "memory_mib",
    "partitions",
    "workers",
    "threads",
    "total_cores",
    "trials",
    "unit",
    "whole_epochs",
    "mean_seconds",
    "ci_low",
    "ci_high",
    "seconds_per_pass",
    "relative_to_one_thread",
    "final_accuracy",
    "status",
)


def files(configurations: pl.DataFrame) -> dict[str, bytes]:
    """`sweep_<axis>_<platform>_<dataset>.csv`, with the axis first; what did not run is a row with its reason."""
    found = {}
    for (platform, dataset), group in configurations.group_by("platform", "dataset", maintain_order=True):
        for axis, columns in AXES.items():
            if group.select(columns).n_unique() < 2 or group.select(columns).null_count().sum_horizontal()[0] == (
                group.height * len(columns)
            ):
                continue
            order = [*columns, *(name for name in COLUMNS if name not in columns)]
            rest = [
                name for name in ("network", "solver", "whole_epochs", "precision", "gradient") if name not in columns
            ]
            frame = group.sort(*rest, *columns, "mean_seconds", nulls_last=True, maintain_order=True)
            name = f"sweep_{axis}_{tables.named(str(platform))}_{tables.named(str(dataset))}.csv"
            found[name] = tables.csv(frame.select(order))
    return dict(sorted(found.items()))
