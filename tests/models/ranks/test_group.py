"""What a rank says of the others: real sockets, each rank a thread."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
import torch

from models.ranks.group import Group
from models.ranks.meeting import Meeting, Place, StallError
from tests.models.ranks.made import TOKEN, Info, Stage, Task


class Nodes(Task):
    """Executors on nodes of other names, which are all this machine."""

    def getTaskInfos(self) -> list[Info]:  # noqa: N802 Spark's name
        return [Info(f"127.0.0.{rank + 1}:7") for rank in range(3)]


def test_who_waits_names_the_node_that_stands_still() -> None:
    """And not itself, nor the third, which waits as well."""
    stage, both, all_ = Stage(3), threading.Barrier(2, timeout=30), threading.Barrier(3, timeout=30)

    def one(rank: int) -> str:
        task: Any = Nodes(stage, rank)
        with closing(Meeting(task, Place.of(task), listeners=1)) as meeting:
            cpu = torch.device("cpu")
            with closing(Group(meeting, token=TOKEN, device=cpu, stall_seconds=2)) as group:
                if rank == 1:
                    all_.wait()
                    return ""
                try:
                    both.wait()
                    with pytest.raises(StallError) as told:
                        group.sum(torch.ones(1000))
                finally:
                    all_.wait()  # who leaves is missed, and no longer waited for
                return str(told.value)

    with ThreadPoolExecutor(3) as threads:
        first, _, third = threads.map(one, range(3))
    said = "waited 2 s for the one on 127.0.0.2 (yarnstick.spark.stall_seconds): look at that node, or raise"
    assert first == f"executor on 127.0.0.1 {said} the setting"
    assert third == f"executor on 127.0.0.3 {said} the setting"
