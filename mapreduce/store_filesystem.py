"""mrjob's view of a store on HDFS: by WebHDFS, where mrjob itself would start a JVM for every question."""

from __future__ import annotations

import fnmatch
import shutil
from collections.abc import Iterator

from mrjob.fs.base import Filesystem

from store.protocol import Store


class StoreFilesystem(Filesystem):
    """What lies below the store's own address, by whole URIs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def can_handle_path(self, path: str) -> bool:
        return path.startswith(self._store.url + "/")

    def ls(self, path_glob: str) -> Iterator[str]:
        folder, _, pattern = path_glob.rstrip("/").rpartition("/")
        for entry in self._store.list(self._within(folder)):
            if fnmatch.fnmatchcase(entry.name, pattern):
                path = f"{folder}/{entry.name}"
                if entry.is_directory:
                    yield from self.ls(f"{path}/*")
                else:
                    yield path

    def exists(self, path_glob: str) -> bool:
        return next(self.ls(path_glob), None) is not None

    def mkdir(self, path: str) -> None:
        """A file that is written brings the directories it needs."""

    def put(self, src: str, path: str) -> None:
        with open(src, "rb") as file, self._store.create(self._within(path)) as target:
            shutil.copyfileobj(file, target, 1 << 20)

    def rm(self, path_glob: str) -> None:
        self._store.remove(self._within(path_glob))

    def _cat_file(self, path: str) -> Iterator[bytes]:
        with self._store.open(self._within(path)) as file:
            while block := file.read(1 << 20):
                yield block

    def _within(self, path: str) -> str:
        return path.removeprefix(self._store.url).strip("/")
