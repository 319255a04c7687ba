"""The probe of `yarnstick doctor --probe`: a small job that tells what Python and packages the nodes have."""

from __future__ import annotations

import os
from importlib.metadata import version

import msgspec

from mapreduce.node_facts import PACKAGES
from mapreduce.on_hadoop import Errand, run_on_hadoop
from pipeline.checks.check import Check, bad, fine
from pipeline.datasets.jobs import hadoop_cluster
from pipeline.on_yarn import trains_in_python
from pipeline.opening import open_resource_manager, open_store, reach
from pipeline.settings import Settings
from report.words import counted, listed
from store.errors import SettingError
from store.protocol import Store
from store.publish import temporary_name
from yarn.resource_manager import RUNNING

MOST_TASKS = 16  # of a cluster that is other people's too
PYTHONS = ("3.11.", "3.12.")  # as setup.py says
ON_EXECUTORS = ("torch", "msgspec", "psutil")  # beside those of jobs, where executors train in Python
PACK_TORCH = "yarnstick pack-environment --requirement torch makes one that has torch too"
SHIP = "set yarnstick.hadoop.python to one that has all, or ship one by yarnstick.hadoop.python_archive"


class Facts(msgspec.Struct, frozen=True):
    """As mapreduce/node_facts.py tells them."""

    host: str
    python: str
    executable: str
    packages: dict[str, str | None]
    distutils: bool


def probe(settings: Settings) -> Check:
    if not reach(settings).is_on_hdfs:
        raise SettingError(
            f"the probe needs a store on HDFS, and yarnstick.store.url is {settings.store.url}; set that to "
            f"hdfs:///user/NAME/yarnstick"
        )
    running = [node for node in open_resource_manager(settings).nodes() if node.state == RUNNING]
    also = asked_too(settings)
    lines = _told(settings, tasks=min(MOST_TASKS, 2 * len(running)), also=also)
    return judged(lines, of=len(running), also=also)


def asked_too(settings: Settings) -> tuple[str, ...]:
    """What executors of this profile import, and jobs do not."""
    return ON_EXECUTORS if settings.spark.master == "yarn" and trains_in_python(settings) else ()


def judged(lines: list[str], *, of: int, also: tuple[str, ...] = ()) -> Check:
    """By what the tasks wrote, facts and troubles alike."""
    facts, troubles = list[Facts](), set[str]()
    for line in lines:
        try:
            facts.append(msgspec.json.decode(line, type=Facts))
        except msgspec.DecodeError:
            troubles.add(line)
    hosts = {each.host for each in facts}
    troubles |= {trouble for each in facts if (trouble := _trouble(each))}
    said = f"{len(hosts)} of {counted(of, 'node')} told: " + (_summary(facts) or "nothing")
    if troubles or not facts:
        without_torch = any("torch" in each.packages and each.packages["torch"] is None for each in facts)
        advice = f"{SHIP}; {PACK_TORCH}" if without_torch else SHIP
        return bad(f"{said}; {listed(sorted(troubles))}" if troubles else said, advice=advice)
    differing = sorted(
        {f"{name} {at}" for each in facts for name, at in each.packages.items() if at and _release(at) != _here(name)}
    )
    if differing:
        here = listed([f"{name} {_here(name)}" for name in (*PACKAGES, *also)])
        return fine(said, advice=f"here it is {here}: results may differ in the last digits")
    return fine(said)


def _here(name: str) -> str:
    return _release(version(name))


def _release(version: str) -> str:
    """Without the word for a build, as in 2.9.0+cpu, which metadata may leave out."""
    return version.partition("+")[0]


def _trouble(facts: Facts) -> str | None:
    if not facts.python.startswith(PYTHONS):
        return f"{facts.host}: {facts.executable} is Python {facts.python}, and jobs need 3.11 or 3.12"
    missing = [name for name, at in facts.packages.items() if at is None]
    missing += [] if facts.distutils else ["distutils (pip install setuptools)"]
    if missing:
        return f"{facts.host}: {facts.executable} has no {listed(missing, 'or')}"
    return None


def _summary(facts: list[Facts]) -> str:
    """Each kind of Python once."""
    kinds = {
        f"Python {each.python} ({each.executable}) with "
        + (listed([f"{name} {at}" for name, at in each.packages.items() if at]) or "none of our packages")
        for each in facts
    }
    return listed(sorted(kinds))


def _told(settings: Settings, *, tasks: int, also: tuple[str, ...]) -> list[str]:
    store, folder = open_store(settings), temporary_name()
    store.write(f"{folder}/lines", b"tell\n" * tasks)
    try:
        run_on_hadoop(
            Errand(
                job="mapreduce.mr_nodes:MRNodes",
                arguments=(f"--also={' '.join(also)}",),
                inputs=(f"{folder}/lines",),
                output=f"{folder}/output",
                work=f"{folder}/work",
                reach=reach(settings),
                cluster=hadoop_cluster(settings),
                parent=os.getpid(),
            ),
            listener=lambda news: None,
        )
        return _lines(store, f"{folder}/output")
    finally:
        store.remove(folder)


def _lines(store: Store, folder: str) -> list[str]:
    """Hadoop puts a separator behind a line that has none."""
    names = [entry.name for entry in store.list(folder) if entry.name.startswith("part-")]
    text = b"".join(store.read_each([f"{folder}/{name}" for name in names])).decode("utf-8", "replace")
    return [line.rstrip("\t") for line in text.splitlines()]
