"""Hadoop's own configuration, from the XML files of a client, and how it writes addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from store.errors import SettingError

HOST = r"(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])"
WEB_ADDRESS = re.compile(rf"(?:(?P<scheme>https?)://)?(?P<authority>{HOST}:[0-9]{{1,5}})/?")
VARIABLE = re.compile(r"\$\{([^${}]+)\}")
MOST_SUBSTITUTIONS = 20  # as Hadoop has it
WILDCARDS = ("0.0.0.0", "[::]")  # noqa: S104  # to be replaced, not to be listened on


def given_address(text: str, *, scheme: str) -> str | None:
    """`host:port` of luigi.cfg, with or without its scheme, as an address; None where it is none."""
    found = WEB_ADDRESS.fullmatch(text)
    return f"{found['scheme'] or scheme}://{found['authority']}" if found else None


def read_configuration(folders: Mapping[str, Path], files: Sequence[str]) -> dict[str, str]:
    """All properties of these files, with `${...}` replaced; later folders and files win.

    `folders` are by the variable that names them.
    """
    there = [folder / name for folder in folders.values() for name in files if (folder / name).is_file()]
    if not there:
        told = " and ".join(f"{variable}={folder}" for variable, folder in folders.items())
        raise SettingError(
            f"{told} hold{'s' * (len(folders) == 1)} neither {' nor '.join(files)}; set it to the one that does"
        )
    found: dict[str, str] = {}
    for path in there:
        found |= _properties(path)
    return {name: _replaced(value, found) for name, value in found.items()}


def _properties(path: Path) -> dict[str, str]:
    from xml.etree import ElementTree

    try:
        properties = ElementTree.parse(path).getroot().iter("property")  # noqa: S314  # the user's own Hadoop
    except ElementTree.ParseError as error:
        raise SettingError(f"{path}:{error.position[0]}: this is not XML ({error}); mend it") from None
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from None
    return {(each.findtext("name") or "").strip(): (each.findtext("value") or "").strip() for each in properties}


def _replaced(value: str, configuration: Mapping[str, str]) -> str:
    def known(found: re.Match[str]) -> str:
        name = found[1]
        if name.startswith("env."):
            return os.environ.get(name.removeprefix("env."), "")
        return configuration.get(name, found[0])

    for _ in range(MOST_SUBSTITUTIONS):
        replaced = VARIABLE.sub(known, value)
        if replaced == value:
            break
        value = replaced
    return value


def split_address(address: str) -> tuple[str, str]:
    host, port = re.fullmatch(r"(.*?)(?::([0-9]*))?", address, re.DOTALL).groups()  # type: ignore[union-attr]
    return host, port or ""


def listed_names(configuration: Mapping[str, str], key: str) -> list[str]:
    return [name.strip() for name in configuration.get(key, "").split(",") if name.strip()]
