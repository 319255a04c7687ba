"""An archive of the classes that Hadoop's JVMs load: with it daemons need a third less time to start, and clients half.

The first cluster of a checkout writes down which classes it loads; from these lists the archive is made, once.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Iterable
from pathlib import Path

from cluster.jars import Jars
from cluster.java import Java
from cluster.place import Place

MAKING_SECONDS = 600


def path(jars: Jars, java: Java) -> Path:
    """It fits one set of jars and one Java; any other leaves it aside."""
    return jars.directory / f"classes-{zlib.crc32(f'{java.home} {java.version}'.encode()):08x}.jsa"


def options(jars: Jars, java: Java) -> list[str]:
    """Of a JVM whose class path begins with the jars."""
    return [f"-XX:SharedArchiveFile={path(jars, java)}", "-Xlog:disable"] if path(jars, java).exists() else []


def recording(place: Place, name: str) -> list[str]:
    """Of a JVM that is to write its list."""
    return [f"-XX:DumpLoadedClassList={_list(place, name)}"]


def make(place: Place, names: Iterable[str], *, jars: Jars, java: Java) -> bool:
    """From the lists that these daemons have written so far; False where that fails, and nothing but time is lost."""
    target = path(jars, java)
    merged, fresh = (target.with_name(f".{target.name}.{os.getpid()}.{kind}") for kind in ("list", "new"))
    merged.write_text("".join(f"{line}\n" for line in _classes(place, names)), encoding="utf-8")
    command = [str(java.command), "-Xshare:dump", "-Xmx1g", "-XX:+UseSerialGC", "-Xlog:disable"]
    command += [f"-XX:SharedClassListFile={merged}", f"-XX:SharedArchiveFile={fresh}", "-cp", jars.everything]
    quiet = subprocess.DEVNULL
    try:
        subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet, timeout=MAKING_SECONDS, check=True)
        fresh.replace(target)
    except (OSError, subprocess.SubprocessError):
        return False
    finally:
        merged.unlink(missing_ok=True)
        fresh.unlink(missing_ok=True)
        for name in names:
            _list(place, name).unlink(missing_ok=True)
    return True


def _classes(place: Place, names: Iterable[str]) -> list[str]:
    """Each once, in the order of their loading: a class comes after those that it is made from."""
    found: dict[str, None] = {}
    for name in names:
        lines = _list(place, name).read_text(encoding="utf-8").splitlines(keepends=True)
        # The daemon is still writing: its last line may be half a name.
        found |= dict.fromkeys(line.rstrip("\n") for line in lines if line.endswith("\n") and not line.startswith("#"))
    return list(found)


def _list(place: Place, name: str) -> Path:
    return place.logs / f"{name}.classes"
