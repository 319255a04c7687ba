"""Spark's event logs as files: which belong to one log, how they are compressed, and their lines one by one."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from store.errors import DataError

CHUNK_BYTES = 1 << 20
COMPRESSED_CHUNK_BYTES = 1 << 16
LONGEST_LINE_BYTES = 64 << 20  # of an event that is read; others may be of any length
ROLLED = re.compile(r"events_(\d{1,18})_")
PLAIN = re.compile(rb'\s*\{\s*"Event"\s*:')
# The first bytes tell more than a name that was changed.
MAGIC = {b"\x28\xb5\x2f\xfd": "zstd", b"LZ4Block": "lz4", b"\x1f\x8b": "gzip", b"\x04\x22\x4d\x18": "lz4 frame"}
ARROW_NAMES = {"zstd": "zstd", "gzip": "gzip", "lz4 frame": "lz4"}
CODECS = {b"\x82SNAPPY\0": "snappy", b"ZV\0": "lzf", b"ZV\1": "lzf"}
ARCHIVES = {b"PK\3\4": "a ZIP archive", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz"}
# LZ4BlockOutputStream: magic, method and level, compressed and decompressed length, checksum; then the block.
BLOCK = struct.Struct("<8sBiii")
STORED, COMPRESSED, LEVEL_BASE = 0x10, 0x20, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFiles:
    """One application's log: a single file, or the files of a rolling directory in their order."""

    path: Path
    files: tuple[Path, ...]
    compacted: bool = False  # Spark dropped events of jobs that had ended

    @classmethod
    def at(cls, path: Path) -> LogFiles:
        if path.is_dir():
            return cls._rolling(path)
        if not path.is_file():
            raise DataError(f"{path}: no such file or directory; give an event log or a directory with event logs")
        return cls(path=path, files=(path,))

    @classmethod
    def _rolling(cls, path: Path) -> LogFiles:
        numbered = sorted(_rolled_files(path))
        if not numbered:
            raise DataError(f"{path} is no event log: a rolling one has files events_<n>_<application>")
        compact = [number for number, kept, _ in numbered if kept]
        # A compacted file stands for itself and all before it.
        first = compact[-1] if compact else -1
        files = [file for number, kept, file in numbered if number > first or (kept and number == first)]
        return cls(path=path, files=tuple(files), compacted=bool(compact))


def is_rolling(folder: Path) -> bool:
    return any(True for _ in _rolled_files(folder))


def _rolled_files(folder: Path) -> Iterator[tuple[int, bool, Path]]:
    for file in folder.iterdir():
        if (match := ROLLED.match(file.name)) and file.is_file() and not file.name.endswith(".crc"):
            yield int(match[1]), file.name.endswith(".compact"), file


def looks_like_a_log(file: Path) -> bool:
    """Whether a file that lies in a directory beside others is meant; a codec that is not read is told, too."""
    with file.open("rb") as raw:
        head = raw.read(16)
    if any(head.startswith(magic) for magic in CODECS):
        return True
    try:
        return PLAIN.match(next(_chunks(file), b"")) is not None
    except DataError:
        return False


class Lines:
    """The lines of a log, first to last. Afterwards `cut` says whether the last one was not whole."""

    def __init__(self, log: LogFiles) -> None:
        self._log = log
        self.cut = False

    def __iter__(self) -> Iterator[tuple[Path, int, bytes]]:
        """File, number of the line in it, the line. A line that begins no event is given in part, if it is long."""
        if not any(file.stat().st_size for file in self._log.files):
            raise DataError(f"{self._log.path} is empty: Spark wrote no event; was the application ever started?")
        for file, following in zip_longest(self._log.files, self._log.files[1:]):
            yield from self._of(file)
            if self.cut and following is not None:
                raise DataError(
                    f"{file} ends in the middle of a line and {following.name} follows it: the log is damaged; copy "
                    f"it again from where Spark wrote it"
                )

    def _of(self, file: Path) -> Iterator[tuple[Path, int, bytes]]:
        number, rest, size = 0, [b""], 0
        for chunk in _chunks(file):
            first, *lines = chunk.split(b"\n")
            if size < LONGEST_LINE_BYTES:
                rest.append(first)
                size += len(first)
            if not lines:
                continue
            number += 1
            yield file, number, b"".join(rest)
            for line in lines[:-1]:
                number += 1
                yield file, number, line
            rest, size = [lines[-1]], len(lines[-1])
        # What a killed application was writing; a stream that ends within its codec ends within a line, mostly.
        self.cut = any(rest) or self.cut


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as raw:
        head = raw.read(16)
        raw.seek(0)
        codec = next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)
        if codec == "lz4":
            yield from _lz4_blocks(file, raw)
        elif codec is not None:
            yield from _decompressed(file, ARROW_NAMES[codec])
        else:
            _refuse_unknown(file, head)
            while chunk := raw.read(CHUNK_BYTES):
                yield chunk


def _refuse_unknown(file: Path, head: bytes) -> None:
    for magic, name in CODECS.items():
        if head.startswith(magic):
            raise DataError(
                f"{file} is compressed with {name}, which is not read here (zstd, lz4 and gzip are); decompress it "
                f"with Spark's {name} codec, and set spark.eventLog.compression.codec=zstd for what comes"
            )
    for magic, name in ARCHIVES.items():
        if head.startswith(magic):
            raise DataError(f"{file} is {name}; unpack it first and give what was in it")


def _decompressed(file: Path, codec: str) -> Iterator[bytes]:
    """Frame after frame. Of a file that was cut, all that its bytes still tell."""
    import pyarrow as pa

    given = 0
    try:
        with pa.CompressedInputStream(pa.OSFile(str(file)), codec) as stream:
            while chunk := stream.read(COMPRESSED_CHUNK_BYTES):
                given += len(chunk)
                yield chunk
    except OSError as error:
        if "Truncated" not in str(error):
            raise DataError(
                f"{file}: its {codec} data is damaged after {given} decompressed bytes; copy it again"
            ) from None
        yield from _last_bytes(file, codec, skip=given)


def _last_bytes(file: Path, codec: str, *, skip: int) -> Iterator[bytes]:
    """Arrow drops the part of a read that came before the cut, so the last part is read byte by byte."""
    import pyarrow as pa

    last = bytearray()
    with pa.CompressedInputStream(pa.OSFile(str(file)), codec) as stream:
        while skip:
            skip -= len(stream.read(min(skip, COMPRESSED_CHUNK_BYTES)))
        try:
            while byte := stream.read(1):
                last += byte
        except OSError:
            yield bytes(last)


def _lz4_blocks(file: Path, raw: BinaryIO) -> Iterator[bytes]:
    """Spark's own framing, not the lz4 program's. Streams may follow each other; an empty block ends each."""
    import pyarrow as pa

    codec, at = pa.Codec("lz4_raw"), 0
    while head := raw.read(BLOCK.size):
        if len(head) < BLOCK.size:
            return
        magic, token, compressed, plain, _ = BLOCK.unpack(head)
        method, longest = token & 0xF0, 1 << (LEVEL_BASE + (token & 0x0F))
        if (
            magic != b"LZ4Block"
            or method not in (STORED, COMPRESSED)
            or not 0 <= plain <= longest
            or not 0 <= compressed <= longest
            or (method == STORED and compressed != plain)
        ):
            raise DataError(f"{file}: its lz4 block at byte {at} is damaged; copy it again")
        block = raw.read(compressed)
        if len(block) < compressed:
            return
        if plain:
            try:
                yield block if method == STORED else codec.decompress(block, plain, asbytes=True)
            except OSError:
                raise DataError(f"{file}: its lz4 block at byte {at} is damaged; copy it again") from None
        at += BLOCK.size + compressed
