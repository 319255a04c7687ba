"""`python -m pipeline.checks.spark_session FOLDER MEMORY_MIB CONF`: a session as trials have it, begun and ended."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    spark: str
    blas: str
    seconds: float


def start(folder: Path, memory_mib: int, conf: dict[str, str]) -> Started:
    from models.protocol import Surroundings
    from models.spark_application import SparkApplication
    from models.spec import Resources

    surroundings = Surroundings(work=folder, spark_conf=conf, archives=folder / "eventlogs")
    application = SparkApplication(Resources(executors=1, cores=1, memory_mib=memory_mib), surroundings)
    try:
        return Started(
            spark=str(application.session.version),
            blas=application.blas(),
            seconds=application.startup_seconds,
        )
    finally:
        application.stop()


if __name__ == "__main__":
    given = Path(sys.argv[1]), int(sys.argv[2]), msgspec.json.decode(sys.argv[3], type=dict[str, str])
    print(msgspec.json.encode(start(*given)).decode())
