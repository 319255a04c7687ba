"""An application of ours, found by its tag: it waits in its queue for a while only, and never outlives us."""

from __future__ import annotations

import math
import os
import re
import socket
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from store.errors import YarnstickError
from store.publish import is_abandoned, temporary_name
from store.retry import Patience

if TYPE_CHECKING:
    from store.namenodes import Access
    from yarn.resource_manager import Application, ResourceManager

PREFIX = "yarnstick"
POLL_SECONDS = 1.0
RUNNING_POLL_SECONDS = 3.0
PATIENCE_SECONDS = 5.0
PARENT_SECONDS = 0.5
WAITING = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED")
LIVING = (*WAITING, "RUNNING")


def new_tag() -> str:
    """It tells the process that it belongs to, as temporary names do; YARN keeps tags in lower case."""
    return re.sub(r"[^a-z0-9._-]", "-", f"{PREFIX}{temporary_name()}".lower())


def session_tag(session: str) -> str:
    """What all applications of one session have in common, to tell them from others'."""
    return f"{PREFIX}-session-{session}".lower()


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
        self.lost: str | None = None  # why there is nothing to wait for any more
        self.ended: Application | None = None  # where that is its own end, which nobody here asked for
        self._is_over = False  # for us: its end is no surprise
        self._patience_seconds = access.patience.seconds
        self._queue = queue
        self._accepted_seconds = accepted_seconds
        _OURS.add(self)

    def application(self) -> Application | None:
        """What YARN knows of it now."""
        return next(iter(self.manager.applications(tag=self.tag)), None)

    def watch(self, *, gone: Callable[[], None], tells_its_end: bool = False) -> None:
        """From now on `gone` is called as soon as there is nothing more to wait for, and `lost` says why.

        That is an application that got no room within `accepted_seconds`, which are counted anew when one that ran
        waits again, and is killed; one that ended before we ended it, unless it `tells_its_end` by itself; and a
        ResourceManager that is not heard of any more.
        """
        watch = partial(self._watch, gone, tells_its_end=tells_its_end)
        threading.Thread(target=watch, daemon=True, name="application-watch").start()

    def end(self) -> None:
        """Kill it if it still lives; where YARN does not answer there is nothing more that we could do."""
        self._is_over = True
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

    def _watch(self, gone: Callable[[], None], *, tells_its_end: bool) -> None:
        heard = time.monotonic()
        waits_since: float | None = None
        last: Application | None = None
        while self.lost is None:
            time.sleep(RUNNING_POLL_SECONDS if last and last.state == "RUNNING" else POLL_SECONDS)
            if self._is_over:
                return
            try:
                last, heard = self.application() or last, time.monotonic()
            except YarnstickError as error:
                if time.monotonic() - heard > self._patience_seconds:
                    self.lost = str(error)
                continue
            if last is None or (last.has_ended and tells_its_end):
                continue
            # A second attempt of its master, or another ResourceManager, puts one that ran in line again.
            waits_since = (waits_since or heard) if last.state in WAITING else None
            if last.has_ended and not self._is_over:
                self.ended = last
                self.lost = last.early_end
            elif waits_since is not None and heard - waits_since > self._accepted_seconds:
                self.lost = (
                    f"queue {self._queue} had no room for {last.id} within {self._accepted_seconds:g} s "
                    f"(state {last.state}{_reason(last.diagnostics)}), and it was killed; try again when the queue is "
                    f"empty, or set yarnstick.hadoop.queue or yarnstick.hadoop.accepted_seconds"
                )
                self.end()
        gone()


def end_orphans(manager: ResourceManager, *, user: str) -> list[str]:
    """Kill what processes of this host and user left that were ended before they could do it; what to tell of each.

    One that cannot be killed is no reason not to go on.
    """
    told = []
    ours = f"{PREFIX}.tmp.{socket.gethostname()}.".lower()
    for application in manager.applications(user=user, states=LIVING):
        tags = [tag for tag in application.tags if tag.startswith(ours)]
        if application.user != user or not any(is_abandoned(_name(tag), modified=math.inf) for tag in tags):
            continue
        try:
            manager.kill(application.id)
            told.append(f"{application.id} was left by a run that was killed, and is ended now")
        except YarnstickError as error:
            told.append(f"{application.id} was left by a run that was killed: {error}")
    return told


def _name(tag: str) -> str:
    """The temporary name that a tag was made of, in the spelling of this host."""
    host = socket.gethostname()
    return tag.removeprefix(PREFIX).replace(host.lower(), host, 1)


def _reason(diagnostics: str) -> str:
    """YARN's own words of why it waits, on one line and not too long."""
    words = " ".join(diagnostics.split())
    found = re.search(r"(Queue's AM resource limit exceeded|.*?limit[^.;]*)", words)
    return f": {found[0][:160]}" if found else ""
