"""Hadoop's programs on this machine: the command `hadoop`, and the jar of its streaming."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from store.errors import SettingError

STREAMING = re.compile(r"hadoop.*streaming.*\.jar")
NEITHER = re.compile(r"sources|test|javadoc")  # jars that lie beside it
# Where vendors and Hadoop's own archive put it, below Hadoop's home.
PLACES = ("share/hadoop/tools/lib", "contrib/streaming", "../hadoop-mapreduce", "tools/lib", ".")


def hadoop_command(given: Path | None, *, environment: Mapping[str, str] = os.environ) -> Path:
    """`given` is yarnstick.hadoop.command; else bin/hadoop of HADOOP_HOME, else the one on PATH."""
    if given is not None:
        if not _runs(given):
            raise SettingError(f"yarnstick.hadoop.command={given} is no program; give the path of Hadoop's bin/hadoop")
        return given
    home = environment.get("HADOOP_HOME")
    if home and _runs(Path(home) / "bin" / "hadoop"):
        return Path(home) / "bin" / "hadoop"
    found = shutil.which("hadoop", path=environment.get("PATH", ""))
    if found is None:
        where = f"neither in HADOOP_HOME={home} nor on PATH" if home else "not on PATH, and HADOOP_HOME is not set"
        raise SettingError(f"the command hadoop is {where}; install a Hadoop client, or set yarnstick.hadoop.command")
    return Path(found)


def streaming_jar(given: Path | None, command: Path, *, environment: Mapping[str, str] = os.environ) -> Path:
    """`given` is yarnstick.hadoop.streaming_jar; else HADOOP_STREAMING_JAR, else one below HADOOP_HOME or the command's
    own home."""
    told = environment.get("HADOOP_STREAMING_JAR")
    for name, path in (
        ("yarnstick.hadoop.streaming_jar", given),
        ("HADOOP_STREAMING_JAR", Path(told) if told else None),
    ):
        if path is not None:
            if not path.is_file():
                raise SettingError(f"{name}={path} is no file; give the path of Hadoop's hadoop-streaming-*.jar")
            return path
    home = environment.get("HADOOP_HOME")
    homes = [Path(home)] if home else []
    homes.append(command.resolve().parent.parent)
    found = next((jar for each in homes for jar in _streaming_jars(each)), None)
    if found is None:
        raise SettingError(
            f"no hadoop-streaming-*.jar lies below {' or '.join(map(str, dict.fromkeys(homes)))}; "
            f"set yarnstick.hadoop.streaming_jar to its path"
        )
    return found


def _streaming_jars(home: Path) -> Iterator[Path]:
    """The usual places, then all of it: a vendor's may lie anywhere."""
    for place in PLACES:
        yield from sorted(path for path in (home / place).glob("*.jar") if _is_streaming(path))
    yield from sorted(path for path in home.rglob("*.jar") if _is_streaming(path))


def _is_streaming(path: Path) -> bool:
    return bool(STREAMING.fullmatch(path.name)) and not NEITHER.search(path.name) and path.is_file()


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
