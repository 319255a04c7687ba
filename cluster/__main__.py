"""`python -m cluster up|down|status|remove|run`: what make's cluster targets call."""

from __future__ import annotations

import argparse
import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

from cluster.errors import ClusterError
from cluster.jars import TOP
from cluster.lifecycle import NODES, READY_SECONDS, Cluster
from cluster.place import MOST_NODES

# Tells a command that the cluster is there for it alone.
FRESH = "YARNSTICK_FRESH_CLUSTER"


def main(arguments: list[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    # Ended from outside, we still end what we started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _do(asked)
    except ClusterError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Error: interrupted; what was started here is ended again", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `| head`; what is still buffered has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _do(asked: argparse.Namespace) -> int:
    cluster = Cluster(asked.directory, say=functools.partial(print, flush=True))
    if asked.verb == "up":
        _up(cluster, asked)
        _introduce(cluster)
    elif asked.verb == "run":
        return _run(cluster, asked)
    elif asked.verb == "status":
        return _status(cluster)
    elif asked.verb == "down":
        cluster.down()
        print(f"down; HDFS's data stays in {cluster.place.directory}")
    else:
        cluster.remove()
        print(f"removed {cluster.place.directory}")
    return 0


def _up(cluster: Cluster, asked: argparse.Namespace) -> None:
    cluster.up(
        nodes=asked.nodes,
        node_memory_mib=asked.node_memory_mib,
        node_vcores=asked.node_vcores,
        patience=asked.patience,
    )


def _run(cluster: Cluster, asked: argparse.Namespace) -> int:
    """A fresh cluster for one command, which finds it in its environment and may break what it likes."""
    with cluster.place.alone():
        cluster.remove()
        try:
            _up(cluster, asked)
            environment = cluster.environment() | {FRESH: str(cluster.place.directory)}
            return subprocess.run(asked.command, env=environment, check=False).returncode
        finally:
            cluster.down()


def _introduce(cluster: Cluster) -> None:
    print(f"HDFS  {cluster.web('namenode')}/explorer.html")
    print(f"YARN  {cluster.web('resourcemanager')}/cluster")
    print(f"Jobs  {cluster.web('jobhistory')}/jobhistory")
    print(f"To use it: . {cluster.place.environment}")
    print(cluster.place.environment.read_text(encoding="utf-8").partition("\n")[2], end="")


def _status(cluster: Cluster) -> int:
    found = cluster.status()
    if not found:
        print(f"there is no cluster in {cluster.place.directory}")
    for name, process in found.items():
        print(f"{name:16} {process.pid if process else 'down':<8} {cluster.web(name)}")
    return 0 if found and all(found.values()) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cluster", description="A real HDFS and YARN on loopback.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    said = {
        "up": "start what does not run, wait until it is ready, print the environment that commands need",
        "down": "end all processes; HDFS's data stays",
        "status": "each daemon with its process and its pages; exit code 1 unless all run",
        "remove": "down, and remove the directory with HDFS's data",
        "run": "a fresh cluster for one command, down again when that ends",
    }
    for verb, text in said.items():
        each = verbs.add_parser(verb, help=text, description=text)
        each.add_argument("--directory", type=Path, default=TOP / "build" / "cluster", help="default: build/cluster")
        if verb in ("up", "run"):
            each.add_argument(
                "--nodes", type=int, help=f"NodeManagers and DataNodes, 1 to {MOST_NODES}; {NODES} at first"
            )
            each.add_argument("--node-memory-mib", type=int, help="what YARN may give to containers of a node")
            each.add_argument("--node-vcores", type=int, help="likewise; one more than the machine has at first")
            each.add_argument("--patience", type=float, default=READY_SECONDS, help="seconds until it must be ready")
        if verb == "run":
            each.add_argument("command", nargs="+", help="after --")
    return parser


if __name__ == "__main__":
    sys.exit(main())
