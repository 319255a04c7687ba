"""The Java that the cluster runs on."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import ClusterError

NEEDED = 17
ANSWER_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    home: Path
    version: str

    @property
    def command(self) -> Path:
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The one that JAVA_HOME or PATH names; its own word on where it lies, since a command may be a shim."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    try:
        told = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        raise ClusterError(
            f"found no Java that runs ({java}); install Java {NEEDED}, or name one with JAVA_HOME"
        ) from None
    values = dict(
        re.findall(r"^ *(java\.home|java\.specification\.version|java\.vm\.version) = (.+)$", told, re.MULTILINE)
    )
    release = values.get("java.specification.version", "an unknown version")
    if not release.isdecimal() or int(release) < NEEDED:
        raise ClusterError(f"found Java {release} ({java}), and this Hadoop needs {NEEDED}; name one with JAVA_HOME")
    return Java(home=Path(values["java.home"]), version=str(values.get("java.vm.version", release)))
