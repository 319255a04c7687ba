"""What Luigi does not do by itself: exit codes that tell a failure, and no traceback for what a user can mend."""

from __future__ import annotations

import logging
import sys
from functools import cache

from luigi.retcodes import retcode

from store.errors import YarnstickError

# As in the [retcode] section that luigi.cfg ships with; Luigi's own are 0.
EXIT_CODES = {
    "already_running": 10,
    "missing_data": 20,
    "not_run": 25,
    "task_failed": 1,
    "scheduling_error": 35,
    "unhandled_exception": 4,
}


def fail_loudly() -> None:
    """Give each exit code that the user's luigi.cfg leaves at 0 its shipped value.

    Luigi has read them by now, but keeps one object of them, which is this one.
    """
    codes = retcode()
    for name, code in EXIT_CODES.items():
        if getattr(codes, name) == 0:
            setattr(codes, name, code)
    log = logging.getLogger("luigi-interface")
    if not any(isinstance(each, _OneSentence) for each in log.filters):
        log.addFilter(_OneSentence())


@cache
def tell_once(error: YarnstickError) -> None:
    """One that stops many tasks is still one sentence."""
    print(f"Error: {error}", file=sys.stderr)


class _OneSentence(logging.Filter):
    """Errors of ours have been printed as a sentence; their traceback tells a user nothing more."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, YarnstickError):
            record.exc_info, record.exc_text = None, None
        return True
