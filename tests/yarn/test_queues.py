"""Queues as the three schedulers tell them: CapacityScheduler's as recorded, the others' as Hadoop documents them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.yarn.wrong_yarn import RECORDED
from yarn.queues import Queue, Resource, Scheduler, leaf_queues

TOTAL = Resource(16384, 6)
EIGHT = {"memory": 8192, "vCores": 8}
FAIR = {
    "type": "fairScheduler",
    "rootQueue": {
        "queueName": "root",
        "clusterResources": EIGHT,
        "childQueues": {
            "queue": [
                {
                    "type": "fairSchedulerLeafQueueInfo",
                    "queueName": "root.default",
                    "clusterResources": EIGHT,
                    "fairResources": {"memory": 2048, "vCores": 0},
                    "maxResources": {"memory": 4096, "vCores": 4},
                    "usedResources": {"memory": 1024, "vCores": 1},
                    "numActiveApps": 1,
                    "numPendingApps": 2,
                },
                {
                    "queueName": "root.team",
                    "clusterResources": EIGHT,
                    "childQueues": {
                        "queue": [
                            {
                                "type": ["fairSchedulerLeafQueueInfo"],
                                "queueName": "root.team.ours",
                                "clusterResources": EIGHT,
                                "fairResources": {"memory": 10000, "vCores": 0},
                                "steadyFairResources": {"memory": 4096, "vCores": 0},
                                "maxContainerAllocation": {"memory": 2048, "vCores": 2},
                            }
                        ]
                    },
                },
            ]
        },
    },
}
FIFO = {
    "type": "fifoScheduler",
    "capacity": 1.0,
    "usedCapacity": 0.5,
    "qstate": "RUNNING",
    "minQueueMemoryCapacity": 1024,
    "maxQueueMemoryCapacity": 10240,
}
# Of Hadoop 3.1: neither paths nor limits of a container.
NESTED = {
    "type": "capacityScheduler",
    "queueName": "root",
    "queues": {
        "queue": [
            {
                "queueName": "a",
                "state": "STOPPED",
                "queues": {"queue": [{"queueName": "b", "absoluteMaxCapacity": 50.0, "state": "RUNNING"}]},
            },
            {
                "queueName": "c",
                "absoluteCapacity": "NaN",
                "capacities": {"queueCapacitiesByPartition": [{"partitionName": "", "maxAMLimitPercentage": 10.0}]},
            },
        ]
    },
}


def read(told: Any, total: Resource = TOTAL) -> dict[str, Queue]:
    scheduler = msgspec.convert(told, Scheduler, strict=False)
    return {queue.path: queue for queue in leaf_queues(scheduler, total=total)}


def test_the_capacity_scheduler_tells_all() -> None:
    told = msgspec.json.decode((RECORDED / "scheduler.json").read_bytes())["scheduler"]["schedulerInfo"]
    found = read(told)
    assert list(found) == ["root.default", "root.narrow"]
    assert found["root.narrow"] == Queue(
        name="narrow",
        path="root.narrow",
        state="RUNNING",
        capacity=20.0,
        maximum_capacity=20.0,
        used_capacity=pytest.approx(16.67, abs=0.01),
        maximum_mib=3276,
        maximum_vcores=1,
        used_mib=256,
        used_vcores=1,
        largest_mib=8192,
        largest_vcores=2,
        am_share=0.5,
        running=1,
        pending=0,
    )


def test_an_older_capacity_scheduler_tells_shares_only() -> None:
    found = read(NESTED)
    assert list(found) == ["root.a.b", "root.c"]
    assert found["root.a.b"].state == "STOPPED", "no application gets into a queue whose parent has stopped"
    assert (found["root.a.b"].maximum_mib, found["root.a.b"].maximum_vcores) == (8192, 3)
    last = found["root.c"]
    assert (last.capacity, last.maximum_mib, last.largest_mib, last.am_share) == (None, None, None, 0.1)


def test_the_fair_scheduler_tells_resources() -> None:
    found = read(FAIR)
    assert list(found) == ["root.default", "root.team.ours"]
    default, ours = found.values()
    assert (default.name, default.capacity, default.maximum_capacity, default.used_capacity) == (
        "default",
        25.0,
        50.0,
        12.5,
    )
    assert (default.maximum_mib, default.maximum_vcores, default.used_mib) == (4096, 4, 1024)
    assert (default.running, default.pending, default.largest_mib) == (1, 2, None)
    assert (ours.name, ours.capacity, ours.largest_mib, ours.largest_vcores) == ("ours", 50.0, 2048, 2)


def test_fifo_is_one_queue() -> None:
    assert read({**FIFO, "usedCapacity": "NaN"})["root.default"].used_capacity is None
    found = read(FIFO)["root.default"]
    assert (found.maximum_mib, found.used_capacity, found.used_mib, found.largest_mib) == (16384, 50.0, 8192, 10240)


VALUES = st.recursive(
    st.none() | st.integers() | st.floats() | st.sampled_from(["RUNNING", "", "a.b", "NaN", "fifoScheduler"]),
    lambda each: (
        st.lists(each, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["queue", "queues", "childQueues", "queueName", "absoluteMaxCapacity", "memory", "maxResources"]
            ),
            each,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["type", "rootQueue", "queues", "clusterResources", "usedCapacity"]), VALUES))
def test_no_answer_of_the_right_kinds_breaks_it(told: dict[str, Any]) -> None:
    try:
        scheduler = msgspec.convert(told, Scheduler, strict=False)
    except msgspec.ValidationError:
        return
    assert all(queue.path is not None for queue in leaf_queues(scheduler, total=TOTAL))
