"""A store on HDFS, by WebHDFS: published by renames that the NameNode carries out as a whole or not at all."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import msgspec

from store.addresses import SEGMENT, Place
from store.downloads import Downloads
from store.errors import StoreError
from store.manifest import MANIFEST, decode_manifest
from store.namenodes import Access, Attempt, NameNodes, Refusal
from store.protocol import Entry
from store.publish import DEEPEST, TEMPORARY, is_abandoned, temporary_name
from store.refusals import AnsweredError
from store.slug import slug
from store.streams import PIECE_BYTES, RemoteFile, Upload, pieces

AT_ONCE = 8  # requests side by side, of a cluster that is other people's too
MOST_AHEAD = 8 * AT_ONCE  # files that are read before somebody takes them
NOT_THERE = "FileNotFoundException"
THERE_ALREADY = "FileAlreadyExistsException"
T = TypeVar("T")


class Status(msgspec.Struct, rename={"id": "fileId", "name": "pathSuffix", "modified_ms": "modificationTime"}):
    """One entry of WebHDFS's listings. The id is the NameNode's own, and a rename keeps it."""

    id: int
    name: str
    type: str
    length: int
    modified_ms: int

    @property
    def is_directory(self) -> bool:
        return self.type == "DIRECTORY"


class _One(msgspec.Struct):
    FileStatus: Status


class _Statuses(msgspec.Struct):
    FileStatus: list[Status]


class _Listing(msgspec.Struct):
    FileStatuses: _Statuses


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    path: str
    status: Status


class WebHdfsStore:
    def __init__(self, place: Place, access: Access, *, cache: Path, most_cached_bytes: int) -> None:
        self._place = place
        self._namenodes = NameNodes(place.url, place.namenodes, access)
        self._cache = cache / "hdfs" / slug(place.url)
        self._downloads = Downloads(self._cache, most_bytes=most_cached_bytes)

    @property
    def url(self) -> str:
        return self._place.url

    def list(self, path: str) -> list[Entry]:
        return [
            Entry(name=each.name, bytes=each.length, is_directory=each.is_directory)
            for each in self.statuses(path)
            if not each.name.startswith(".")
        ]

    def statuses(self, path: str) -> Sequence[Status]:
        """Of all that lies in a directory, hidden things too, by one request however many there are."""
        absolute = self._path(path)
        try:
            content = self._call(lambda attempt: attempt.client._list_status(absolute).content, path, "listed")
        except Refusal as refusal:
            if refusal.failure.name == NOT_THERE:
                return []
            raise
        statuses = self._decoded(content, path, _Listing).FileStatuses.FileStatus
        if len(statuses) == 1 and not statuses[0].name:
            raise StoreError(f"{self.url}/{path} cannot be listed: it is a file")
        return sorted(statuses, key=lambda status: status.name)

    def status(self, path: str) -> Status | None:
        """Of what lies there: more than `Entry` has. None where there is nothing."""
        absolute = self._path(path)
        try:
            content = self._call(lambda attempt: attempt.client._get_file_status(absolute).content, path, "read")
        except Refusal as refusal:
            if refusal.failure.name == NOT_THERE:
                return None
            raise
        return self._decoded(content, path, _One).FileStatus

    def exists(self, path: str) -> bool:
        return self.status(path) is not None

    def read(self, path: str) -> bytes:
        with self.open(path) as file:
            return file.read()

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            # Not all at once: what nobody has taken yet lies in memory.
            for start in range(0, len(paths), MOST_AHEAD):
                yield from pool.map(self.read, paths[start : start + MOST_AHEAD])

    def open(self, path: str) -> BinaryIO:
        raw = RemoteFile(self._namenodes, path, absolute=self._path(path))
        return cast(BinaryIO, io.BufferedReader(raw, PIECE_BYTES))

    def tail(self, path: str, start: int) -> bytes:
        """The NameNode knows only the whole blocks of a file that is not closed; a DataNode tells the rest."""
        absolute, status = self._path(path), self.status(path)
        if status is None:
            raise StoreError(f"{self.url}/{path} is not there")
        # An offset at or beyond the whole blocks is refused, unless there is none yet.
        first = min(start, max(0, status.length - 1)) if status.length else start

        def read(attempt: Attempt) -> bytes:
            with attempt.client._open(absolute, offset=first, **attempt.avoiding) as response:
                found: bytes = response.content
                return found

        return self._call(read, path, "read")[start - first :]

    def create(self, path: str) -> BinaryIO:
        absolute = self._path(path)
        if self.status(path) is not None:
            raise StoreError(f"{self.url}/{path} cannot be written: it is there already")
        try:
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self._cache} cannot be made: {error.strerror}; set yarnstick.cache") from None
        return cast(BinaryIO, Upload(lambda source: self._send(source, absolute, shown=path), folder=self._cache))

    def write(self, path: str, data: bytes) -> None:
        self._path(path)
        parent, _, _ = path.rpartition("/")
        temporary = f"{parent}/{temporary_name()}" if parent else temporary_name()
        try:
            self._send(lambda: iter([data] if data else []), self._path(temporary), shown=path)
            if not self._rename(temporary, path, option="OVERWRITE"):
                raise StoreError(f"{self.url}/{path} cannot be written: a directory of this name is there")
        except BaseException:
            with suppress(StoreError):
                self.remove(temporary)
            raise

    def rename(self, source: str, target: str) -> bool:
        parent, _, _ = target.rpartition("/")
        if source.rpartition("/")[0] != parent:
            self._call(lambda attempt: attempt.client._mkdirs(self._path(parent)), target, "published")
        return self._rename(source, target, option="NONE")

    def remove(self, path: str) -> None:
        absolute = self._path(path)
        # A removal whose answer was lost is repeated only while the same thing lies there.
        is_ours_alone = path.rpartition("/")[2].startswith(TEMPORARY)
        there = None if is_ours_alone else self.status(path)
        if there is None and not is_ours_alone:
            return

        def removed(attempt: Attempt) -> None:
            if attempt.number == 1 or there is None or self._identity(attempt, absolute) == there.id:
                attempt.client._delete(absolute, recursive="true")

        self._call(removed, path, "removed")

    def local(self, path: str) -> Path:
        status = self.status(path)
        if status is None:
            raise StoreError(f"{self.url}/{path} is not there")
        files = list(self._files(path)) if status.is_directory else [_Found(path=path, status=status)]
        name = path.rpartition("/")[2] or "store"

        def fetch(target: Path) -> None:
            checksums = self._checksums(path)
            for file in files:
                within = file.path.removeprefix(path).lstrip("/")
                self._download(file.path, target / within, checksums.get(file.path))

        return self._downloads.copy(
            f"{status.id}-{status.modified_ms}-{status.length}",
            name,
            bytes=sum(file.status.length for file in files),
            fetch=fetch,
        )

    def leftovers(self) -> tuple[Entry, ...]:
        found = [
            each
            for each in self._temporary("", DEEPEST)
            if is_abandoned(each.status.name, modified=each.status.modified_ms / 1000)
        ]
        return tuple(
            Entry(name=each.path, bytes=self._all_bytes(each.path), is_directory=each.status.is_directory)
            for each in found
        )

    def collect(self) -> int:
        found = self.leftovers()
        for leftover in found:
            self.remove(leftover.name)
        return len(found)

    def _send(self, source: Callable[[], Iterator[bytes]], absolute: str, *, shown: str) -> None:
        """The name is ours alone, so a second attempt may overwrite what the first one left."""
        shown = "/".join("..." if segment.startswith(TEMPORARY) else segment for segment in shown.split("/"))

        def sent(attempt: Attempt) -> None:
            overwrite = "true" if attempt.number > 1 else "false"
            answer = attempt.client._create(absolute, overwrite=overwrite, **attempt.avoiding)
            location = answer.headers.get("location")
            if location is None:
                raise StoreError(
                    f"{self.url}/{shown} cannot be written: {attempt.client.url} named no DataNode to send to"
                )
            attempt.client._request("PUT", location, data=source())

        self._call(sent, shown, "written")

    def _rename(self, source: str, target: str, *, option: str) -> bool:
        """Publish by one rename; False where the target is there already and stays."""
        origin, destination = self._path(source), self._path(target)
        ours = self.status(source)
        if ours is None:
            raise StoreError(f"{self.url}/{target} cannot be published: {source} is gone; run again")

        def renamed(attempt: Attempt) -> bool:
            if attempt.number > 1 and self._identity(attempt, destination) == ours.id:
                return True  # an earlier attempt did it, and its answer was lost
            answer = attempt.client._rename(origin, destination=destination, renameoptions=option)
            if answer.content and self._identity(attempt, destination) != ours.id:
                self._refuse_old_rename(attempt, destination, source, target)
            return True

        try:
            return self._call(renamed, target, "published")
        except Refusal as refusal:
            there = self.status(target)
            if there is not None and there.id == ours.id:
                return True
            if there is not None and (refusal.failure.name == THERE_ALREADY or there.is_directory != ours.is_directory):
                return False
            raise

    def _refuse_old_rename(self, attempt: Attempt, destination: str, source: str, target: str) -> None:
        """The server knows only the rename without options, which moves into a directory that is there."""
        attempt.client._delete(f"{destination}/{source.rpartition('/')[2]}", recursive="true")
        raise StoreError(
            f"{self.url}/{target} cannot be published: {attempt.client.url} knows no renameoptions, like HttpFS; "
            f"set yarnstick.store.namenodes to the NameNode's own HTTP address"
        )

    def _identity(self, attempt: Attempt, absolute: str) -> int | None:
        """Of what lies there now, asked within an attempt."""
        try:
            found = msgspec.json.decode(attempt.client._get_file_status(absolute).content, type=_One).FileStatus
        except AnsweredError as error:
            if error.name == NOT_THERE:
                return None
            raise
        return found.id

    def _decoded(self, content: bytes, path: str, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise StoreError(
                f"{self.url}/{path}: the answer is not WebHDFS's ({error}); correct yarnstick.store.url or "
                f"yarnstick.store.namenodes (tried {', '.join(self._place.namenodes)})"
            ) from None

    def _download(self, path: str, target: Path, expected: str | None) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with self.open(path) as file, target.open("xb") as copy:
            for piece in pieces(file):
                digest.update(piece)
                copy.write(piece)
        if expected not in (None, digest.hexdigest()):
            raise StoreError(
                f"{self.url}/{path}: SHA-256 {digest.hexdigest()[:12]}... is not the {str(expected)[:12]}... of "
                f"{MANIFEST}; remove the directory and run again"
            )

    def _checksums(self, path: str) -> dict[str, str]:
        """Of the published directory that `path` is or lies in, by whole paths; empty where it lies in none."""
        segments = path.split("/")
        for folder in ("/".join(segments[:length]) for length in range(len(segments), 0, -1)):
            if self.exists(f"{folder}/{MANIFEST}"):
                return {f"{folder}/{part.name}": part.sha256 for part in decode_manifest(self, folder).parts}
        return {}

    def _files(self, path: str) -> Iterator[_Found]:
        for status in self.statuses(path):
            below = f"{path}/{status.name}"
            if status.is_directory:
                yield from self._files(below)
            else:
                yield _Found(path=below, status=status)

    def _temporary(self, path: str, levels: int) -> Iterator[_Found]:
        """By a request for each directory that something can be published in, not for each that was."""
        for status in self.statuses(path):
            below = f"{path}/{status.name}".lstrip("/")
            if status.name.startswith(TEMPORARY):
                yield _Found(path=below, status=status)
            elif status.is_directory and levels > 1 and not status.name.startswith("."):
                yield from self._temporary(below, levels - 1)

    def _all_bytes(self, path: str) -> int:
        absolute = self._path(path)
        summary = self._call(lambda attempt: attempt.client._get_content_summary(absolute).json(), path, "read")
        return int(summary["ContentSummary"]["length"])

    def _call(self, operate: Callable[[Attempt], T], path: str, what: str) -> T:
        return self._namenodes.call(operate, path=path, what=what)

    def _path(self, path: str) -> str:
        segments = path.split("/") if path else []
        if path.startswith("/") or ".." in segments:
            raise StoreError(f"{path} is not a path inside {self.url}")
        if not all(SEGMENT.fullmatch(segment) for segment in segments):
            raise StoreError(f"{path} is not a path that HDFS takes: no ':', no pattern, no empty segment")
        return "/".join([self._place.root, *segments]) or "/"
