"""How a store is reached: all that a process needs to open it, so that one process can hand it to another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

from store.local import LocalStore
from store.protocol import Store

if TYPE_CHECKING:
    from store.namenodes import Access
    from store.webhdfs import WebHdfsStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Where a store is, and who we are to it; all but the first is for HDFS."""

    url: str
    namenodes: tuple[str, ...] = ()
    security: Literal["kerberos", "insecure"] = "kerberos"
    user: str = ""
    certificates: Path | None = None
    retry_seconds: float = 120.0
    cache: Path = Path()
    most_cached_bytes: int = 20_000_000_000

    @property
    def is_on_hdfs(self) -> bool:
        return urlsplit(self.url).scheme != "file"

    @property
    def access(self) -> Access:
        """To HDFS, and to YARN, which asks the same of us."""
        from store.namenodes import Access
        from store.retry import Patience

        return Access(
            security=self.security,
            user=self.user,
            certificates=self.certificates,
            patience=Patience(seconds=self.retry_seconds),
        )


def resolved(reach: Reach) -> Reach:
    """With the addresses that are found here: a node's own configuration may be another one, or none."""
    if not reach.is_on_hdfs:
        return reach
    from store.addresses import place_of

    return replace(reach, namenodes=place_of(reach.url, namenodes=reach.namenodes).namenodes)


def opened(reach: Reach) -> Store:
    """Asks nobody anything yet."""
    if not reach.is_on_hdfs:
        return LocalStore(Path(unquote(urlsplit(reach.url).path)))
    return opened_on_hdfs(reach)


def opened_on_hdfs(reach: Reach) -> WebHdfsStore:
    from store.addresses import place_of
    from store.webhdfs import WebHdfsStore

    return WebHdfsStore(
        place_of(reach.url, namenodes=reach.namenodes),
        reach.access,
        cache=reach.cache,
        most_cached_bytes=reach.most_cached_bytes,
    )
