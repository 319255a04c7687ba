"""What Luigi does not do by itself: exit codes that tell a failure, and no traceback for what a user can mend."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import NoReturn

from luigi.configuration import get_config
from luigi.parameter import UnconsumedParameterWarning
from luigi.retcodes import retcode
from luigi.rpc import RPCError

from store.errors import StoreError, YarnstickError

# As in the [retcode] section that luigi.cfg ships with; Luigi's own are 0.
EXIT_CODES = {
    "already_running": 10,
    "missing_data": 20,
    "not_run": 25,
    "task_failed": 1,
    "scheduling_error": 35,
    "unhandled_exception": 4,
}
_TOLD: list[str] = []  # sentences


def fail_loudly() -> None:
    """Give each exit code that the user's luigi.cfg leaves at 0 its shipped value.

    Luigi has read them by now, but keeps one object of them, which is this one.
    """
    codes = retcode()
    for name, code in EXIT_CODES.items():
        if getattr(codes, name) == 0:
            setattr(codes, name, code)
    # Luigi's is one directory for all users of a host, that only the first of them can write to.
    config = get_config()
    if not (config.has_option("core", "lock_pid_dir") or config.has_option("core", "lock-pid-dir")):
        config.set("core", "lock_pid_dir", str(Path(tempfile.gettempdir()) / f"luigi-{os.getuid()}"))
    # It warns of [core] settings that it does use, and shows their values: luigid's address may hold a password.
    warnings.filterwarnings("ignore", r"[^']*'(default|rpc)[-_]", UnconsumedParameterWarning)
    log = logging.getLogger("luigi-interface")
    if not any(isinstance(each, _OneSentence) for each in log.filters):
        log.addFilter(_OneSentence())


def leave_it(answer: Exception) -> NoReturn:
    """End as Luigi does where the same command runs already."""
    print(answer, file=sys.stderr)
    sys.exit(retcode().already_running)


def tell_once(error: YarnstickError) -> None:
    """One that stops many tasks is still one sentence, though each of them may have met it by itself."""
    _tell(str(error))


@cache
def _tell(sentence: str) -> None:
    _TOLD.append(sentence)
    print(f"Error: {sentence}", file=sys.stderr)


@cache
def _tell_of_luigid() -> None:
    tell_once(
        StoreError(
            "luigid went away while this run was measured; what is published stays: start luigid again, then give the "
            "same command"
        )
    )


class _OneSentence(logging.Filter):
    """What a user can mend is printed as a sentence; its traceback tells a user nothing more."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, RPCError):
            _tell_of_luigid()
        if error is None or isinstance(error, YarnstickError | RPCError):
            record.exc_info, record.exc_text = None, None
        # Where Luigi plans, the traceback is part of the message.
        if isinstance(record.msg, str) and any(record.msg.rstrip().endswith(sentence) for sentence in _TOLD):
            record.msg = record.msg.partition("\n")[0]
        return True
