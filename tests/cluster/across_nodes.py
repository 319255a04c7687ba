"""What the driver of test_network runs, on a host of its own: `python -m tests.cluster.across_nodes FOLDER URL`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from models.platforms.torch_spark import TorchSpark
from models.spec import Resources
from tests.models import reference
from tests.models.made import packed, spec, surroundings


def main(folder: Path, url: str) -> None:
    data = packed(folder / "packed")
    resources = Resources(executors=2, cores=1, memory_mib=1024, deploy_mode="client")
    trial = spec("torch-spark", resources=resources)
    platform = TorchSpark(surroundings(folder / "session", spark_url=url))
    try:
        epochs = list(platform.train(trial, data))
    finally:
        platform.close()
    answer = {
        "losses": [epoch.loss for epoch in epochs],
        "reference": reference.losses(trial, data),
        "executors": epochs[-1].granted_executors,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
