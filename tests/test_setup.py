"""From a machine's Python and Java to a command: what setup.sh says of them, and what the wheel holds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PYTHON_312 = "echo 3.12"
JAVA_17 = "printf 'java.base@17.0.15\\njdk.incubator.vector@17.0.15\\n'"
JAVA_8 = """case $1 in -version) echo 'openjdk version "1.8.0_292"' >&2;; *) exit 1;; esac"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without a .venv."""
    folder = tmp_path / "check out"
    folder.mkdir()
    for name in ("Makefile", "setup.sh", "setup.py", "constraints.txt"):
        shutil.copy(TOP / name, folder)
    return folder


def make(checkout: Path, *arguments: str, **commands: str) -> subprocess.CompletedProcess[str]:
    """Runs make where PATH has only what make itself needs and the given commands, each a line of shell."""
    folder = checkout.parent / "bin"
    folder.mkdir()
    for name in ("make", "sh", "cat", "cksum", "rm"):
        (folder / name).symlink_to(str(shutil.which(name)))
    for name, line in commands.items():
        script = folder / name.replace("_", ".")
        script.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        script.chmod(0o755)
    return subprocess.run(
        ["make", *arguments], cwd=checkout, env={"PATH": str(folder)}, capture_output=True, text=True, check=False
    )


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("target", ["run", "test"])
def test_no_python_is_one_line(checkout: Path, target: str) -> None:
    line = complaint(make(checkout, target, java=JAVA_17))
    assert "found no Python; install Python 3.11 or 3.12 (on Debian: apt-get install python3 python3-venv)" in line


def test_a_python_of_another_version_is_named(checkout: Path) -> None:
    line = complaint(make(checkout, "run", java=JAVA_17, python3="echo 3.13"))
    assert "found Python 3.13 (python3); install Python 3.11 or 3.12" in line


def test_a_shim_that_fails_is_passed_over(checkout: Path) -> None:
    shim = "echo 'command not found' >&2; exit 127"
    done = make(checkout, "run", "-n", java=JAVA_17, python3_12=shim, python3_11=shim, python3=PYTHON_312)
    assert (done.returncode, done.stderr) == (0, "")
    assert "./setup.sh install" in done.stdout


def test_a_python_without_venv_is_named(checkout: Path) -> None:
    python = "case $2 in *ensurepip*) exit 1;; *) echo 3.11;; esac"
    line = complaint(make(checkout, "test", java=JAVA_17, python3=python))
    assert "found Python 3.11 without the module venv (python3); install" in line


def test_the_python_asked_for_is_the_one_that_is_judged(checkout: Path) -> None:
    line = complaint(make(checkout, "run", "PYTHON=mine", java=JAVA_17, mine="echo 3.9", python3=PYTHON_312))
    assert "PYTHON=mine is Python 3.9 (mine); install" in line


def test_no_java_is_one_line(checkout: Path) -> None:
    line = complaint(make(checkout, "run", python3=PYTHON_312))
    assert "found no Java that runs; install Java 17 (on Debian: apt-get install openjdk-17-jdk-headless)" in line


def test_java_home_without_java_is_named(checkout: Path) -> None:
    line = complaint(make(checkout, "run", "JAVA_HOME=/no/such", python3=PYTHON_312, java=JAVA_17))
    assert "found no Java that runs in JAVA_HOME=/no/such; install" in line


@pytest.mark.parametrize(
    ("java", "found"),
    [
        (JAVA_8, "found Java 1.8.0_292 (java), and Spark needs 17 or newer; install"),
        ("echo java.base@11.0.2", "found Java 11.0.2 (java), and Spark needs 17 or newer; install"),
        ("echo java.base@17.0.9", "found Java 17.0.9 (java) without the module jdk.incubator.vector"),
        ("echo nonsense", "found a Java of unknown version (java); install"),
    ],
)
def test_a_java_that_does_not_do_is_named(checkout: Path, java: str, found: str) -> None:
    assert found in complaint(make(checkout, "test", python3=PYTHON_312, java=java))


def test_a_finished_set_up_is_not_done_again(checkout: Path) -> None:
    """With stand-ins for the Python that makes .venv and for the one inside."""
    python = """case $*
    in *version_info*) echo 3.12
    ;; *'-m venv'*) mkdir -p .venv/bin; cp "$0" .venv/bin/python
    ;; *) echo "$@" >>calls
    esac"""
    folder = checkout.parent / "bin"
    first = make(checkout, "setup", java=JAVA_17, python3=f"PATH=$PATH:/usr/bin:/bin\n{python}")
    assert first.stderr == ""
    calls = (checkout / "calls").read_text(encoding="utf-8").splitlines()
    assert calls[-3:] == [
        "-m pip install -q -c constraints.txt setuptools wheel",
        "-m pip install -q -c constraints.txt --no-build-isolation -e .[dev]",
        "-m pipeline.warm",
    ]

    def called_again(**changed: str) -> list[str]:
        (checkout / "calls").write_text("", encoding="utf-8")
        environment = {"PATH": str(folder), **changed}
        subprocess.run(["make", "setup"], cwd=checkout, env=environment, capture_output=True, check=True)
        lines = (checkout / "calls").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if "ensurepip" not in line]

    assert called_again() == []
    (folder / "java").write_text("#!/bin/sh\nprintf 'java.base@21\\njdk.incubator.vector@21\\n'\n", encoding="utf-8")
    assert called_again() == ["-m pipeline.warm"], "the archive of classes fits one Java only"
    (checkout / "constraints.txt").write_text("numpy==2\n", encoding="utf-8")
    assert called_again() == calls[-3:]


def test_make_alone_lists_the_targets(checkout: Path) -> None:
    done = make(checkout)
    targets = [line.split()[0] for line in done.stdout.splitlines()]
    assert targets[:6] == ["help", "setup", "run", "test", "check", "bench"]
    assert targets[6:] == ["cluster-up", "cluster-down", "cluster-test", "clean"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that the checkout stays as it is."""
    source = tmp_path_factory.mktemp("source")
    for name in ("setup.py", "luigi.cfg", "LICENSE"):
        shutil.copy(TOP / name, source)
    for package in ("store", "yarn", "mapreduce", "models", "report", "pipeline"):
        shutil.copytree(TOP / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "-w", str(target), str(source)], check=True)
    (made,) = target.glob("yarnstick-0.1.0-*.whl")
    return made


def metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read("yarnstick-0.1.0.dist-info/METADATA").decode()


def test_the_wheel_holds_every_module_template_and_the_settings(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert archive.read("pipeline/luigi.cfg") == (TOP / "luigi.cfg").read_bytes()
        assert b"yarnstick = pipeline.cli:main" in archive.read("yarnstick-0.1.0.dist-info/entry_points.txt")
    expected = {"pipeline/luigi.cfg"}
    for package in ("store", "yarn", "mapreduce", "models", "report", "pipeline"):
        for path in (TOP / package).rglob("*"):
            if path.name.endswith((".py", ".html.j2", ".css")):
                expected.add(path.relative_to(TOP).as_posix())
    assert held == expected


def test_settings_are_found_where_there_is_no_checkout(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True)
    ask = "from pipeline.config import *; print(packaged_file(), read_settings('quick').main.scale)"
    environment = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    done = subprocess.run(
        [sys.executable, "-c", ask],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(target / "pipeline/luigi.cfg"), "global"]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_requirement_is_pinned_and_no_address_is(wheel: Path) -> None:
    lines = (TOP / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [re.fullmatch(r"([A-Za-z0-9_.-]+)==[A-Za-z0-9_.!+-]+", line) for line in lines if not line.startswith("#")]
    pinned = {canonical(pin[1]) for pin in pins if pin}
    assert len(pinned) == len(pins), "each line is name==version, once"
    required = re.findall(r"^Requires-Dist: ([A-Za-z0-9_.-]+)", metadata(wheel), re.MULTILINE)
    # tensorflow is for systems other than Linux; Kerberos' packages are built against the system's libraries.
    assert {canonical(name) for name in required} - pinned <= {"tensorflow"}
