"""What went wrong between us and HDFS, by the name of Hadoop's exception, and whether trying again can help."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

# The answer of another NameNode, or of the same one a little later, may be a better one.
ASK_ANOTHER = {"StandbyException", "ObserverRetryOnActiveException"}
PASSING = {
    "RetriableException",
    "SafeModeException",
    "ServerTooBusyException",
    # What a DataNode says of its own calls while the NameNode is away, or of blocks whose DataNodes are.
    "BlockMissingException",
    "ClosedChannelException",
    "ConnectException",
    "ConnectTimeoutException",
    "EOFException",
    "NoRouteToHostException",
    "SocketException",
    "SocketTimeoutException",
}
PASSING_TEXTS = (
    "Failed to find datanode",
    "No active and not excluded nodes",
    "could only be written to",
    "NameNode still not started",
)
SAFE_MODE = ("SafeModeException", "is in safe mode", "Name node is in safe mode")
NO_ROOM = ("could only be written to", "are bad. Aborting")
QUOTA = re.compile(r"(DS|NS)?Quota(ByStorageType)?ExceededException")
SECRET = re.compile(r"\b(delegation|token)=[^&\s\"'<>]+", re.IGNORECASE)
LONGEST_MESSAGE = 300


class _Remote(msgspec.Struct, rename={"name": "exception"}):
    name: str = ""
    message: str = ""


class _Body(msgspec.Struct):
    RemoteException: _Remote


class AnsweredError(Exception):
    """An answer that is no success, with Hadoop's name of the reason if it has one."""

    def __init__(self, *, status: int, body: bytes, address: str) -> None:
        try:
            remote = msgspec.json.decode(body, type=_Body).RemoteException
        except msgspec.DecodeError:
            remote = _Remote()
        super().__init__(f"{status} {remote.name}")
        self.status = status
        self.name = remote.name
        self.message = plain(remote.message)
        self.address = address


class CutError(Exception):
    """An answer that ended before it was complete."""

    def __init__(self, address: str) -> None:
        super().__init__("cut")
        self.address = address


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One attempt that failed."""

    address: str  # that was tried
    reason: str  # goes after the address in a sentence
    name: str = ""  # of Hadoop's exception
    message: str = ""
    again: bool = False  # trying again can help
    unreachable: bool = False  # no connection came about, so nothing can have been carried out
    unsure: bool = False  # it may have been carried out, the answer did not arrive
    unwelcome: bool = False  # we are not whom we have to be

    @property
    def safe_mode(self) -> bool:
        return any(text in f"{self.name} {self.message}" for text in SAFE_MODE)

    @property
    def no_room(self) -> bool:
        """No DataNode keeps what is written: all are full, or gone."""
        return any(text in self.message for text in NO_ROOM)

    @property
    def standby(self) -> bool:
        return self.name in ASK_ANOTHER


def failure_of(error: Exception, *, asked: str) -> Failure | None:
    """None for an error that is not of the connection; `asked` is the NameNode's address.

    The text of an exception of requests is never shown: it may hold an address with a delegation token.
    """
    import requests
    import urllib3

    if isinstance(error, AnsweredError):
        return _answered(error)
    if isinstance(error, CutError):
        return Failure(address=error.address, reason="cut the connection", again=True, unsure=True)
    if not isinstance(error, requests.RequestException | urllib3.exceptions.HTTPError):
        return None
    request = getattr(error, "request", None)
    address = origin(request.url) if request is not None and request.url else asked
    text = str(error)
    if isinstance(error, requests.exceptions.SSLError) and "CERTIFICATE_VERIFY_FAILED" in text:
        reason = "shows a certificate that is not trusted (yarnstick.store.certificates names the trusted ones)"
        return Failure(address=address, reason=reason)
    if isinstance(error, requests.exceptions.InvalidSchema | requests.exceptions.InvalidURL):
        return Failure(address=asked, reason="sends on to an address that is not https, and a token would go with it")
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return Failure(address=address, reason="does not answer", again=True, unreachable=True)
    if isinstance(error, requests.exceptions.ReadTimeout | urllib3.exceptions.ReadTimeoutError):
        return Failure(address=address, reason="does not go on answering", again=True, unsure=True)
    if "NameResolutionError" in text or "Failed to resolve" in text:
        return Failure(address=address, reason="is a name that is not known here", again=True, unreachable=True)
    if "NewConnectionError" in text or "Failed to establish" in text:
        return Failure(address=address, reason="takes no connection", again=True, unreachable=True)
    return Failure(address=address, reason="cut the connection", again=True, unsure=True)


def _answered(error: AnsweredError) -> Failure:
    passing = (
        error.name in PASSING | ASK_ANOTHER
        or any(text in error.message for text in PASSING_TEXTS)
        or any(text in error.message for text in SAFE_MODE)
    )
    broken = error.status >= 500 and not passing
    if error.status == 401:
        reason = "does not accept who we are"
    elif not error.name:
        reason = f"answered {error.status}, and not as WebHDFS does"
    else:
        reason = f"answered {error.name}"
    return Failure(
        address=error.address,
        reason=reason,
        name=error.name,
        message=error.message,
        again=passing or broken,
        unsure=broken,
        unwelcome=error.status == 401 or error.name in ("SecurityException", "AuthorizationException"),
    )


def sentence(failure: Failure, *, where: str, what: str, user: str) -> str:
    """`what` is the participle: read, written, listed."""
    cannot, said = f"{where} cannot be {what}", f" ({failure.message})" if failure.message else ""
    address = failure.address
    if failure.name == "FileNotFoundException":
        return f"{where} is not there" if what == "read" else f"{cannot}: {address} does not find it{said}"
    if failure.name == "AccessControlException":
        return (
            f"{cannot}: {user} has no permission{said}; have it granted, or set yarnstick.store.url to your own place"
        )
    if QUOTA.fullmatch(failure.name):
        return f"{cannot}: the quota of HDFS is used up{said}; make room, or have the quota raised"
    if failure.safe_mode:
        return f"{cannot}: the NameNode {address} is in safe mode{said}; run again once it has left it"
    if failure.no_room:
        return (
            f"{cannot}: no DataNode keeps its blocks{said}; `yarnstick doctor` tells how many there are and what room "
            "they have"
        )
    if failure.standby:
        return (
            f"{cannot}: {address} is a standby, and no active NameNode was found; add it to yarnstick.store.namenodes"
        )
    return f"{cannot}: {address} {failure.reason}{said}"


def plain(message: str) -> str:
    """The first line of Hadoop's message, without what could be a secret."""
    line = next(iter(message.strip().splitlines()), "")
    line = SECRET.sub(r"\1=...", line)
    return line if len(line) <= LONGEST_MESSAGE else f"{line[:LONGEST_MESSAGE]}..."


def origin(url: str) -> str:
    """Scheme, host and port: of an address no more is ever shown, as the rest may hold a token."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
