"""Where the seconds of a Spark job went, along its critical path.

The path is walked back from the end of the job: the task that ended last, those before it in the same slot (a stage
may have several waves), then the task of an earlier stage that ended last before those began, and so on. A second of a
task is what its metrics say; a second in which no task of the path ran is the scheduler's. The weights are a broadcast
that tasks fetch while they run, which no metric tells: it counts as compute.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from models.spark_events import TaskEnd

PARTS = ("compute", "comm", "scheduling", "gc", "serialization")  # milliseconds each; what is left is nobody's


def parts(
    tasks: Sequence[TaskEnd], *, room: Mapping[str, int], began: int, ended: int, complete: bool = True
) -> dict[str, float]:
    """Of a job from `began` to `ended`. Where the log lacks some of its tasks, what lies between is not told."""
    found = dict.fromkeys(PARTS, 0.0)
    idle = float(ended - began)
    for task, until in _path(tasks, room=room, began=began, ended=ended):
        duration = until - max(task.info.launched, began)
        idle -= duration
        for part, milliseconds in _of_task(task, duration).items():
            found[part] += milliseconds
    if complete:
        found["scheduling"] += idle
    return found


def slots(tasks: Sequence[TaskEnd], *, room: Mapping[str, int]) -> list[int]:
    """A slot of its executor for each task, as the log names none: the lowest that is free when it is launched.

    `room` is how many slots an executor has. With all of them taken it is the one that is free next: an executor gives
    a slot back a little before the driver notes that the task has finished.
    """
    busy: dict[str, list[int]] = defaultdict(list)
    found = [0] * len(tasks)
    for place in sorted(range(len(tasks)), key=lambda place: (tasks[place].info.launched, tasks[place].info.finished)):
        info = tasks[place].info
        until = busy[info.executor]
        free = next((slot for slot, end in enumerate(until) if end <= info.launched), len(until))
        if free == len(until) and free >= room.get(info.executor, len(tasks)):
            free = until.index(min(until))
        until[free : free + 1] = [info.finished]
        found[place] = free
    return found


def _path(tasks: Sequence[TaskEnd], *, room: Mapping[str, int], began: int, ended: int) -> list[tuple[TaskEnd, int]]:
    """The tasks of the path, last first, each with the moment until which it counts."""
    before = _before_in_slot(tasks, room)
    waiting = sorted(range(len(tasks)), key=lambda place: tasks[place].info.finished)
    path: list[tuple[TaskEnd, int]] = []
    moment = ended
    while waiting and moment > began:
        place = waiting.pop()
        if tasks[place].info.finished > moment:
            continue  # it ran beside the path
        while place >= 0:
            task = tasks[place].info
            start, until = max(task.launched, began), min(task.finished, moment)
            if until <= start:
                break
            path.append((tasks[place], until))
            moment = start
            place = before.get(place, -1)
    return path


def _before_in_slot(tasks: Sequence[TaskEnd], room: Mapping[str, int]) -> dict[int, int]:
    """For each task the one that ran before it in its slot, if that was of the same stage."""
    last: dict[tuple[str, int], int] = {}
    found: dict[int, int] = {}
    in_slot = slots(tasks, room=room)
    for place in sorted(range(len(tasks)), key=lambda place: (tasks[place].info.launched, tasks[place].info.finished)):
        task = tasks[place]
        key = (task.info.executor, in_slot[place])
        previous = last.get(key)
        if previous is not None and (tasks[previous].stage, tasks[previous].attempt) == (task.stage, task.attempt):
            found[place] = previous
        last[key] = place
    return found


def _of_task(task: TaskEnd, duration: float) -> dict[str, float]:
    """Milliseconds of a task by what they went to. Spark counts fetching, shuffle writes and gc within its run time."""
    if task.metrics is None:
        return {}
    m = task.metrics
    getting = max(0, task.info.finished - task.info.getting_result) if task.info.getting_result else 0
    fetched = m.shuffle_read.wait if m.shuffle_read else 0
    written = m.shuffle_write.nanoseconds / 1e6 if m.shuffle_write else 0.0
    run, serialization = float(max(0, m.run)), float(max(0, m.deserialize + m.serialize_result))
    shuffled = min(run, max(0.0, fetched + written))
    gc = min(float(max(0, m.gc)), run - shuffled + serialization)
    gc_of_run = min(gc, run - shuffled)
    found = {
        "compute": run - shuffled - gc_of_run,
        "comm": shuffled + getting,
        "gc": gc,
        "serialization": serialization - (gc - gc_of_run),
    }
    told = sum(found.values())
    if told > duration:  # two clocks, and whole milliseconds
        return {part: value * duration / told for part, value in found.items()}
    return found | {"scheduling": duration - told}
