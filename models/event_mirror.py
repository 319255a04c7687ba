"""An event log that grows on HDFS, copied to where it can be read line by line: each time what is new."""

from __future__ import annotations

from pathlib import Path

from store.errors import TrialError
from store.protocol import Store


class EventMirror:
    def __init__(self, store: Store, path: str, folder: Path) -> None:
        self._store = store
        self._path = path
        self._folder = folder

    def fetch(self) -> None:
        self._fetch(self._path, self._folder)

    def log_of(self, application: str) -> Path:
        found = next(self._folder.glob(f"*{application}*"), None)
        if found is None:
            raise TrialError(f"{self._store.url}/{self._path} has no event log of {application}")
        return found

    def _fetch(self, path: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for entry in self._store.list(path):
            below, target = f"{path}/{entry.name}", folder / entry.name
            if entry.is_directory:
                self._fetch(below, target)
                continue
            have = target.stat().st_size if target.exists() else 0
            with target.open("ab") as file:
                file.write(self._store.tail(below, have))
