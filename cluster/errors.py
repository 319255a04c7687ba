"""What a user can mend: one sentence, and where a daemon died its last lines."""

from __future__ import annotations


class ClusterError(Exception):
    """Says what was found, and what to do."""
