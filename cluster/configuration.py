"""The files that daemons and clients read, made from the templates for one cluster."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path
from xml.sax.saxutils import escape

from cluster import class_archive
from cluster.errors import ClusterError
from cluster.jars import Jars
from cluster.java import Java
from cluster.place import HOST, MASTER_PORTS, NODE_PORTS, Place, Shape
from cluster.processes import MEMBER

TEMPLATES = Path(__file__).with_name("templates")
MASTER_FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml", "capacity-scheduler.xml")
NODE_FILES = ("hdfs-site.xml", "yarn-site.xml", "mapred-site.xml")
COMMANDS = ("hadoop", "hdfs", "yarn", "mapred")
# What Hadoop needs of Java 17's insides.
OPENS = ("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED")
# For JVMs that live for seconds, beside others on few cores.
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def write(place: Place, shape: Shape, *, jars: Jars, java: Java) -> None:
    """All files of a cluster: for the masters and clients, for each node, the commands, and the environment."""
    values = {
        "host": HOST,
        "user": user(),
        "store": f"hdfs://{HOST}:{shape.ports['namenode']}/user/{user()}/yarnstick",
        "directory": str(place.directory),
        "jars": str(jars.directory),
        "java_home": str(java.home),
        "class_archive": str(class_archive.path(jars, java)),
        "streaming": str(_streaming(jars)),
        "replication": str(min(2, shape.nodes)),
        "node_memory_mib": str(shape.node_memory_mib),
        "node_vcores": str(shape.node_vcores),
        "largest_vcores": str(min(shape.node_vcores, os.cpu_count() or 1)),
        "member": MEMBER,
        "opens": " ".join(OPENS),
        "quick": " ".join(QUICK),
        **{name: str(shape.ports[name]) for name in MASTER_PORTS},
    }
    _write_all(place.configuration, _master(values))
    for node in range(1, shape.nodes + 1):
        # Containers are placed by host, so each node has its own: all of 127.0.0.0/8 is this machine.
        of_node = values | {"node": str(node), "node_host": f"127.0.0.{node}"}
        of_node |= {name: str(shape.ports[f"{name}-{node}"]) for name in NODE_PORTS}
        files = _master(values)
        for name in NODE_FILES:
            properties = filled(name.replace(".xml", ".node.xml"), of_node)
            files[name] = files[name].replace("</configuration>", f"\n{properties}</configuration>")
        _write_all(place.node_configuration(node), files)
    _write_all(place.directory / "spark", {"spark-defaults.conf": filled("spark-defaults.conf", values)})
    _write_home(place, values, jars=jars)
    _write_all(place.directory, {name: filled(name, values) for name in ("env", "luigi.cfg")})


def user() -> str:
    """As Hadoop sees it: by the process, whatever the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise ClusterError(f"user {os.getuid()} has no name on this machine, and Hadoop needs one") from None


def filled(template: str, values: dict[str, str]) -> str:
    """A template's text with each @name@ replaced; a name without a value is a KeyError."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    is_xml = template.endswith(".xml")
    return re.sub(r"@(\w+)@", lambda found: escape(values[found[1]]) if is_xml else values[found[1]], text)


def _master(values: dict[str, str]) -> dict[str, str]:
    return {name: filled(name, values) for name in (*MASTER_FILES, "log4j.properties")}


def _streaming(jars: Jars) -> Path:
    """Below the home, where Hadoop's own distribution has it."""
    return Path("share", "hadoop", "tools", "lib", jars.streaming.name)


def _write_home(place: Place, values: dict[str, str], *, jars: Jars) -> None:
    _write_all(place.home / "bin", {name: filled("hadoop", values) for name in COMMANDS}, mode=0o755)
    link = place.home / _streaming(jars)
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(jars.streaming)


def _write_all(directory: Path, files: dict[str, str], *, mode: int = 0o644) -> None:
    """What is so already is left alone, and the rest replaced in one step: somebody may be reading it."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = directory / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            fresh = path.with_name(f".{name}.{os.getpid()}")
            fresh.write_text(text, encoding="utf-8")
            fresh.chmod(mode)
            fresh.replace(path)
