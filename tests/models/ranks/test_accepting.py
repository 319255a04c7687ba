"""Who connects is taken in, whatever others did before: a real socket, and really no file left."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from models.ranks.accepting import Accepting


@contextmanager
def no_more_files() -> Iterator[None]:
    """Not even one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_without_room_for_a_file_takes_callers_in_when_it_has() -> None:
    with ExitStack() as ends:
        listener = ends.enter_context(socket.create_server(("127.0.0.1", 0)))
        accepting, address = Accepting(listener), listener.getsockname()
        came: list[socket.socket] = []

        def take() -> None:
            for peer, _ in accepting:
                came.append(ends.enter_context(peer))
                peer.sendall(b"welcome")

        thread = threading.Thread(target=take)
        thread.start()
        callers = [ends.enter_context(socket.socket()) for _ in range(2)]
        with no_more_files():
            before = time.process_time()
            for each in callers:
                each.settimeout(10)
                each.connect(address)
            time.sleep(0.5)
            assert len(came) < 2  # who already waited for a caller has a file for one
            assert time.process_time() - before < 0.3, "it does not try all the time"
        for each in callers:
            assert each.recv(7) == b"welcome"
        accepting.close()
        thread.join(10)
        assert not thread.is_alive()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=10)
