"""The Python for nodes that have none: packed for real, and run where this machine's Python is not to be seen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from pipeline.environment import ALWAYS, USED, check, installed, pack_environment, stage
from store.errors import SettingError
from tests.pipeline.place import Place, assert_one_error

TOP = Path(__file__).parent.parent.parent
# As a mapper's own process begins: our code from the working directory, the packages from the archive.
TASK = "import mapreduce.mr_normalize, mapreduce.mr_pixel_range, numpy, pyarrow.csv; print(numpy.__file__)"
NOTHING = {"PATH": "/nonexistent"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("packed") / "environment.tar.gz"
    made = pack_environment(file)
    assert made.bytes == file.stat().st_size
    assert {each.split()[0].lower() for each in made.distributions} == {*ALWAYS, "pyyaml"}
    return file


@pytest.fixture(scope="module")
def unpacked(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As YARN has it: a directory named environment in a container's working directory."""
    folder = tmp_path_factory.mktemp("container")
    (folder / "environment").mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", folder / "environment"], check=True)
    for package in ("mapreduce", "store"):
        shutil.copytree(TOP / package, folder / package)
    return folder


def python(folder: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        ["./environment/bin/python", *arguments], cwd=folder, env=NOTHING | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_runs_with_an_empty_environment(unpacked: Path) -> None:
    found = python(unpacked, "-c", TASK, PYTHONPATH=".")
    assert Path(found).is_relative_to(unpacked / "environment")
    paths = python(unpacked, "-c", "import sys, numpy, pyarrow; print(open('/proc/self/maps').read())")
    loaded = {Path(line.split()[-1]) for line in paths.splitlines() if ".so" in line}
    outside = {path.name for path in loaded if not path.is_relative_to(unpacked)}
    assert {name.split(".")[0].split("-")[0] for name in outside} <= {
        "ld",
        "libc",
        "libm",
        "libdl",
        "libpthread",
        "librt",
    }


def test_it_runs_where_there_is_nothing_but_a_shell_and_the_c_library(unpacked: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may chroot")
    shell = os.path.realpath("/bin/sh")
    needed = {Path(path) for _, path in USED.findall(subprocess.check_output(["ldd", shell], text=True))}
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    if not loader.exists():
        pytest.skip(f"{loader} is not this machine's loader")
    # Some wheels were built when these were files of their own.
    needed |= {
        path.with_name(f"lib{name}.so.{number}")
        for path in needed
        for name, number in (("m", 6), ("dl", 2), ("pthread", 0), ("rt", 1), ("util", 1))
    }
    for path in {Path("/bin/sh"), loader, *needed}:
        if path.exists():
            (tmp_path / str(path)[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tmp_path / str(path)[1:])
    shutil.copytree(unpacked / "environment", tmp_path / "elsewhere", symlinks=True)
    code = "import sys, numpy, pyarrow; print(sys.prefix, int(numpy.ones(3) @ numpy.ones(3)))"
    done = subprocess.run(
        ["chroot", str(tmp_path), "/elsewhere/bin/python", "-c", code],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"},
    )
    assert done.stdout.split() == ["/elsewhere", "3"], done.stderr


def test_torch_and_terminals_are_not_in_it(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        entries = packed.getmembers()
    names = [entry.name for entry in entries]
    assert not [name for name in names if "/torch" in name or "curses." in name]
    compiled = f"numpy/__pycache__/__init__.{sys.implementation.cache_tag}.pyc"
    assert [name for name in names if name.endswith(compiled)]
    assert {(entry.uid, entry.uname, entry.mtime) for entry in entries} == {(0, "", 0)}
    assert not [name for name in names if name.startswith("/") or ".." in name.split("/")]


def test_a_running_python_writes_nothing_into_it(unpacked: Path) -> None:
    def files() -> set[Path]:
        return set((unpacked / "environment").rglob("*"))

    before = files()
    python(unpacked, "-c", "import numpy, pyarrow, json, mrjob.job, email.message")
    assert files() == before


def test_what_is_not_installed_is_one_sentence(place: Place) -> None:
    file = place.folder / "e.tar.gz"
    for given, word in (
        ("no-such-thing-at-all", "no-such-thing-at-all is not installed here"),
        ("numpy<1", "numpy<1 is asked for, but "),
        ("!", "--requirement: "),
    ):
        assert_one_error(place.run("pack-environment", str(file), "--requirement", given), word)
    assert_one_error(place.run("pack-environment", str(place.folder / "e.zip")), ".tar.gz")
    assert list(place.folder.glob("*e.tar.gz*")) == []


def test_requirements_bring_what_they_require() -> None:
    assert {"altair", "jinja2", "markupsafe", "numpy"} <= installed(["Altair", "numpy>=1"]).keys()
    with pytest.raises(SettingError, match="not installed here"):
        installed(["altair", "no_such_thing"])


def test_a_copy_that_does_not_run_is_no_archive(tmp_path: Path) -> None:
    staged = tmp_path / "environment"
    stage(staged, [])
    with pytest.raises(SettingError, match=r"does not run by itself .*No module named 'numpy'"):
        check(staged, ["numpy"])
