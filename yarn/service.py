"""Requests to the ResourceManagers of one YARN: whoever is active is asked, and what passes is waited for."""

from __future__ import annotations

import getpass
import re
from threading import Lock
from typing import Any, TypeVar

import msgspec

from store.errors import ClusterError
from store.namenodes import Access
from store.refusals import AnsweredError, Failure, failure_of, origin
from store.retry import Waiting
from store.sessions import kerberos_is_missing, open_session, ticket

ROOT = "/ws/v1/cluster"
STRANGER_SECONDS = 3.0  # a ResourceManager that never answered is not waited for: its address may be wrong
# A standby sends on what is asked of it, or says that there is no other; of itself it tells all the same.
STANDBY_TEXTS = (b"This is standby RM", b"an not find any active RM", b"There is no active RM", b'"haState":"STANDBY"')
FIRST_BYTES = 1000  # in which they stand
STANDBY = "StandbyException"
# Hadoop writes numbers that are none as they are, which JSON does not know: the share of a queue of nothing.
NO_NUMBER = re.compile(rb"(?<=:)-?(?:NaN|Infinity)(?=[,}])")
T = TypeVar("T")


class Refusal(ClusterError):
    """A request failed for good; `status` is that of the answer, `failure` says how."""

    def __init__(self, failure: Failure, text: str, *, status: int | None = None) -> None:
        super().__init__(text)
        self.failure = failure
        self.status = status


class Service:
    """Everything asked here can be asked again: answers change nothing, and who is dead stays dead."""

    def __init__(self, addresses: tuple[str, ...], access: Access) -> None:
        self._addresses = addresses
        self._access = access
        self._active = 0
        self._answered = False
        self._sessions: dict[str, Any] = {}
        self._lock = Lock()

    @property
    def address(self) -> str:
        """Of the one that answered last, or is asked next."""
        return self._addresses[self._active]

    def get(self, path: str, kind: type[T], **parameters: str) -> T:
        return self.ask("GET", path, kind, parameters=parameters)

    def ask(
        self, method: str, path: str, kind: type[T], *, parameters: dict[str, str] | None = None, body: Any = None
    ) -> T:
        """Until it succeeds, is refused, or the patience ends."""
        waiting = Waiting(self._access.patience)
        untried = set(self._addresses)
        while True:
            address = self.address
            try:
                decoded = _decoded(self._attempt(address, method, path, parameters or {}, body), kind, address)
            except Exception as error:
                found = failure_of(error, asked=address)
                if found is None:
                    raise
                failure, status = found, None
                if isinstance(error, AnsweredError):
                    failure, status = _failure(error), error.status
            else:
                self._answered = True
                return decoded
            self._answered |= bool(failure.name and not failure.standby)
            if not failure.again:
                raise self._refusal(failure, waiting, status=status)
            if failure.standby or failure.unreachable or failure.unsure:
                untried.discard(address)
                self._turn_from(address)
                if untried:
                    continue  # another one is asked without a pause
            known = self._answered or failure.standby
            if not waiting.pause(most_seconds=self._access.patience.seconds if known else STRANGER_SECONDS):
                raise self._refusal(failure, waiting, status=status)
            untried = set(self._addresses)

    def _attempt(self, address: str, method: str, path: str, parameters: dict[str, str], body: Any) -> bytes:
        extra: dict[str, Any] = {}
        if self._access.security == "insecure":
            parameters = {**parameters, "user.name": self._access.user or getpass.getuser()}
        else:
            extra["auth"] = _kerberos()
        response = self._session(address).request(
            method,
            f"{address}{ROOT}/{path}",
            params=parameters,
            json=body,
            headers={"Accept": "application/json", "X-XSRF-Header": "yarnstick"},
            timeout=(self._access.connect_seconds, self._access.read_seconds),
            allow_redirects=False,
            **extra,
        )
        content: bytes = response.content
        elsewhere = response.headers.get("Location", "")
        if any(text in content[:FIRST_BYTES] for text in STANDBY_TEXTS) or origin(elsewhere) in self._addresses:
            raise _standby(address, elsewhere=elsewhere)
        if response.status_code >= 300:
            raise AnsweredError(status=response.status_code, body=content, address=address)
        return content

    def _refusal(self, failure: Failure, waiting: Waiting, *, status: int | None) -> Refusal:
        said = f" ({failure.message})" if failure.message else ""
        text = f"{failure.address} {failure.reason}{said}"
        if failure.name in ("", STANDBY) and len(self._addresses) > 1:
            text = f"{text} (tried {', '.join(self._addresses)})"
        if failure.standby:
            text = f"{text}; add the active ResourceManager to yarnstick.hadoop.resource_managers, or wait for one"
        elif failure.unwelcome:
            text = f"{text}; {self._who()}"
        elif failure.unreachable:
            text = f"{text}; start YARN, or correct yarnstick.hadoop.resource_managers or HADOOP_CONF_DIR"
        elif failure.again:
            text = f"{text}; tried for {waiting.seconds:.0f} s"
        elif not failure.name:
            text = f"{text}; correct yarnstick.hadoop.resource_managers or HADOOP_CONF_DIR"
        return Refusal(failure, text, status=status)

    def _who(self) -> str:
        if self._access.security == "insecure":
            return "it wants Kerberos: set yarnstick.store.security = kerberos"
        return ticket()

    def _turn_from(self, address: str) -> None:
        """The next one is asked from now on, unless another thread has turned already."""
        with self._lock:
            if self.address == address:
                self._active = (self._active + 1) % len(self._addresses)

    def _session(self, address: str) -> Any:
        with self._lock:
            if address not in self._sessions:
                self._sessions[address] = open_session(address, certificates=self._access.certificates)
            return self._sessions[address]


def _decoded(body: bytes, kind: type[T], address: str) -> T:
    for text in (body, NO_NUMBER.sub(b"0", body)):
        try:
            return msgspec.json.decode(text, type=kind, strict=False)
        except msgspec.DecodeError:  # a ValidationError is one, too
            pass
    raise AnsweredError(status=200, body=b"", address=address)


def _failure(error: AnsweredError) -> Failure:
    """An answer that is no success, in words of YARN."""
    standby = error.name == STANDBY
    if standby:
        reason = "is a standby"
    elif error.status == 401:
        reason = "does not accept who we are"
    elif error.name:
        reason = f"answered {error.name}"
    else:
        reason = f"answered {error.status}, and not as a ResourceManager does"
    return Failure(
        address=error.address,
        reason=reason,
        name=error.name,
        message=error.message,
        again=standby or error.status >= 500,
        unsure=error.status >= 500 and not standby,
        unwelcome=error.status == 401,
    )


def _standby(address: str, *, elsewhere: str) -> AnsweredError:
    remote = {"exception": STANDBY, "message": f"it sends on to {origin(elsewhere)}" if elsewhere else ""}
    return AnsweredError(status=503, body=msgspec.json.encode({"RemoteException": remote}), address=address)


def _kerberos() -> Any:
    """For one request: what it keeps of an exchange is not to be shared by threads.

    Many a cluster with Kerberos has web pages without: then there is nobody to prove who they are.
    """
    try:
        from requests_kerberos import OPTIONAL, HTTPKerberosAuth
    except ImportError as error:
        raise kerberos_is_missing(error) from None
    return HTTPKerberosAuth(mutual_authentication=OPTIONAL)
