"""What a published directory holds: every file with its rows and checksum, so that a missing one is noticed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec

from store.errors import StoreError
from store.protocol import Store

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The parts in order, and what else the writer wants to be known (`facts`)."""

    parts: tuple[Part, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    def encode(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def read_manifest(store: Store, path: str) -> Manifest:
    """The manifest of a published directory, checked against the names and sizes that lie there."""
    manifest = decode_manifest(store, path)
    there = _files(store, path)
    there.pop(MANIFEST, None)
    listed = {part.name: part.bytes for part in manifest.parts}
    for name in sorted(there.keys() | listed.keys()):
        if there.get(name) != listed.get(name):
            raise StoreError(
                f"{store.url}/{path}/{name}: {_size(there.get(name))}, but {MANIFEST} lists {_size(listed.get(name))}; "
                f"remove {path} and run again"
            )
    return manifest


def decode_manifest(store: Store, path: str) -> Manifest:
    """The manifest as it is written, compared with nothing."""
    try:
        return msgspec.json.decode(store.read(f"{path}/{MANIFEST}"), type=Manifest)
    except msgspec.DecodeError as error:
        raise StoreError(f"{store.url}/{path}/{MANIFEST} is damaged ({error}); remove {path} and run again") from None


def verify_checksums(store: Store, path: str, manifest: Manifest) -> None:
    """Read every part once and compare its SHA-256."""
    for part in manifest.parts:
        with store.open(f"{path}/{part.name}") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        if digest != part.sha256:
            raise StoreError(
                f"{store.url}/{path}/{part.name}: SHA-256 {digest[:12]}... is not the {part.sha256[:12]}... "
                f"of {MANIFEST}; remove {path} and run again"
            )


def _files(store: Store, path: str, within: str = "") -> dict[str, int]:
    """Every file below a directory with its size."""
    found: dict[str, int] = {}
    for entry in store.list(f"{path}/{within}".rstrip("/")):
        name = f"{within}{entry.name}"
        found |= _files(store, path, f"{name}/") if entry.is_directory else {name: entry.bytes}
    return found


def _size(found: int | None) -> str:
    return "no such file" if found is None else f"{found} bytes"
