"""A run belongs to one process at a time, whichever host it was started on: luigid says to which.

Luigi by itself would hand the trials of a run round among its workers, and mix the times of several machines.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import time
from contextlib import suppress
from functools import cache
from getpass import getuser
from socket import gethostname
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from store.errors import SettingError

TIMEOUT_SECONDS = 5.0
PING_SECONDS = 1.0  # as Luigi's own workers; luigid takes for dead who is silent for its worker_disconnect_delay
LOOKS, LOOK_SECONDS = 20, 0.25
NOBODY = "another process"


class AtWorkElsewhereError(Exception):
    """Nothing is wrong: another process is at this run, and goes on."""


class Luigid:
    """The few calls of luigid's interface that a claim needs; each fails within seconds, and Luigi's own do not."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        parts = urlsplit(self._url)
        self.shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"  # without name and password

    def ask(self, method: str, **arguments: Any) -> Any:
        import requests

        try:
            answer = requests.post(
                f"{self._url}/api/{method}", data={"data": json.dumps(arguments)}, timeout=TIMEOUT_SECONDS
            )
            answer.raise_for_status()
            return answer.json()["response"]
        except (requests.RequestException, KeyError, TypeError, ValueError) as error:
            raise SettingError(
                f"no luigid answers at {self.shown} ({_cause(error)}); start it, or mend [core] default_scheduler_host "
                f"and default_scheduler_port, or give --local-scheduler"
            ) from None

    def ping(self, worker: str) -> None:
        """As luigi.worker.KeepAliveThread wants it."""
        with suppress(SettingError):  # the run itself finds out, and says so
            self.ask("ping", worker=worker)


def claim_of_central_scheduler(store_url: str, run_id: str) -> None:
    """Where `luigi` was told to use luigid: have the run to ourselves, else an AtWorkElsewhereError."""
    from luigi.interface import core

    told = core()
    url = told.scheduler_url or f"http://{told.scheduler_host}:{told.scheduler_port:d}/"
    # A luigid behind a socket file is of this host only, where trials wait for each other anyway.
    if not told.local_scheduler and urlsplit(url).scheme in ("http", "https"):
        _ask_directly(urlsplit(url).hostname or "")
        claim(url, store_url, run_id)


def _ask_directly(host: str) -> None:
    """A proxy of the environment leads out of the network that luigid is in. Luigi's own requests know no other way."""
    others = [each for each in (os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")).split(",") if each]
    if host not in others:
        # Which of the two is looked at first is not the same everywhere.
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join([*others, host])


@cache
def claim(url: str, store_url: str, run_id: str) -> None:
    from luigi.worker import KeepAliveThread

    luigid = Luigid(url)
    mine = f"yarnstick(host={gethostname()}, user={_user()}, pid={os.getpid()}, salt={uuid4().hex[:8]})"
    task = f"yarnstick_run {run_id} of {store_url}"
    holder = _holder(luigid, task, mine, family="Run", params={"run_id": run_id, "store": store_url})
    if holder != mine:
        raise AtWorkElsewhereError(_measured_by(holder, run_id, luigid))
    pings = KeepAliveThread(luigid, mine, PING_SECONDS, lambda message: None)
    pings.daemon = True
    pings.start()
    owner = os.getpid()

    def release() -> None:
        if os.getpid() == owner:  # Luigi's workers are forks of this process
            pings.stop()
            with suppress(SettingError):
                luigid.ask("add_task", worker=mine, task_id=task, status="DONE")

    atexit.register(release)
    _outwait_dead_workers(luigid, run_id, but=mine)
    logging.getLogger("luigi-interface.yarnstick").debug("luigid at %s gave us run %s", luigid.shown, run_id)


def _holder(luigid: Luigid, task: str, mine: str, **about: Any) -> str:
    """The worker that has the task: of several that ask, luigid gives it to one."""
    # One that is RUNNING stays so. One that was DONE a moment ago becomes PENDING only by way of UNKNOWN.
    luigid.ask("add_task", worker=mine, task_id=task, status="UNKNOWN", **about)
    for look in range(LOOKS):
        if look:
            time.sleep(LOOK_SECONDS)  # nobody has it: another one made it UNKNOWN, and may or may not come back for it
        luigid.ask("add_task", worker=mine, task_id=task, status="PENDING", **about)
        given = luigid.ask("get_work", worker=mine, host=gethostname())
        holders = [each["worker"] for each in given["running_tasks"] if each["task_id"] == task]
        if given["task_id"] == task or holders:
            return mine if given["task_id"] == task else str(holders[0])
    return NOBODY


def _outwait_dead_workers(luigid: Luigid, run_id: str, *, but: str) -> None:
    """Who was killed held its claim by one worker and its trials by another, of which luigid may miss one later.

    Until then it lets nobody else run the trial that was left, and Luigi ends without it.
    """
    first: dict[str, float] = {}
    while True:
        # Both make luigid look for who is silent.
        running = luigid.ask("task_list", status="RUNNING", limit=False).values()
        workers = {each["worker_running"] for each in running if each["params"].get("run_id") == run_id} - {but}
        heard = {
            each["name"]: each["last_active"]
            for each in luigid.ask("worker_list", include_running=False)
            if each["name"] in workers
        }
        if not heard:
            return
        for worker, when in heard.items():
            if first.setdefault(worker, when) != when:  # it lives, as of a run of this name in another store
                raise AtWorkElsewhereError(_measured_by(worker, run_id, luigid))
        time.sleep(LOOK_SECONDS)


def _measured_by(worker: str, run_id: str, luigid: Luigid) -> str:
    return f"run {run_id} is being measured by {worker}, says luigid at {luigid.shown}; nothing is to be done here"


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # an account without a name, as in a container
        return str(os.getuid())


def _cause(error: Exception) -> str:
    """In words; the chain of what requests raises is long and holds the address with its password."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"status {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT_SECONDS:g} s"
    if isinstance(error, requests.ConnectionError):
        reason: BaseException | None = error
        while reason is not None and not (isinstance(reason, OSError) and reason.strerror):
            reason = reason.__cause__ or reason.__context__
        return str(getattr(reason, "strerror", "no connection")).lower()
    return "what answers is no luigid"
