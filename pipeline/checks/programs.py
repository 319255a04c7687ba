"""The programs that a run stands on: Python, Java, Spark, and the archives that let its JVMs start fast."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import msgspec

from pipeline.checks.check import Check, bad, fine
from pipeline.checks.spark_session import Started
from pipeline.settings import Settings
from pipeline.warm import KINDS, class_archives
from report.words import seconds
from store.local import LocalStore
from store.publish import temporary_name

PYTHONS = ((3, 11), (3, 12))  # as setup.py says
LEAST_JAVA = 17
MODULE = "jdk.incubator.vector"
JAVA_SECONDS = 30
SPARK_SECONDS = 120  # as long as a trial waits for its executors
TOP = Path(__file__).parent.parent.parent
INSTALL_JAVA = f"install Java {LEAST_JAVA} or newer with all its modules, or set JAVA_HOME to one"


def python() -> Check:
    said = f"Python {sys.version.split()[0]}, {64 if sys.maxsize > 2**32 else 32} bits, {sys.executable}"
    if sys.version_info[:2] not in PYTHONS or sys.maxsize <= 2**32:
        return bad(said, advice="use Python 3.11 or 3.12 of 64 bits")
    return fine(said)


def java(*, needed: bool) -> Check:
    """The Java that pyspark would start."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        return _without_java("no java on PATH and JAVA_HOME is not set", needed=needed)
    try:
        said = _output(program, "-XshowSettings:properties", "-version")
        modules = _output(program, "--list-modules")
    except (OSError, subprocess.SubprocessError):
        return _without_java(f"{program} does not run", needed=needed)
    found = dict(
        re.findall(r"^\s+(java\.version|java\.vendor|sun\.arch\.data\.model) = (.*\S)\s*$", said, re.MULTILINE)
    )
    release = found.get("java.version", "of an unknown version")
    detail = f"Java {release} ({found.get('java.vendor', 'vendor not known')}), {program}"
    major = re.match(r"\d+", release)
    if major is None or int(major[0]) < LEAST_JAVA:
        return _without_java(detail, needed=needed)
    if found.get("sun.arch.data.model", "64") != "64":
        return _without_java(f"{detail} has {found['sun.arch.data.model']} bits", needed=needed)
    if MODULE not in modules:
        return _without_java(f"{detail} has no module {MODULE}: it is a trimmed one", needed=needed)
    return fine(f"{detail}, with {MODULE}")


def archives(settings: Settings) -> Check:
    found = class_archives(settings.main.cache)
    if set(found) == set(KINDS):
        return fine("made for this Java and this Spark")
    return fine(
        f"none of {' and '.join(KINDS)} for this Java and this Spark: its JVMs start more slowly, which no epoch shows"
        if not found
        else f"only of {' and '.join(found)}",
        advice="python -m pipeline.warm makes them, as set-up does",
    )


def spark(settings: Settings) -> Check:
    """A real session with a real executor, as small as the profile has them, and its end."""
    work = settings.main.cache / "work"
    LocalStore(work).collect()
    folder = work / temporary_name()
    folder.mkdir(parents=True, mode=0o700)
    log = folder / "log.txt"
    try:
        how = _session(settings, folder, log)
        if how is None:
            return bad(
                f"Spark {version('pyspark')} had no session after {SPARK_SECONDS} s",
                advice="look again when the machine is quiet, or lower memory_mib of the profile",
            )
        if isinstance(how, int):
            last = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
            said = f"Spark {version('pyspark')} starts no session: its process ended with exit code {how}: {last}"
            return bad(said, advice=INSTALL_JAVA)
        took = f"a session with one executor in {seconds(how.seconds)}"
        return fine(f"Spark {how.spark}: {took}, MLlib multiplies with {how.blas}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _session(settings: Settings, folder: Path, log: Path) -> Started | int | None:
    """What was started, or the exit code of the process that tried, or None where that took too long."""
    path = os.pathsep.join(filter(None, [str(TOP), os.environ.get("PYTHONPATH", "")]))
    memory = min(settings.profile.memory_mib)
    conf = msgspec.json.encode(settings.spark.conf).decode()
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline.checks.spark_session", str(folder), str(memory), conf],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        try:
            output, _ = process.communicate(timeout=SPARK_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its JVMs too
            process.wait()
    return msgspec.json.decode(output.splitlines()[-1], type=Started) if process.returncode == 0 else process.returncode


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, timeout=JAVA_SECONDS, check=True, stdin=subprocess.DEVNULL)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def _without_java(detail: str, *, needed: bool) -> Check:
    if needed:
        return bad(detail, advice=INSTALL_JAVA)
    return fine(f"{detail}; no platform of this profile needs it", advice=INSTALL_JAVA)
