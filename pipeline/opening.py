"""The store that the settings name, a directory or HDFS, and their YARN. Imports nothing that trains: Tab needs it."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pipeline.settings import Settings
from store.opening import Reach, opened, opened_on_hdfs
from store.protocol import Store
from yarn.shipped import PYTHON

if TYPE_CHECKING:
    from store.webhdfs import WebHdfsStore
    from yarn.resource_manager import ResourceManager

SHIPPED_PYTHON = f"{PYTHON}/bin/python"  # where python_archive is unpacked on the nodes
GB = 1_000_000_000


def open_store(settings: Settings, *, retry_seconds: float | None = None) -> Store:
    """Asks nobody anything yet. `retry_seconds` instead of what the settings say, for those who cannot wait."""
    return opened(reach(settings, retry_seconds=retry_seconds))


def reach(settings: Settings, *, retry_seconds: float | None = None) -> Reach:
    """What the settings say of the store, for a process of its own to open it."""
    given = settings.store
    return Reach(
        url=given.url,
        namenodes=given.namenodes,
        security=given.security,
        user=given.user,
        certificates=given.certificates,
        retry_seconds=given.retry_seconds if retry_seconds is None else retry_seconds,
        cache=settings.main.cache,
        most_cached_bytes=int(given.cache_gb * GB),
    )


def open_elsewhere(settings: Settings, address: str) -> tuple[WebHdfsStore, str]:
    """The whole HDFS that an address is on, and the path there: as whom, and how, is as with the store."""
    parts, own = urlsplit(address), urlsplit(settings.store.url)
    is_same = (parts.scheme, parts.netloc) == (own.scheme, own.netloc)
    elsewhere = replace(
        reach(settings),
        url=f"{parts.scheme}://{parts.netloc}",
        namenodes=settings.store.namenodes if is_same else (),
    )
    return opened_on_hdfs(elsewhere), parts.path.strip("/")


def open_resource_manager(settings: Settings) -> ResourceManager:
    """Asks nobody anything yet; SettingError where nothing says where YARN is."""
    from yarn.resource_manager import ResourceManager

    return ResourceManager.of(settings.hadoop.resource_managers, reach(settings).access)


def node_python(settings: Settings) -> str:
    """The Python of the nodes."""
    given = settings.hadoop
    return given.python or (SHIPPED_PYTHON if given.python_archive else sys.executable)
