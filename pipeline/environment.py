"""A Python for nodes that have none: this interpreter and packages beside it, in an archive that runs anywhere.

A virtual environment would not do: it needs the interpreter that it was made with, at the same path on every node.
"""

from __future__ import annotations

import compileall
import gzip
import importlib.metadata
import json
import os
import platform
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

from store.errors import SettingError

# What MapReduce's tasks import on a node, and Spark's driver where that is on a node too.
ALWAYS = ("mrjob", "msgspec", "numpy", "psutil", "pyarrow", "setuptools", "threadpoolctl")
SUFFIX = ".tar.gz"
INTERPRETER = "python-relocated"  # what bin/python starts
LIBRARIES = "lib/shared"
CHECK_SECONDS = 300
# Parts of the standard library that no job needs: tests, windows, and the means to install more.
LEFT_OUT = {
    "__pycache__",
    "dist-packages",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "site-packages",
    "test",
    "tests",
    "tkinter",
}
LEFT_OUT |= {"turtledemo"}
# What a build leaves, and extensions for terminals and old networks, which bring libraries of their own.
NEEDLESS = re.compile(r"config-\d|_test|_xx|_ctypes_test|_tkinter|_curses|xxlimited|readline|nis\.|ossaudiodev")
# The C library of a machine comes with its loader; with another one's nothing starts.
OF_THE_SYSTEM = re.compile(r"(ld-linux|libc|libdl|libm|libnsl|libpthread|libresolv|librt|libutil)\b")
USED = re.compile(r"^\t(\S+) => (/.+) \(0x[0-9a-f]+\)$", re.MULTILINE)  # a line of ldd

START = f"""#!/bin/sh
# Starts the Python of this directory, wherever it was unpacked, with nothing but what a shell does by itself.
top=$(cd "${{0%/*}}/.." && pwd) || exit 127
unset PYTHONHOME
export PYTHONNOUSERSITE=1 LD_LIBRARY_PATH="$top/{LIBRARIES}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
exec "$top/bin/{INTERPRETER}" "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    file: Path
    bytes: int
    python: str
    distributions: tuple[str, ...]  # with their versions
    needs: str  # of a node


def pack_environment(file: Path, requirements: Iterable[str] = ()) -> Packed:
    """Make the archive, and only if what it holds starts with nothing around it."""
    if not file.name.endswith(SUFFIX):
        raise SettingError(f"{file}: give a name that ends in {SUFFIX}, as YARN unpacks archives by their names")
    if sys.platform != "linux":
        raise SettingError(f"this machine has {sys.platform}; make the archive on Linux, on a machine like the nodes")
    wanted = installed([*ALWAYS, *requirements])
    try:
        with tempfile.TemporaryDirectory(prefix="yarnstick.") as folder:
            staged = Path(folder) / "environment"
            stage(staged, wanted.values())
            check(staged, sorted(name for each in wanted.values() for name in modules(each)))
            compress(staged, file)
    except OSError as error:
        raise SettingError(f"{file} cannot be made: {error}") from None
    return Packed(
        file=file,
        bytes=file.stat().st_size,
        python=platform.python_version(),
        distributions=tuple(sorted(f"{each.name} {each.version}" for each in wanted.values())),
        needs=f"{platform.machine()} with {' '.join(platform.libc_ver())} or newer",
    )


def installed(names: Iterable[str]) -> dict[str, Distribution]:
    """These and all that they require, as they are installed here: nothing is fetched, and the versions are ours."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    found: dict[str, Distribution] = {}
    left = [*names]
    while left:
        try:
            wanted = Requirement(left.pop(0))
        except InvalidRequirement as error:
            raise SettingError(
                f"--requirement: {str(error).splitlines()[0]}; write it as numpy or numpy==2.4.6"
            ) from None
        name = canonicalize_name(wanted.name)
        if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
            continue
        if name not in found:
            try:
                found[name] = importlib.metadata.distribution(wanted.name)
            except importlib.metadata.PackageNotFoundError:
                raise SettingError(
                    f"{wanted.name} is not installed here, and the archive takes what is; pip install it first"
                ) from None
            left += found[name].requires or []
        if not wanted.specifier.contains(found[name].version, prereleases=True):
            raise SettingError(f"{wanted} is asked for, but {found[name].version} is installed here; install that one")
    return found


def modules(distribution: Distribution) -> set[str]:
    """What can be imported of it."""
    names = set()
    for file in distribution.files or ():
        if file.name == "__init__.py" and len(file.parts) == 2:
            names.add(file.parts[0])
        elif len(file.parts) == 1 and file.suffix == ".py":
            names.add(file.stem)
    return {name for name in names if name.isidentifier() and not name.startswith("_")}


def stage(staged: Path, wanted: Iterable[Distribution]) -> None:
    """The environment as a directory."""
    base = Path(sys.base_prefix)
    library = Path(sysconfig.get_path("stdlib", vars={"base": str(base), "installed_base": str(base)}))
    inside = staged / library.relative_to(base)
    shutil.copytree(library, inside, ignore=lambda _, names: [each for each in names if is_left_out(each)])
    executable = staged / "bin" / INTERPRETER
    executable.parent.mkdir()
    shutil.copy(os.path.realpath(sys.executable), executable)
    for name in ("python", "python3", f"python{sysconfig.get_python_version()}"):
        (executable.parent / name).write_text(START)
        (executable.parent / name).chmod(0o755)
    (staged / LIBRARIES).mkdir(parents=True)
    copy_libraries(staged, [executable])
    # Where this interpreter looks for packages differs by who built it.
    packages = Path(json.loads(run(staged, "import json, site; print(json.dumps(site.getsitepackages()[0]))")))
    for each in wanted:
        copy_distribution(each, packages)
    copy_libraries(staged, [path for path in staged.rglob("*.so*") if path.is_file()])
    for path in (inside, packages):
        # For good: nobody can write there on a node, and each task would compile anew.
        compileall.compile_dir(
            path,
            quiet=2,
            workers=0,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            stripdir=str(staged),
            prependdir="environment",
        )


def is_left_out(name: str) -> bool:
    return name in LEFT_OUT or NEEDLESS.match(name) is not None


def copy_distribution(distribution: Distribution, packages: Path) -> None:
    if not distribution.files:
        raise SettingError(f"which files are {distribution.name}'s is not recorded; install it by pip")
    for file in distribution.files:
        # Commands and manuals lie beside site-packages, and name this machine's Python.
        if ".." in file.parts or file.is_absolute() or "__pycache__" in file.parts:
            continue
        source = Path(str(file.locate()))
        if source.is_file():
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def copy_libraries(staged: Path, users: Iterable[Path]) -> None:
    """The shared libraries of this machine that these files use, but those that every Linux has."""
    target = staged / LIBRARIES
    environment = {**os.environ, "LD_LIBRARY_PATH": str(target)}
    try:
        # It fails where one of the files is no library; what it says of the others counts.
        done = subprocess.run(["ldd", *users], capture_output=True, text=True, env=environment)
    except FileNotFoundError:
        raise SettingError(
            "ldd is not on PATH; it tells which libraries belong to a Python (glibc's package)"
        ) from None
    for name, path in USED.findall(done.stdout):
        if not OF_THE_SYSTEM.match(name) and not Path(path).is_relative_to(staged) and not (target / name).exists():
            shutil.copy(path, target / name)


def run(staged: Path, code: str, *arguments: str) -> str:
    """With the staged Python, as a container without PATH starts it."""
    done = subprocess.run(
        [staged / "bin" / "python", "-c", code, *arguments],
        env={"PATH": "/nonexistent"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=CHECK_SECONDS,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise SettingError(
            f"the copied Python {sys.base_prefix} does not run by itself ({last}); use another one, as python.org's or "
            f"the distribution's"
        )
    return done.stdout


def check(staged: Path, names: list[str]) -> None:
    """Imported all at once, and from nowhere else."""
    found = run(staged, "import sys\nfor name in sys.argv[1:]: print(__import__(name).__file__)", *names)
    outside = [path for path in found.splitlines() if path != "None" and not Path(path).is_relative_to(staged)]
    if outside:
        raise SettingError(f"the copied Python still imports {outside[0]}; unset what leads it there")


def compress(staged: Path, file: Path) -> None:
    """The same files always give the same bytes, so that a cluster's cache knows them again."""

    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = 0
        return entry

    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with (
            partial.open("wb") as target,
            gzip.GzipFile(filename="", fileobj=target, mode="wb", compresslevel=6, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in sorted(staged.iterdir()):
                archive.add(path, path.name, filter=anonymous)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
