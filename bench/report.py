"""Merge and Report over 100,000 epoch records, against the 20 seconds and the gigabyte they may take."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

RECORDS, SECONDS, GIGABYTES = 100_000, 20.0, 1.0

# A process of its own, so that its peak is its own. Half the configurations are one comparison, half many small ones.
WHOLE = """
    import io, json, time
    from dataclasses import replace
    import pyarrow.parquet as pq
    from report.merge import merged_files
    from report.page import report_files
    from tests.report.made import BASELINE, RUN, mllib, outcomes, torch

    made = [torch(n, 1 / n) for n in range(1, 65)] + [mllib(n, c, 9 / n / c) for n in range(1, 33) for c in (1, 2, 3)]
    made += [replace(each, data_fraction=n / 16, rows=n * 3750) for n in range(1, 9) for each in made[:20]]
    trials = 10
    found = outcomes(made, trials=trials, epochs=-(-{records} // len(made) // trials))
    rows = sum(len(outcome.records) for outcome in found)
    start = time.monotonic()
    files = merged_files(found, baseline=BASELINE)
    report_files(pq.read_table(io.BytesIO(files["epochs.parquet"])), run=RUN, baseline=BASELINE)
    seconds = time.monotonic() - start
    # Not getrusage: what it tells of a child begins with the memory of its parent.
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
    print(json.dumps(dict(rows=rows, seconds=seconds, gigabytes=peak / 1e6)))
"""


def ratios() -> list[dict[str, Any]]:
    code = textwrap.dedent(WHOLE.format(records=RECORDS))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    assert measured["rows"] >= RECORDS
    return [
        {
            "name": "Merge and Report over 100,000 epoch records, of 20 s",
            "ratio": measured["seconds"] / SECONDS,
            "bound": 1.0,
            "unit_seconds": measured["seconds"],
            "against_seconds": SECONDS,
        },
        {
            "name": "peak memory of the same, of 1 GB",
            "ratio": measured["gigabytes"] / GIGABYTES,
            "bound": 1.0,
            "unit_seconds": None,
            "against_seconds": None,
        },
    ]
