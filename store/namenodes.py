"""Requests to the NameNodes of one HDFS: whoever is active is asked, and what passes is waited for."""

from __future__ import annotations

import getpass
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from store.errors import StoreError
from store.refusals import AnsweredError, Failure, failure_of, origin, sentence
from store.retry import Patience, Waiting
from store.sessions import kerberos_is_missing, open_session, ticket

CONNECT_SECONDS = 4.0
READ_SECONDS = 60.0
STRANGER_SECONDS = 3.0  # a NameNode that never answered is not waited for: its address may be wrong
NO_DATANODE = "Failed to find datanode"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who we are to HDFS."""

    security: Literal["kerberos", "insecure"]
    user: str = ""  # for insecure; empty: the account's name
    certificates: Path | None = None  # of the authorities to trust for https; None: the usual ones
    patience: Patience = field(default_factory=lambda: Patience(seconds=120))
    connect_seconds: float = CONNECT_SECONDS
    read_seconds: float = READ_SECONDS

    @property
    def name(self) -> str:
        """As messages call us."""
        return self.user or getpass.getuser() if self.security == "insecure" else "this Kerberos principal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one attempt is made with."""

    client: Any  # hdfs.Client, of one NameNode
    avoiding: dict[str, str]  # parameters that keep a request away from DataNodes that failed
    number: int


class Refusal(StoreError):
    """A request failed for good; `failure` says how."""

    def __init__(self, failure: Failure, text: str) -> None:
        super().__init__(text)
        self.failure = failure


class NameNodes:
    """Each NameNode has a client and a session of its own: hdfs's own rotation repeats what must not be repeated."""

    def __init__(self, url: str, addresses: tuple[str, ...], access: Access) -> None:
        self.url = url
        self._addresses = addresses
        self._access = access
        self._active = 0
        self._answered = False
        self._gave_up = False  # and nothing has succeeded since: whatever else is to be done does not wait once more
        self._clients: dict[str, Any] = {}
        self._lock = Lock()

    def call(self, operate: Callable[[Attempt], T], *, path: str, what: str, repeatable: bool = True) -> T:
        """Until it succeeds, is refused, or the patience ends.

        What is not `repeatable` is given up as soon as it may have been carried out without us knowing.
        """
        waiting = Waiting(self._access.patience)
        avoided: set[str] = set()
        untried = set(self._addresses)
        where, number = f"{self.url}/{path}".rstrip("/"), 0
        while True:
            address, number = self._addresses[self._active], number + 1
            try:
                avoiding = {"excludedatanodes": ",".join(sorted(avoided))} if avoided else {}
                result = operate(Attempt(client=self._client(address), avoiding=avoiding, number=number))
            except Exception as error:
                failure = failure_of(error, asked=address)
                if failure is None:
                    raise
            else:
                self._answered, self._gave_up = True, False
                return result
            at_datanode = failure.address != address
            self._answered |= at_datanode or bool(failure.name and not failure.standby)
            self._gave_up &= failure.again  # a refusal is an answer, too
            if not failure.again or (failure.unsure and not repeatable):
                raise self._refusal(failure, where, what, waiting)
            if NO_DATANODE in failure.message:
                avoided.clear()
            elif at_datanode:
                avoided |= _hosts(failure.address)
            elif failure.standby or failure.unreachable or failure.unsure:
                untried.discard(address)
                self._turn_from(address)
                if untried:
                    continue  # another NameNode is asked without a pause
            if number == len(self._addresses) and not self._gave_up:
                self._log(f"{failure.address} {failure.reason}; waiting for it")
            is_hopeless = self._gave_up and not at_datanode
            if is_hopeless or not waiting.pause(most_seconds=self._most_seconds(failure)):
                self._gave_up = not at_datanode
                raise self._refusal(failure, where, what, waiting)
            untried = set(self._addresses)

    def _most_seconds(self, failure: Failure) -> float:
        known = self._answered or failure.standby
        return self._access.patience.seconds if known else STRANGER_SECONDS

    def _refusal(self, failure: Failure, where: str, what: str, waiting: Waiting) -> Refusal:
        text = sentence(failure, where=where, what=what, user=self._access.name)
        if failure.name in ("", "StandbyException") and len(self._addresses) > 1:
            text = f"{text} (tried {', '.join(self._addresses)})"
        if failure.unwelcome:
            text = f"{text}; {self._who()}"
        elif failure.unreachable:
            text = f"{text}; start HDFS, or correct yarnstick.store.url or yarnstick.store.namenodes"
        elif failure.again:
            text = f"{text}; tried for {waiting.seconds:.0f} s"
        return Refusal(failure, text)

    def _who(self) -> str:
        if self._access.security == "insecure":
            return "it wants Kerberos: set yarnstick.store.security = kerberos"
        return ticket()

    def _turn_from(self, address: str) -> None:
        """The next NameNode is asked from now on, unless another thread has turned already."""
        with self._lock:
            if self._addresses[self._active] == address:
                self._active = (self._active + 1) % len(self._addresses)

    def _client(self, address: str) -> Any:
        with self._lock:
            if address not in self._clients:
                self._clients[address] = _client(address, self._access)
            return self._clients[address]

    def _log(self, line: str) -> None:
        logging.getLogger("luigi-interface.yarnstick").info("%s", line)


def _hosts(address: str) -> set[str]:
    """As the NameNode may know the host of a DataNode."""
    host = urlsplit(address).hostname or ""
    with suppress(OSError):
        return {socket.gethostbyname(host)}
    return {host}


def _client(address: str, access: Access) -> Any:
    """A client of hdfs whose every answer that is no success is an `AnsweredError`."""
    import hdfs

    session = open_session(address, certificates=access.certificates)
    timeout = (access.connect_seconds, access.read_seconds)
    base: Any
    arguments: dict[str, Any]
    if access.security == "insecure":
        base, arguments = hdfs.InsecureClient, {"user": access.user or getpass.getuser()}
    else:
        try:
            from hdfs.ext.kerberos import KerberosClient
        except ImportError as error:
            raise kerberos_is_missing(error) from None
        # The first answer may be a refusal that proves nothing; its text is only shown.
        base, arguments = KerberosClient, {"mutual_auth": "REQUIRED", "sanitize_mutual_error_response": False}

    class StrictClient(base):
        def _request(self, method: str, url: str, **kwargs: Any) -> Any:
            response = super()._request(method, url, **kwargs)
            if response.status_code >= 400:
                with response:
                    raise AnsweredError(
                        status=response.status_code, body=response.content, address=origin(response.url)
                    )
            return response

    return StrictClient(address, session=session, timeout=timeout, root="/", **arguments)
