"""The store that the settings name: a directory, or HDFS. Imports nothing that trains, as Tab needs it too."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from pipeline.settings import Settings
from store.local import LocalStore
from store.protocol import Store
from store.retry import Patience

GB = 1_000_000_000


def open_store(settings: Settings, *, retry_seconds: float | None = None) -> Store:
    """Asks nobody anything yet. `retry_seconds` instead of what the settings say, for those who cannot wait."""
    given = settings.store
    address = urlsplit(given.url)
    if address.scheme == "file":
        return LocalStore(Path(unquote(address.path)))
    from store.addresses import place_of
    from store.namenodes import Access
    from store.webhdfs import WebHdfsStore

    return WebHdfsStore(
        place_of(given.url, namenodes=given.namenodes),
        Access(
            security=given.security,
            user=given.user,
            certificates=given.certificates,
            patience=Patience(seconds=given.retry_seconds if retry_seconds is None else retry_seconds),
        ),
        cache=settings.main.cache,
        most_cached_bytes=int(given.cache_gb * GB),
    )
