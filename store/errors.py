"""The errors a user can mend. Each is one sentence: what was given, what is allowed, what to do."""

from __future__ import annotations


class YarnstickError(Exception):
    """The base of all of them; the command line prints it as one `Error: ...` line."""


class SettingError(YarnstickError):
    """A setting is unknown, malformed or beyond a limit."""


class DataError(YarnstickError):
    """A file does not hold what it should; the sentence names the file and the line or byte."""


class StoreError(YarnstickError):
    """The store refused, or holds something it should not."""


class ClusterError(YarnstickError):
    """YARN refused, or is not to be reached."""


class TrialError(YarnstickError):
    """A trial could not be trained."""


class UnfinishedError(YarnstickError):
    """The run ended, its report is published, and yet not all of it succeeded."""


class RegressionError(YarnstickError):
    """The newest run of a profile is slower than those before it."""
