"""A small WebHDFS server that answers wrongly on demand, for what a real one cannot be brought to do."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qsl, unquote, urlsplit

PREFIX = "/webhdfs/v1"


@dataclass
class Node:
    id: int
    data: bytes | None  # None for a directory
    modified: float = field(default_factory=time.time)


class Namespace:
    """What all NameNodes of one HDFS know: every path with what lies there."""

    def __init__(self) -> None:
        self._ids = itertools.count(16386)
        self.nodes: dict[str, Node] = {"": Node(next(self._ids), None)}
        self.open: set[str] = set()  # files whose writer has not closed them
        self.lock = Lock()

    def add(self, path: str, data: bytes | None) -> None:
        parent = path.rpartition("/")[0]
        if parent not in self.nodes:
            self.add(parent, None)
        if path not in self.nodes or data is not None:
            self.nodes[path] = Node(next(self._ids), data)

    def below(self, path: str) -> list[str]:
        return [each for each in self.nodes if each.startswith(f"{path}/")]

    def remove(self, path: str) -> bool:
        for each in self.below(path):
            del self.nodes[each]
        return self.nodes.pop(path, None) is not None

    def move(self, source: str, target: str) -> None:
        self.remove(target)
        for each in [source, *self.below(source)]:
            self.nodes[target + each.removeprefix(source)] = self.nodes.pop(each)


class RefusedError(Exception):
    def __init__(self, status: int, exception: str, message: str = "") -> None:
        super().__init__(exception)
        self.status, self.exception, self.message = status, exception, message


class CutError(Exception):
    """The connection ends without an answer."""


# What an answer becomes: called with the handler and the right answer as a function, which carries the request out.
Wrong = Callable[["Handler", Callable[[], None]], None]


def refuses(exception: str, message: str = "", status: int = 403) -> Wrong:
    def wrong(handler: Handler, right: Callable[[], None]) -> None:
        raise RefusedError(status, exception, message)

    return wrong


def says(status: int, body: bytes = b"<html>oops</html>") -> Wrong:
    return lambda handler, right: handler.send(status, body)


def cuts(handler: Handler, right: Callable[[], None]) -> None:
    raise CutError


def loses_the_answer(handler: Handler, right: Callable[[], None]) -> None:
    """What was asked for is done, and nobody hears of it."""
    handler.is_mute = True
    with suppress(RefusedError):  # nor of that
        right()
    raise CutError


def hangs(handler: Handler, right: Callable[[], None]) -> None:
    time.sleep(1.0)
    raise CutError


def after(first: Callable[[], None]) -> Wrong:
    """Something happens elsewhere just before the right answer."""

    def wrong(handler: Handler, right: Callable[[], None]) -> None:
        first()
        right()

    return wrong


def stops_after(size: int) -> Wrong:
    """Of a file's content, after announcing all of it."""

    def wrong(handler: Handler, right: Callable[[], None]) -> None:
        handler.most_bytes = size
        right()

    return wrong


class WrongHdfs(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, namespace: Namespace | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.namespace = namespace or Namespace()
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.datanode = self.address  # where uploads and downloads are sent
        self.knows_options = True  # of rename; HttpFS does not
        self._wrong: dict[str, list[Wrong]] = {}
        self.always: dict[str, Wrong] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def next(self, operation: str, *wrong: Wrong) -> None:
        """The next answers to this operation; `DATA` is what goes to or comes from a DataNode."""
        self._wrong.setdefault(operation, []).extend(wrong)

    def wrong(self, operation: str) -> Wrong | None:
        waiting = self._wrong.get(operation)
        return waiting.pop(0) if waiting else self.always.get(operation) or self.always.get("*")

    def operations(self) -> list[str]:
        return [operation for operation, _, _ in self.asked]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is meant to."""


@contextmanager
def serving(namespace: Namespace | None = None) -> Iterator[WrongHdfs]:
    server = WrongHdfs(namespace)
    Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: WrongHdfs
    most_bytes: int | None
    is_mute: bool

    def log_message(self, format: str, *args: object) -> None:
        pass

    def answer(self) -> None:
        parts = urlsplit(self.path)
        given = dict(parse_qsl(parts.query))
        path = unquote(parts.path).removeprefix(PREFIX).rstrip("/")
        operation = "DATA" if "data" in given else given.get("op", "")
        self.most_bytes, self.is_mute = None, False
        self.server.asked.append((operation, path, given))
        body = self._body()
        wrong = self.server.wrong(operation)

        def right() -> None:
            self.carry_out(operation, path, given, body)

        try:
            if wrong is None:
                right()
            else:
                wrong(self, right)
        except RefusedError as error:
            remote = {"exception": error.exception, "javaClassName": "x", "message": error.message}
            self.send(error.status, json.dumps({"RemoteException": remote}).encode())
        except CutError:
            self.close_connection = True

    do_GET = do_PUT = do_DELETE = answer  # noqa: N815  # as the standard library has it

    def carry_out(self, operation: str, path: str, given: dict[str, str], body: bytes) -> None:
        space = self.server.namespace
        if operation == "DATA" and self.command == "GET":
            # Without the lock: whoever reads it may ask for something else in between.
            node = space.nodes.get(path)
            self.send(200, ((node and node.data) or b"")[int(given["offset"]) :])
            return
        with space.lock:
            node = space.nodes.get(path)
            if operation in ("GETFILESTATUS", "LISTSTATUS", "GET_BLOCK_LOCATIONS", "OPEN", "RENAME") and node is None:
                raise RefusedError(404, "FileNotFoundException", f"File does not exist: {path}")
            if operation in ("OPEN", "CREATE"):
                if operation == "CREATE" and node is not None and given.get("overwrite") != "true":
                    raise RefusedError(403, "FileAlreadyExistsException", path)
                query = f"op={operation}&data=1&offset={given.get('offset', 0)}&delegation=CANARY"
                self.send(307, b"", location=f"{self.server.datanode}{PREFIX}{path}?{query}")
            elif operation == "DATA":
                space.add(path, body)
                self.send(201, b"")
            elif operation == "GETFILESTATUS":
                self.send_json({"FileStatus": self.status(path, "")})
            elif operation == "LISTSTATUS":
                names = [each for each in space.below(path) if "/" not in each.removeprefix(f"{path}/")]
                found = [self.status(each, each.rpartition("/")[2]) for each in names]
                self.send_json({"FileStatuses": {"FileStatus": found}})
            elif operation == "GET_BLOCK_LOCATIONS":
                assert node is not None
                block = {"block": {"blockId": node.id}}
                located = {"fileLength": len(node.data or b""), "isUnderConstruction": path in space.open}
                self.send_json({"LocatedBlocks": {**located, "locatedBlocks": [block] if node.data else []}})
            elif operation == "RENAME":
                self.rename(path, given["destination"], given.get("renameoptions"))
            elif operation == "DELETE":
                self.send_json({"boolean": space.remove(path)})
            elif operation == "GETCONTENTSUMMARY":
                sizes = [len(space.nodes[each].data or b"") for each in [path, *space.below(path)]]
                self.send_json({"ContentSummary": {"length": sum(sizes)}})
            else:
                raise RefusedError(
                    400, "IllegalArgumentException", f'Invalid value for webhdfs parameter "op": {operation}'
                )

    def rename(self, source: str, target: str, option: str | None) -> None:
        space = self.server.namespace
        there = space.nodes.get(target)
        if not self.server.knows_options:
            if there is not None and there.data is None:
                space.move(source, f"{target}/{source.rpartition('/')[2]}")
                there = None
            elif there is None:
                space.move(source, target)
            self.send_json({"boolean": there is None})
        elif there is not None and option != "OVERWRITE":
            raise RefusedError(403, "FileAlreadyExistsException", f"rename destination {target} already exists")
        else:
            space.move(source, target)
            self.send(200, b"")

    def status(self, path: str, name: str) -> dict[str, object]:
        node = self.server.namespace.nodes[path]
        return {
            "fileId": node.id,
            "pathSuffix": name,
            "type": "DIRECTORY" if node.data is None else "FILE",
            "length": len(node.data or b""),
            "modificationTime": int(node.modified * 1000),
        }

    def send_json(self, content: object) -> None:
        self.send(200, json.dumps(content).encode())

    def send(self, status: int, body: bytes, **headers: str) -> None:
        if self.is_mute:
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.most_bytes])
        if self.most_bytes is not None and self.most_bytes < len(body):
            raise CutError

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body
