"""What MapReduce and Spark need of a cluster: a client, its configuration, and a YARN with room in our queue."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from pipeline.checks.check import Check, bad, fine
from pipeline.opening import open_resource_manager
from pipeline.settings import Settings
from report.words import counted, listed
from yarn.client import hadoop_command, streaming_jar
from yarn.resource_manager import GPU, RUNNING, Node
from yarn.site import configuration_folders

COMMAND_SECONDS = 20.0
USABLE = (RUNNING, "NEW", "DECOMMISSIONING")
FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml")
NAMED = 3  # nodes
LONGEST_HEALTH = 120


def runs_mapreduce(settings: Settings) -> bool:
    return settings.mapreduce.runner == "hadoop"


def runs_spark(settings: Settings) -> bool:
    return settings.spark.master == "yarn"


def client(settings: Settings) -> Check:
    """The command that mrjob calls, run for its version, and the jar that it hands over."""
    command = hadoop_command(settings.hadoop.command)
    jar = streaming_jar(settings.hadoop.streaming_jar, command)
    try:
        done = subprocess.run(
            [command, "version"], capture_output=True, timeout=COMMAND_SECONDS, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return bad(
            f"{command} does not run ({type(error).__name__})", advice="mend it, or set yarnstick.hadoop.command"
        )
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    version = re.search(r"^Hadoop (\S+)", said, re.MULTILINE)
    if done.returncode or not version:
        last = (said.strip().splitlines() or ["it said nothing"])[-1]
        return bad(
            f"{command} version ended with {done.returncode}: {last}",
            advice="set JAVA_HOME to a Java for Hadoop, or yarnstick.hadoop.command to a client that runs",
        )
    return fine(f"{command}, Hadoop {version[1]}; {jar}")


def configuration(settings: Settings) -> Check:
    folders = configuration_folders()
    told = listed([f"{name}={folder}" for name, folder in folders.items()])
    if not folders:
        if runs_spark(settings):
            return bad(
                "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set, and Spark finds YARN by one of them",
                advice="set HADOOP_CONF_DIR to the directory of yarn-site.xml",
            )
        return fine("HADOOP_CONF_DIR is not set: the command hadoop goes by its own")
    missing = [name for name in FILES if not any((folder / name).is_file() for folder in folders.values())]
    if missing:
        plural = "are" if len(missing) > 1 else "is"
        return bad(f"{listed(missing)} {plural} not in {told}", advice="copy the cluster's client configuration there")
    unread = [str(path) for folder in folders.values() for path in _files(folder) if not os.access(path, os.R_OK)]
    if unread:
        return bad(f"{listed(unread)} cannot be read", advice="have the permission granted")
    return fine(told)


def resource_manager(settings: Settings) -> Check:
    manager = open_resource_manager(settings)
    told, metrics = manager.information(), manager.metrics()
    said = (
        f"{manager.address}, Hadoop {told.version}: {metrics.available_mib:,} of {metrics.total_mib:,} MiB and "
        f"{metrics.available_vcores} of {metrics.total_vcores} vcores are free, "
        f"{counted(metrics.running, 'application')} running, {metrics.pending} waiting"
    )
    if told.state not in ("STARTED", ""):
        return bad(f"{said}; its state is {told.state}", advice="ask whoever runs YARN")
    return fine(said)


def queue(settings: Settings) -> Check:
    """Its state, its share, and the largest container that it and the largest node allow."""
    manager = open_resource_manager(settings)
    found = manager.queue(settings.hadoop.queue)
    nodes = [node for node in manager.nodes() if node.state == RUNNING]
    mib = [found.largest_mib, found.maximum_mib, max((node.total_mib for node in nodes), default=None)]
    vcores = [found.largest_vcores, max((node.total_vcores for node in nodes), default=None)]
    parts = [f"{found.path} is {found.state}"]
    if found.capacity is not None:
        most = "" if found.maximum_capacity is None else f", at most {found.maximum_capacity:g} %"
        parts.append(f"{found.capacity:g} % of the cluster{most}")
    if found.maximum_mib is not None:
        parts.append(f"{found.used_mib:,} of {found.maximum_mib:,} MiB in use")
    parts.append(f"containers of up to {_least(mib):,} MiB and {counted(_least(vcores), 'vcore')}")
    if found.pending:
        parts.append(f"{counted(found.pending, 'application')} waiting")
    said = ", ".join(parts)
    if found.state != RUNNING:
        return bad(said, advice="ask whoever runs YARN, or set yarnstick.hadoop.queue to another one")
    if found.maximum_vcores is not None and found.maximum_vcores < 2:
        few = counted(found.maximum_vcores, "vcore")
        return fine(said, advice=f"only {few}: where YARN counts them, a job has none beside its master")
    return fine(said)


def nodes(settings: Settings) -> Check:
    found = open_resource_manager(settings).nodes()
    by_state: dict[str, list[Node]] = {}
    for node in found:
        by_state.setdefault(node.state, []).append(node)
    said = listed([f"{len(each)} {state.lower()}" for state, each in sorted(by_state.items())]) or "none"
    if not by_state.get(RUNNING):
        return bad(said, advice="ask whoever runs YARN to start its NodeManagers")
    ill = [node for state, each in by_state.items() if state not in USABLE for node in each]
    if not ill:
        return fine(said)
    named = [f"{node.host}{f' ({_first_words(node.health)})' if node.health else ''}" for node in ill[:NAMED]]
    more = [f"{len(ill) - NAMED} more"] if len(ill) > NAMED else []
    return fine(said, advice=f"not to be used: {listed([*named, *more])}")


def gpus(settings: Settings) -> Check:
    having = [
        node for node in open_resource_manager(settings).nodes() if node.state == RUNNING and node.resources.get(GPU)
    ]
    if not having:
        return fine(f"none in the cluster: no node that runs has {GPU}")
    count = sum(node.resources[GPU] for node in having)
    return fine(f"{counted(count, 'GPU')} on {counted(len(having), 'node')} of the cluster")


def _least(limits: list[int | None]) -> int:
    return min((limit for limit in limits if limit is not None), default=0)


def _first_words(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_HEALTH else f"{words[:LONGEST_HEALTH]}..."


def _files(folder: Path) -> list[Path]:
    return [folder / name for name in FILES if (folder / name).is_file()]
