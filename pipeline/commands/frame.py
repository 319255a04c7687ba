"""What all commands have in common: their options, and errors as one sentence. Imports nothing heavy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.completion import overrides, profiles, run_ids
from store.errors import YarnstickError

if TYPE_CHECKING:
    from pipeline.settings import Settings

INTERRUPTED = 130  # as a shell says it of Ctrl-C

ProfileOption = Annotated[
    str, typer.Option("--profile", help="A [profile.NAME] of luigi.cfg.", autocompletion=profiles)
]
StoreOption = Annotated[str | None, typer.Option("--store", help="Where data and runs are kept.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="A setting, over luigi.cfg.", autocompletion=overrides),
]
RunOption = Annotated[
    str | None,
    typer.Option("--run-id", help="Names the run; an unfinished one is continued.", autocompletion=run_ids),
]
KnownRunOption = Annotated[str, typer.Option("--run-id", help="Which run.", autocompletion=run_ids)]
KnownRun = Annotated[str, typer.Argument(metavar="RUN", help="The id of a run.", autocompletion=run_ids)]
JsonOption = Annotated[bool, typer.Option("--json", help="As JSON on standard output, for scripts.")]


def sentences(command: Callable[..., None]) -> Callable[..., None]:
    """What a user can mend is told in one line, and so is the end by Ctrl-C."""

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except YarnstickError as error:
            print(f"Error: {error}", file=sys.stderr)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            print("Interrupted.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None

    return guarded


def settings_given(profile: str, store: str | None, overrides: list[str] | None) -> tuple[Settings, str]:
    """The settings, and the same overrides as the JSON that tasks take."""
    from pipeline.config import overrides_json, read_settings

    overrides = overrides or []
    return read_settings(profile, overrides=overrides, store=store), overrides_json(overrides, store=store)


def print_json(value: Any) -> None:
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=1).decode())
