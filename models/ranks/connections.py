"""A connection between each two ranks: who is of higher rank calls, and shows the token."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress

from models.ranks.greeting import SIZE, greeted, greeting
from models.ranks.meeting import Meeting


def connected(meeting: Meeting, *, token: str, seconds: float) -> list[socket.socket]:
    """To all others, in order of rank; an OSError where that takes longer. Nobody is listened to after that."""
    own, every = meeting.place.rank, meeting.met()
    deadline = time.monotonic() + seconds
    [listener] = meeting.listeners()
    with listener, ExitStack() as ends:
        peers = []
        for other in every[:own]:
            peer = socket.create_connection((other.host, other.ports[0]), timeout=_left(deadline, of=other.node))
            peers.append(ends.enter_context(peer))
            peer.sendall(greeting(token, own))
        peers += _callers(listener, {each.rank: each.node for each in every[own + 1 :]}, token=token, deadline=deadline)
        ends.pop_all()
    return peers


def _callers(listener: socket.socket, nodes: Mapping[int, str], *, token: str, deadline: float) -> list[socket.socket]:
    """Those of these ranks, in order. A stranger is hung up on, and one that says nothing holds up nobody."""
    came: dict[int, socket.socket] = {}
    listener.setblocking(False)
    with ExitStack() as ends, selectors.DefaultSelector() as waiting:
        waiting.register(listener, selectors.EVENT_READ)
        while missing := nodes.keys() - came:
            of = ", ".join(sorted({nodes[rank] for rank in missing}))
            ready = waiting.select(_left(deadline, of=of))  # strangers who keep coming do not put it off
            for key, _ in ready:
                if key.data is None:
                    with suppress(OSError):  # of one that has gone again
                        caller = ends.enter_context(listener.accept()[0])
                        caller.setblocking(False)
                        waiting.register(caller, selectors.EVENT_READ, (caller, bytearray()))
                    continue
                caller, shown = key.data
                if _has_shown(caller, shown):
                    waiting.unregister(caller)
                    rank = greeted(shown, token) if len(shown) == SIZE else None
                    if rank is not None and rank in missing - came.keys():
                        came[rank] = caller
                    else:
                        caller.close()
        return [came[rank].dup() for rank in sorted(came)]  # what strangers may have left open ends here


def _left(deadline: float, *, of: str) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"nothing came from {of}")
    return left


def _has_shown(peer: socket.socket, shown: bytearray) -> bool:
    """All that it has to show, or all that will come."""
    try:
        more = peer.recv(SIZE - len(shown))
    except OSError:
        return True
    shown += more
    return len(shown) == SIZE or not more
