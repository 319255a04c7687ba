"""The verdict of one check: ok, ok with a note, or failed; never an exception."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from store.errors import YarnstickError


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`advice` is what to do; of one that is ok it is only worth knowing."""

    check: str
    ok: bool
    detail: str
    advice: str | None = None

    @property
    def word(self) -> str:
        return "FAIL" if not self.ok else "note" if self.advice else "ok"


def fine(detail: str, *, advice: str | None = None) -> Check:
    return Check(check="", ok=True, detail=detail, advice=advice)


def bad(detail: str, *, advice: str) -> Check:
    return Check(check="", ok=False, detail=detail, advice=advice)


def checked(name: str, look: Callable[[], Check]) -> Check:
    """What a check found, under its name. One that breaks has failed, and the others go on."""
    try:
        return replace(look(), check=name)
    except YarnstickError as error:
        # Our sentences end with what to do.
        detail, _, advice = str(error).partition("; ")
        return Check(check=name, ok=False, detail=detail, advice=advice or "mend that and look again")
    except Exception as error:  # whatever a strange machine does to a check
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return Check(check=name, ok=False, detail=what, advice="this check itself broke: please report it")
