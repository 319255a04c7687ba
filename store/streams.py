"""Files of HDFS as Python's: read in pieces that survive a lost DataNode, written by way of a local file."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from threading import Condition, Thread
from typing import Any, BinaryIO

from urllib3.exceptions import HTTPError

from store.errors import StoreError
from store.namenodes import Attempt, NameNodes
from store.refusals import CutError, origin

PIECE_BYTES = 1 << 20
IN_MEMORY_BYTES = 4 << 20  # what is smaller is not written to the local disk on its way up


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which file a path leads to: another one at the same path has other blocks."""

    bytes: int
    first_block: int | None


class RemoteFile(io.RawIOBase):
    """A file of HDFS, read from wherever one seeks to. After a cut it goes on at the same byte of the same file."""

    def __init__(self, namenodes: NameNodes, path: str, *, absolute: str) -> None:
        self._namenodes = namenodes
        self._path = path
        self._absolute = absolute
        self._position = 0
        self._response: Any = None
        # Opened at once: what replaces the file from now on is not what is read.
        self._identity, self._response = namenodes.call(self._opened, path=path, what="read")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._identity.bytes}[whence]
        if start + offset < 0:
            raise ValueError(f"{start + offset} is before the file's first byte")
        if start + offset != self._position:
            self._drop()
            self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self._identity.bytes - self._position)
        if wanted <= 0:
            return 0
        piece = self._namenodes.call(lambda attempt: self._piece(attempt, wanted), path=self._path, what="read")
        view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def close(self) -> None:
        self._drop()
        super().close()

    def _piece(self, attempt: Attempt, wanted: int) -> bytes:
        if self._response is None:
            identity, self._response = self._opened(attempt)
            if identity != self._identity:
                raise StoreError(f"{self._namenodes.url}/{self._path} was replaced while it was read; read it again")
        address = origin(self._response.url)
        try:
            piece: bytes = self._response.raw.read(wanted)
        except (HTTPError, HTTPException, OSError):
            self._drop()
            raise CutError(address) from None
        if not piece:
            self._drop()
            raise CutError(address)
        return piece

    def _opened(self, attempt: Attempt) -> tuple[Identity, Any]:
        response = attempt.client._open(self._absolute, offset=self._position, **attempt.avoiding)
        try:
            # Asked afterwards: blocks do not come back, so these are the ones that were opened, or it is a later file.
            located = block_locations(attempt.client, self._absolute)
            if located["isUnderConstruction"]:
                raise StoreError(
                    f"{self._namenodes.url}/{self._path} was never closed: its writer is still at it, or died; "
                    f"wait for it, or write it again"
                )
            first = next(iter(located["locatedBlocks"]), None)
            identity = Identity(bytes=located["fileLength"], first_block=first and first["block"]["blockId"])
            sent = response.headers.get("content-length")
            if sent is not None and int(sent) != max(0, identity.bytes - self._position):
                raise CutError(origin(response.url))  # it was replaced between the two requests
        except BaseException:
            response.close()
            raise
        return identity, response

    def _drop(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None


def block_locations(client: Any, absolute: str) -> dict[str, Any]:
    """Of the first block only. Unlike a status they tell if the file is closed; hdfs has no method for this request."""
    from hdfs.client import _Request

    answer = _Request("GET").to_method("GET_BLOCK_LOCATIONS")(client, absolute, offset=0, length=0)
    located: dict[str, Any] = answer.json()["LocatedBlocks"]
    return located


class DiscardedError(Exception):
    """Ends the sending of a file that nobody wants any more."""


class Upload(io.RawIOBase):
    """A new file: sent while it is written, and kept locally, so that sending can begin anew when a DataNode dies.

    What is small is kept in memory, and sent when it is closed.
    """

    def __init__(self, send: Callable[[Callable[[], Iterator[bytes]]], None], *, folder: Path) -> None:
        self._send = send
        self._folder = folder
        self._small = io.BytesIO()
        self._kept: io.FileIO | None = None
        self._bytes = 0
        self._progress = Condition()
        self._is_ended = self._is_discarded = False
        self._sender: Thread | None = None
        self._failure: BaseException | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self._failure is not None:
            raise self._failure
        view = memoryview(data).cast("B")
        if self._kept is None and self._bytes + len(view) <= IN_MEMORY_BYTES:
            self._small.write(view)
            self._bytes += len(view)
        else:
            self._keep(view)
        return len(view)

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        try:
            if self._sender is None:
                self._small.seek(0)
                self._send(lambda: iter([self._small.getvalue()] if self._bytes else []))
            else:
                self._end()
        except BaseException:
            self._is_discarded = True
            raise
        finally:
            self._end()
        if self._failure is not None:
            raise self._failure

    def discard(self) -> None:
        """Close without sending."""
        if not self.closed:
            super().close()
            self._is_discarded = True
            self._end()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            self.discard()
        self.close()

    def __del__(self) -> None:
        self.discard()  # and not `close`: what was forgotten half-written is not sent

    def _keep(self, view: memoryview) -> None:
        if self._kept is None:
            # Without a name, so that nothing stays of it whatever happens.
            self._kept = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115  # see _end
            self._small, small = io.BytesIO(), self._small.getbuffer()
            self._bytes = 0
            self._keep(small)
            self._sender = Thread(target=self._send_along, name="upload", daemon=True)
            self._sender.start()
        while view:
            written = self._kept.write(view)
            view = view[written:]
            with self._progress:
                self._bytes += written
                self._progress.notify()

    def _send_along(self) -> None:
        try:
            self._send(self._follow)
        except BaseException as error:
            self._failure = error

    def _follow(self) -> Iterator[bytes]:
        """From the first byte on, waiting for what is not written yet."""
        position = 0
        while True:
            with self._progress:
                while self._bytes == position and not self._is_ended:
                    self._progress.wait()
                size = min(PIECE_BYTES, self._bytes - position)
            if self._is_discarded or self._kept is None:
                raise DiscardedError
            if not size:
                return
            piece = os.pread(self._kept.fileno(), size, position)
            position += len(piece)
            yield piece

    def _end(self) -> None:
        with self._progress:
            self._is_ended = True
            self._progress.notify()
        if self._sender is not None:
            self._sender.join()
        if self._kept is not None:
            self._kept.close()


def pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece
