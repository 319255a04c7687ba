"""A small ResourceManager that answers what a real one did, and wrongly on demand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, urlsplit

RECORDED = Path(__file__).parent.parent / "data" / "recorded" / "yarn"
PREFIX = "/ws/v1/cluster/"
ENDED = "application_1795019350490_0005"  # as recorded

Wrong = Callable[["Handler"], None]


def says(status: int, body: bytes = b"<html>oops</html>", **headers: str) -> Wrong:
    return lambda handler: handler.send(status, body, **headers)


def refuses(status: int, exception: str, message: str = "") -> Wrong:
    body = f'{{"RemoteException":{{"exception":"{exception}","message":"{message}","javaClassName":"x"}}}}'
    return says(status, body.encode())


def sends_on(address: str) -> Wrong:
    """A standby that knows the active one."""
    body = b"This is standby RM. The redirect url is: /ws/v1/cluster/metrics\n"
    return lambda handler: handler.send(307, body, Location=f"{address}{handler.path}")


def finds_no_active_one(handler: Handler) -> None:
    handler.send(200, b"Can not find any active RM. Will retry in next 3 seconds.\n", Refresh="3;url=/ws")


def cuts(handler: Handler) -> None:
    handler.close_connection = True


def cuts_halfway(handler: Handler) -> None:
    handler.send(200, b'{"clusterMetrics":{"totalMB":1', announced=1000)
    handler.close_connection = True


def hangs(handler: Handler) -> None:
    time.sleep(1.0)
    handler.close_connection = True


class WrongYarn(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answers: dict[str, bytes] = {path.stem: path.read_bytes() for path in RECORDED.glob("*.json")}
        self.answers[f"apps/{ENDED}"] = self.answers["app"]
        self.answers["apps/new-application"] = self.answers["new-application"]
        self.answers[f"apps/{ENDED}/state"] = b'{"state":"KILLED"}'
        self.always: Wrong | None = None
        self._wrong: list[Wrong] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def next(self, *wrong: Wrong) -> None:
        self._wrong.extend(wrong)

    def wrong(self) -> Wrong | None:
        return self._wrong.pop(0) if self._wrong else self.always

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is meant to."""


@contextmanager
def serving() -> Iterator[WrongYarn]:
    server = WrongYarn()
    Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: WrongYarn

    def log_message(self, format: str, *args: object) -> None:
        pass

    def answer(self) -> None:
        parts = urlsplit(self.path)
        path = parts.path.removeprefix(PREFIX)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.command, path, dict(parse_qsl(parts.query)), body))
        wrong = self.server.wrong()
        if wrong is not None:
            wrong(self)
        elif path in self.server.answers:
            self.send(200, self.server.answers[path])
        else:
            refuses(404, "NotFoundException", f"app with id: {path} not found")(self)

    do_GET = do_PUT = do_POST = answer  # noqa: N815  # as the standard library has it

    def send(self, status: int, body: bytes, *, announced: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(announced or len(body)))
        self.end_headers()
        self.wfile.write(body)
