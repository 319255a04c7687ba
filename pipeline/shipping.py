"""Sends what nodes lack: files of this machine go to the store once for each content, and stay there for all runs."""

from __future__ import annotations

import hashlib
import logging
import os
import tarfile
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Literal

from pipeline.opening import open_elsewhere, open_store
from pipeline.settings import Settings
from store.addresses import is_on_hdfs
from store.errors import SettingError
from store.manifest import MANIFEST
from store.protocol import Store
from store.publish import Staging
from yarn.shipped import SUFFIXES, Shipped

COPY_BYTES = 4 << 20
JAVA_COMMAND = "bin/java"
log = logging.getLogger("luigi-interface.yarnstick")


def shipped(settings: Settings, user: Literal["mapreduce", "spark"]) -> Shipped:
    """What [yarnstick.hadoop] names, where every node can fetch it."""
    given = settings.hadoop
    java_archive = given.java_archive if user in given.java_archive_for else ""
    if not given.python_archive and not java_archive:
        return Shipped()
    store = open_store(settings)
    inside = _java_inside(java_archive, settings) if java_archive else ""
    python = _address(given.python_archive, "python_archive", store)
    java = _address(java_archive, "java_archive", store)
    if python and java and python.rpartition("/")[2] == java.rpartition("/")[2]:
        raise SettingError(
            f"yarnstick.hadoop.java_archive = {given.java_archive} and python_archive have the same file name, by "
            f"which Spark tells archives apart; rename one of them"
        )
    return Shipped(python_archive=python, java_archive=java, java_inside=inside)


def published_file(store: Store, file: Path) -> str:
    """The address of a copy on the store, which is sent only if this content was never there."""
    about = file.stat()
    digest = _digest(file, about.st_size, about.st_mtime_ns)
    name = digest[:16] + next((suffix for suffix in SUFFIXES if file.name.endswith(suffix)), file.suffix)
    with file.open("rb") as source:
        return publish_once(store, f"shipped/{digest[:16]}", name=name, source=source, what=str(file))


def publish_once(store: Store, path: str, *, name: str, source: BinaryIO, what: str) -> str:
    """The address of `name` in the directory `path`, which is published from `source` where it is not there yet."""
    if not store.exists(f"{path}/{MANIFEST}"):
        log.info("sends %s to %s, once", what, f"{store.url}/{path}")
        with Staging(store, path) as staging:
            with staging.create(name) as target:
                while block := source.read(COPY_BYTES):
                    target.write(block)
            staging.commit()
    return f"{store.url}/{path}/{name}"


@lru_cache
def _digest(file: Path, size: int, modified: int) -> str:
    """Once for a file that does not change: both jobs and Spark ask."""
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _address(given: str, key: str, store: Store) -> str:
    if not given or is_on_hdfs(given):
        return given
    try:
        return published_file(store, Path(given))
    except OSError as error:
        raise SettingError(f"yarnstick.hadoop.{key} = {given} cannot be read: {error.strerror}") from None


def _java_inside(given: str, settings: Settings) -> str:
    """JDKs are packed with a directory around them, whose name tells the version."""
    complaint = f"yarnstick.hadoop.java_archive = {given}"
    try:
        if is_on_hdfs(given):
            store, path = open_elsewhere(settings, given)
            if not path or not store.exists(path):
                raise SettingError(f"{complaint}: there is no such file; put the archive there, or correct the address")
            with store.open(path) as file:
                command = _java_command(file)
        else:
            with Path(given).open("rb") as file:
                command = _java_command(file)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise SettingError(f"{complaint} is not an archive that can be unpacked ({error}); give another one") from None
    except OSError as error:
        raise SettingError(f"{complaint} cannot be read: {error.strerror or error}") from None
    if command is None:
        raise SettingError(f"{complaint} holds no {JAVA_COMMAND}; give the archive of a whole JDK, as it is downloaded")
    return command.removesuffix(JAVA_COMMAND).strip("/")


def _java_command(file: BinaryIO) -> str | None:
    """The uppermost, since a JDK may hold a second one below jre; without a leading `./`."""
    if file.read(2) == b"PK":
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    else:
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r|*") as packed:
            names = [member.name for member in packed if member.isfile() or member.issym()]
    found = {os.path.normpath(name) for name in names if f"/{name}".endswith(f"/{JAVA_COMMAND}")}
    return min(found, key=lambda name: (name.count("/"), name), default=None)
