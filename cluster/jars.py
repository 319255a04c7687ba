"""The jars of pom.xml, fetched once by Maven and shared by all clusters of this checkout."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import ClusterError
from cluster.place import check_path

TOP = Path(__file__).resolve().parent.parent
POM = Path(__file__).with_name("pom.xml")
FETCH_SECONDS = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class Jars:
    directory: Path

    @property
    def everything(self) -> str:
        """As a class path."""
        return f"{self.directory}/lib/*"

    @property
    def pages(self) -> str:
        """HDFS's web pages, for its daemons; YARN has its own among everything."""
        return f"{self.directory}/pages/*"

    @property
    def streaming(self) -> Path:
        return next((self.directory / "streaming").glob("hadoop-streaming-*.jar"))


def fetched(say: Callable[[str], None]) -> Jars:
    """The jars, from Maven Central where they are not here yet."""
    # A changed pom gets a directory of its own: a running cluster keeps the jars that it started with.
    target = TOP / "build" / "hadoop" / f"{zlib.crc32(POM.read_bytes()):08x}"
    check_path(target)
    if target.is_dir():
        return Jars(directory=target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            _fetch(target, say)
    return Jars(directory=target)


def _fetch(target: Path, say: Callable[[str], None]) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ClusterError("found no mvn on PATH; install Maven (on Debian: apt-get install maven)")
    say("fetching Hadoop's jars by Maven, once (about 110 MB)")
    fresh = target.with_name(f"{target.name}.fetching")
    shutil.rmtree(fresh, ignore_errors=True)
    log = target.with_name("maven.log")
    command = [maven, "-q", "-B", "-ntp", "-f", str(POM), "package", f"-Djars={fresh}"]
    with log.open("wb") as output:
        try:
            status = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=FETCH_SECONDS, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            raise ClusterError(f"Maven did not end within {FETCH_SECONDS} seconds; see {log}, then try again") from None
    if status != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        cause = next((line for line in lines if "ERROR" in line), "it said nothing")
        raise ClusterError(f"Maven ended with {status}: {cause.strip()}; the rest is in {log}; mend it and try again")
    fresh.replace(target)
