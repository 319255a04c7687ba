"""An application of ours, found by its tag: it waits in its queue for a while only, and never outlives us."""

from __future__ import annotations

import math
import os
import re
import socket
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from store.errors import YarnstickError
from store.publish import is_abandoned, temporary_name
from store.retry import Patience

if TYPE_CHECKING:
    from store.namenodes import Access
    from yarn.resource_manager import Application, ResourceManager

PREFIX = "yarnstick"
POLL_SECONDS = 1.0
PATIENCE_SECONDS = 5.0
PARENT_SECONDS = 0.5
WAITING = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED")
LIVING = (*WAITING, "RUNNING")


def new_tag() -> str:
    """It tells the process that it belongs to, as temporary names do; YARN keeps tags in lower case."""
    return re.sub(r"[^a-z0-9._-]", "-", f"{PREFIX}{temporary_name()}".lower())


# Of this process, as long as somebody holds them.
_OURS: weakref.WeakSet[Submission] = weakref.WeakSet()


def end_all() -> None:
    """What this process submitted and did not end yet: it is about to be gone."""
    for submission in list(_OURS):
        submission.end()


class Submission:
    def __init__(
        self, resource_managers: tuple[str, ...], access: Access, *, queue: str, accepted_seconds: float
    ) -> None:
        from yarn.resource_manager import ResourceManager

        self.tag = new_tag()
        # Who ends does not wait long for a ResourceManager that may be gone.
        self.manager = ResourceManager.of(
            resource_managers, replace(access, patience=Patience(seconds=PATIENCE_SECONDS))
        )
        self.refused: str | None = None  # why it was ended while it waited
        self._queue = queue
        self._accepted_seconds = accepted_seconds
        _OURS.add(self)

    def application(self) -> Application | None:
        """What YARN knows of it now."""
        return next(iter(self.manager.applications(tag=self.tag)), None)

    def watch(self) -> None:
        """From now on, until it runs: after `accepted_seconds` in its queue it is killed, and `refused` says so."""
        threading.Thread(target=self._watch, daemon=True, name="queue-watch").start()

    def end(self) -> None:
        """Kill it if it still lives; where YARN does not answer there is nothing more that we could do."""
        with suppress(YarnstickError):
            for application in self.manager.applications(tag=self.tag, states=LIVING):
                self.manager.kill(application.id)

    def end_with(self, parent: int) -> None:
        """When the parent is gone, the application and this process group go too."""

        def watch() -> None:
            import signal

            while os.getppid() == parent:
                time.sleep(PARENT_SECONDS)
            self.end()
            os.killpg(os.getpgid(0), signal.SIGKILL)

        threading.Thread(target=watch, daemon=True, name="parent-watch").start()

    def _watch(self) -> None:
        deadline = time.monotonic() + self._accepted_seconds
        while True:
            time.sleep(POLL_SECONDS)
            with suppress(YarnstickError):
                application = self.application()
                if application is not None and application.state not in WAITING:
                    return
                if application is not None and time.monotonic() > deadline:
                    self.refused = (
                        f"queue {self._queue} had no room for {application.id} within {self._accepted_seconds:g} s "
                        f"(state {application.state}{_reason(application.diagnostics)}), and it was killed; try again "
                        f"when the queue is empty, or set yarnstick.hadoop.queue or yarnstick.hadoop.accepted_seconds"
                    )
                    self.manager.kill(application.id)
                    return


def end_orphans(manager: ResourceManager) -> list[str]:
    """Kill what processes of this host left that were ended before they could do it; their ids."""
    ended = []
    ours = f"{PREFIX}.tmp.{socket.gethostname()}.".lower()
    for application in manager.applications(states=LIVING):
        for tag in application.tags:
            if tag.startswith(ours) and is_abandoned(_name(tag), modified=math.inf):
                manager.kill(application.id)
                ended.append(application.id)
                break
    return ended


def _name(tag: str) -> str:
    """The temporary name that a tag was made of, in the spelling of this host."""
    host = socket.gethostname()
    return tag.removeprefix(PREFIX).replace(host.lower(), host, 1)


def _reason(diagnostics: str) -> str:
    """YARN's own words of why it waits, on one line and not too long."""
    words = " ".join(diagnostics.split())
    found = re.search(r"(Queue's AM resource limit exceeded|.*?limit[^.;]*)", words)
    return f": {found[0][:160]}" if found else ""
