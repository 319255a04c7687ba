"""What a shell offers after Tab: profiles, runs, settings and their values as they are here. Never an error."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from typing import Any, Literal, get_args, get_origin

import typer

from store.errors import YarnstickError

BASH = "complete_bash"
INSTRUCTION = "_YARNSTICK_COMPLETE"
# Their values are names that are not in the type.
NAMED = ("platforms", "datasets", "master")

Completer = Callable[[typer.Context, str], list[str]]


def quiet(completer: Completer) -> Completer:
    """Whoever presses Tab wants no error of a settings file or a store: nothing is offered then."""

    @wraps(completer)
    def offered(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return [each for each in completer(ctx, incomplete) if each.startswith(incomplete)]
        except (YarnstickError, OSError):
            return []

    return offered


@quiet
def profiles(ctx: typer.Context, incomplete: str) -> list[str]:
    from pipeline.config import profile_names

    return profile_names()


@quiet
def run_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Of the store that this command line would use, newest name last."""
    from pipeline.config import read_settings
    from pipeline.opening import open_store

    given: dict[str, Any] = ctx.params
    settings = read_settings("default", overrides=given.get("set_") or [], store=given.get("store"))
    return [entry.name for entry in open_store(settings, retry_seconds=0).list("runs") if entry.is_directory]


def overrides(ctx: typer.Context, incomplete: str) -> list[str]:
    """`section.key=`, and after that the values that the key may have."""
    return _values(ctx, incomplete) if "=" in incomplete else _keys(ctx, incomplete)


@quiet
def _keys(ctx: typer.Context, incomplete: str) -> list[str]:
    from pipeline.config import setting_names

    return [f"{name}=" for name in setting_names()]


@quiet
def _values(ctx: typer.Context, incomplete: str) -> list[str]:
    """Of a list, the value that is typed now: those before it stay."""
    from pipeline.config import setting_type

    name, _, typed = incomplete.partition("=")
    before = typed[: typed.rfind(" ") + 1]
    key = name.rpartition(".")[2]
    values = _named(key) if key in NAMED else _literals(setting_type(name))
    return [f"{name}={before}{value}" for value in values]


def _named(key: str) -> list[str]:
    if key == "platforms":
        from models.protocol import names

        return names()
    if key == "master":
        return ["local-cluster", "yarn", "spark://"]
    from pipeline.datasets.sources import KNOWN

    return [known.partition(":")[0] + (":" if ":" in known else "") for known in KNOWN]


def _literals(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [str(value) for value in get_args(hint)]
    if hint is bool:
        return ["true", "false"]
    return [value for part in get_args(hint) for value in _literals(part)]


@contextmanager
def words_of_bash() -> Iterator[None]:
    """Bash splits words at each `=`: they are put together before they are read, and what is offered is split again."""
    if os.environ.get(INSTRUCTION) != BASH:
        yield
        return
    words, place = os.environ.get("COMP_WORDS", "").split("\n"), int(os.environ.get("COMP_CWORD", "0"))
    joined, last = _joined(words[: place + 1])
    os.environ |= {"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(len(joined) - 1)}
    offered = io.StringIO()
    try:
        with redirect_stdout(offered):
            yield
    finally:
        for line in offered.getvalue().splitlines():
            print(line.removeprefix(last))


def _joined(words: Sequence[str]) -> tuple[list[str], str]:
    """Whole words, and what of the last one bash does not take for a part of it."""
    joined: list[str] = []
    after = False  # the last one was an =
    for word in words:
        if joined and (after or word == "="):
            joined[-1] += word
        else:
            joined.append(word)
        after = word == "="
    name, equals, _ = joined[-1].partition("=") if joined else ("", "", "")
    return joined, name + equals if equals else ""
