"""The only reader of luigi.cfg. Everything after it receives frozen, checked values."""

from __future__ import annotations

import configparser
import difflib
import json
import math
import os
import re
import shlex
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from models.target import FORM, Target
from pipeline.settings import (
    LARGEST,
    MAY_BE_EMPTY,
    SECTIONS,
    Accuracy,
    Archive,
    Master,
    Profile,
    Settings,
    Url,
    attribute,
)
from store.addresses import SCHEMES, checked_url, is_on_hdfs
from store.errors import SettingError
from yarn.shipped import SUFFIXES

PACKAGED = Path(__file__).with_name("luigi.cfg")
BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
PROFILE = re.compile(r"profile\..+")
SPARK_URL = re.compile(r"spark://[^\s:/,]+:\d+(,[^\s:/,]+:\d+)*")  # several, where one is on standby
HEADER = re.compile(r"\[(?P<name>.+)\]")
UNREADABLE: dict[type[Exception], str] = {
    configparser.MissingSectionHeaderError: "no section stands above this line; write [yarnstick] above it",
    configparser.DuplicateSectionError: "this section is there twice; put its keys into one",
    configparser.DuplicateOptionError: "this key is there twice in its section; keep one",
    UnicodeDecodeError: "the file is not UTF-8; save it as UTF-8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One value as it was written, and where."""

    text: str
    origin: str  # the file, or --set
    folder: Path  # from which a relative path counts


def read_settings(profile: str, *, overrides: Iterable[str] = (), store: str | None = None) -> Settings:
    """Read all layers; `overrides` are `section.key=value` of the command line."""
    return _settings(profile, _layers(), [_override(text) for text in overrides], origin="--set", store=store)


def read_settings_json(profile: str, settings: Mapping[str, Any]) -> Settings:
    """As `read_settings`, with the `--settings` object of the `luigi` line."""
    given = [_json_override(*each) for each in settings.items()]
    return _settings(profile, _layers(), given, origin="--settings", store=None)


def overrides_json(overrides: Iterable[str], *, store: str | None) -> str:
    """`--set` and `--store` of the command line as the object that the `luigi` line takes."""
    given = {f"{section}.{key}": text for section, key, text in map(_override, overrides)}
    if store is not None:
        given["yarnstick.store.url"] = store
    return json.dumps(given)


def has_own_configuration() -> bool:
    return Path("luigi.cfg").is_file() or bool(os.environ.get("LUIGI_CONFIG_PATH"))


def shipped_settings(profile: str) -> Settings:
    """As the packaged file alone has them; a profile that it does not have is its default by another name."""
    layers = _layers(own=False)
    layers.setdefault(f"profile.{profile}", {})
    return _settings(profile, layers, [], origin="", store=None)


def settings_files() -> list[tuple[Path, Path]]:
    """The user's own, the last of which wins, each with the directory from which its relative paths count."""
    files = [(Path("luigi.cfg").absolute(), Path.cwd())] if Path("luigi.cfg").is_file() else []
    if named := os.environ.get("LUIGI_CONFIG_PATH"):
        path = Path(named).absolute()
        if not path.is_file():
            raise SettingError(f"LUIGI_CONFIG_PATH={named}: no such file; correct or unset it")
        files.append((path, path.parent))
    return files


def profile_names() -> list[str]:
    return sorted(name.partition(".")[2] for name in _layers() if name.startswith("profile."))


def setting_names() -> list[str]:
    """Every section.key that `--set` takes, without the `yarnstick.` that may be left out."""
    profiles = [f"profile.{name}.{key}" for name in profile_names() for key in _hints("profile.")]
    ours = [f"{section}.{key}".removeprefix("yarnstick.") for section in SECTIONS for key in _hints(section)]
    return sorted([*profiles, *ours])


def setting_type(name: str) -> Any:
    """What may be written into a setting, as its type; None of one that is not known."""
    section, key = _place(name)
    return _hints(section).get(key) if section in SECTIONS or PROFILE.fullmatch(section) else None


def _layers(*, own: bool = True) -> dict[str, dict[str, Given]]:
    values: dict[str, dict[str, Given]] = {}
    # The relative paths of the packaged file are the working directory's.
    for path, folder in [(packaged_file(), Path.cwd()), *(settings_files() if own else [])]:
        content, sections = _read_file(path)
        for section, keys in sections.items():
            for key, text in keys.items():
                origin = _where(path, content, section, key)
                _check_known(section, key, origin=origin)
                values.setdefault(section, {})[key] = Given(text=text, origin=origin, folder=folder)
    return values


def packaged_file() -> Path:
    """Inside an installed package, or at the top of a checkout."""
    return PACKAGED if PACKAGED.is_file() else PACKAGED.parent.parent / "luigi.cfg"


def _read_file(path: Path) -> tuple[str, dict[str, dict[str, str]]]:
    """The text of a file, and what it says by section and key."""
    # No section is special: a [DEFAULT], which Luigi knows too, adds nothing to ours.
    parser = configparser.RawConfigParser(strict=True, default_section="")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        content = path.read_text(encoding="utf-8-sig")
        parser.read_string(content, source=str(path))
    except (configparser.Error, UnicodeDecodeError) as error:
        # configparser's messages quote the line, which may hold a secret.
        line = getattr(error, "lineno", None) or next((number for number, _ in getattr(error, "errors", [])), None)
        reason = UNREADABLE.get(type(error), "is not a line of a settings file; write key = value")
        raise SettingError(f"{path}{f':{line}' if line else ''}: {reason}") from None
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from None
    return content, {section: dict(parser.items(section)) for section in parser.sections()}


def _where(path: Path, content: str, section: str, key: str) -> str:
    """File and line of a key."""
    inside = False
    for number, line in enumerate(content.split("\n"), 1):
        if header := HEADER.match(line):
            inside = header["name"] == section
        elif inside and line.replace(":", "=").partition("=")[0].strip() == key:
            return f"{path}:{number}"
    return str(path)


def _override(text: str) -> tuple[str, str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SettingError("--set takes section.key=value, as in --set profile.quick.trials=5")
    return (*_place(name.strip()), value.strip())


def _json_override(name: str, value: Any) -> tuple[str, str, str]:
    """A value of JSON as it would be written in luigi.cfg."""
    section, key = _place(name)
    if value is None or isinstance(value, str):
        return section, key, value or ""
    _check_known(section, key, origin="--settings")
    hint = get_origin(_hints(section)[key])
    if isinstance(value, Mapping) and hint is not dict:
        raise SettingError(f"--settings: {section}.{key} is given a JSON object; {_allowed(_hints(section)[key])}")
    if isinstance(value, list | tuple) and hint is not tuple:
        raise SettingError(f"--settings: {section}.{key} is given a JSON list; {_allowed(_hints(section)[key])}")
    return section, key, json.dumps(value, default=dict)


def _place(name: str) -> tuple[str, str]:
    """Section and key of a dotted name; `yarnstick.` may be left out, and a bare key is in [yarnstick]."""
    section, _, key = name.rpartition(".")
    if not section:
        return "yarnstick", key
    return (section if _is_ours(section) else f"yarnstick.{section}"), key


def _is_ours(section: str) -> bool:
    return section.split(".")[0] in ("yarnstick", "profile")


def _check_known(section: str, key: str, *, origin: str) -> None:
    """Unknown names of ours are refused with the nearest known one; the value is never printed."""
    if section not in SECTIONS and not PROFILE.fullmatch(section):
        names = [*SECTIONS, "profile.NAME"]
        near = difflib.get_close_matches(section, names, n=1, cutoff=0.8)
        if not _is_ours(section) and not near:
            return  # one of Luigi's own
        near = near or difflib.get_close_matches(section, names, n=1, cutoff=0.0)
        raise SettingError(f"{origin}: section [{_shown(section)}] is not known; the nearest is [{near[0]}]")
    known = _hints(section)
    if key not in known:
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
        raise SettingError(f"{origin}: [{_shown(section)}] has no key {_shown(key)}; the nearest is {near[0]}")


def _hints(section: str) -> dict[str, Any]:
    return get_type_hints(SECTIONS.get(section, Profile), include_extras=True)


def _settings(
    profile: str,
    values: dict[str, dict[str, Given]],
    overrides: list[tuple[str, str, str]],
    *,
    origin: str,
    store: str | None,
) -> Settings:
    for section, key, text in overrides:
        _check_known(section, key, origin=origin)
        values.setdefault(section, {})[key] = Given(text=text, origin=origin, folder=Path.cwd())
    given = {f"{section}.{key}" for section, key, _ in overrides}
    if store is not None:
        given.add("yarnstick.store.url")
        values["yarnstick.store"]["url"] = Given(text=store, origin="--store", folder=Path.cwd())
    named = f"profile.{profile}"
    if named not in values:
        known = sorted(name.partition(".")[2] for name in values if name.startswith("profile."))
        raise SettingError(f"profile {profile!r} is not in luigi.cfg; known are {', '.join(known)}")
    parts = {attribute(name): _convert(name, kind, values[name]) for name, kind in SECTIONS.items()}
    whole = _convert(named, Profile, values["profile.default"] | values[named])
    return msgspec.convert({"profile_name": profile, "profile": whole, "given": frozenset(given), **parts}, Settings)


def _convert(section: str, kind: type[Struct], values: Mapping[str, Given]) -> Struct:
    parsed = {}
    for key, hint in _hints(section).items():
        given = values[key]
        try:
            parsed[key] = msgspec.convert(_parse(key, hint, given), hint, strict=False)
            _check_finite(parsed[key])
        except (msgspec.MsgspecError, ValueError, RuntimeError):
            # RuntimeError: a ~user who is not there, and JSON nested without end.
            value = f"= {_shown(given.text)}" if given.text.strip() else "is empty"
            raise SettingError(f"{given.origin}: {section}.{key} {value}: {_allowed(hint)}") from None
        if parsed[key] == () and key not in MAY_BE_EMPTY:
            raise SettingError(f"{given.origin}: {section}.{key} is empty: {_allowed(hint)}")
    return kind(**parsed)


def _parse(key: str, hint: Any, given: Given) -> Any:
    """From text to what msgspec can convert."""
    text = given.text.strip()
    text.encode()  # refuses lone surrogates, as which bytes that are not UTF-8 arrive
    if get_origin(hint) is tuple:
        items = [_item(key, item, given) for item in _split(text)]
        return _accuracies(items) if get_args(hint)[0] is Accuracy else items
    if get_origin(hint) is dict:
        return msgspec.json.decode(text or "{}", strict=False)
    if hint is Path or hint == Path | None:
        return _path(text, given) if text else None
    if hint is Url:
        return _store_url(text, given)
    if hint is Archive:
        return _archive(text, given)
    if hint is Master:
        return _master(text)
    if hint is bool:
        return configparser.RawConfigParser.BOOLEAN_STATES.get(text.lower())
    if hint is str:
        return text
    return text or None


def _path(text: str, given: Given) -> Path:
    if "\0" in text:
        raise ValueError("no path holds a NUL")
    return given.folder / Path(text).expanduser()


def _archive(text: str, given: Given) -> str:
    if text and not text.endswith(SUFFIXES):
        raise ValueError("YARN would not unpack it")
    if is_on_hdfs(text):
        return checked_url(text)
    return str(_path(text, given).absolute()) if text else ""


def _master(text: str) -> str:
    if text not in ("local-cluster", "yarn") and not SPARK_URL.fullmatch(text):
        raise ValueError("Spark would take it for something else, or for nothing")
    return text


def _check_finite(value: Any) -> None:
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, float) and not math.isfinite(each):
            raise ValueError("not a finite number")


def _allowed(hint: Any) -> str:
    """What a key may hold, as the end of a sentence."""
    return f"write {_described(hint)}"


def _described(hint: Any) -> str:
    plain, *bounds = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    origin, parts = get_origin(plain), get_args(plain)
    if origin is tuple:
        each = _described(parts[0]).replace(", or leave it empty", " or full")
        return f"a list (by white space, quoted as in a shell, or JSON), each {each}"
    if origin in (Union, types.UnionType):
        return f"{_described(parts[0])}, or leave it empty"
    if origin is Literal:
        return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
    if origin is dict:
        return 'a JSON object of texts, as in {"spark.ui.port": "4050"}'
    if hint is Accuracy:
        return f"{FORM}, above 0 and at most 1 and given once"
    if hint is Url:
        return "a directory, file:///..., hdfs://NAME/path, webhdfs://host:port/path or swebhdfs://host:port/path"
    if hint is Archive:
        return f"a path or an address on HDFS that ends in {' or '.join(SUFFIXES)}, or leave it empty"
    if hint is Master:
        return "local-cluster, yarn or spark://HOST:PORT"
    name = {int: "a whole number", float: "a finite number", bool: "true or false", Path: "a path"}.get(plain, "a text")
    limits = [
        f"{word} {limit:g}"
        for meta in bounds
        for bound, word in BOUNDS.items()
        if (limit := getattr(meta, bound)) not in (None, LARGEST)
    ]
    return f"{name}, {' and '.join(limits)}" if limits else name


def _shown(text: str) -> str:
    """A message is one line of what a terminal can show."""
    return text if text.isprintable() else ascii(text)


def _split(text: str) -> list[Any]:
    if text.startswith("["):
        items: list[Any] = msgspec.json.decode(text)
        return items
    return shlex.split(text)


def _item(key: str, item: Any, given: Given) -> Any:
    if key == "batch_sizes" and item == "full":
        return None
    if key in ("datasets", "accuracies") and isinstance(item, str):
        kind, _, path = item.partition(":")
        if kind in ("csv", "parquet") and path and not is_on_hdfs(path):
            return f"{kind}:{_path(path, given)}"
    return item


def _accuracies(items: list[Any]) -> list[Any]:
    """As they are written; none for the same dataset and network twice."""
    try:
        parsed = [Target.parse(str(item)) for item in items]
    except SettingError as error:
        raise ValueError(str(error)) from None
    if len({(each.dataset, each.network) for each in parsed}) < len(items):
        raise ValueError("one is given twice")
    return items


def _store_url(text: str, given: Given) -> str:
    """A directory as a file:// address, with a relative path made absolute; an address of HDFS in its one spelling."""
    address = urlsplit(text)
    if address.scheme in SCHEMES:
        return checked_url(text)
    if len(address.scheme) > 1:
        if address.scheme != "file" or address.netloc not in ("", "localhost"):
            raise ValueError("not an address of ours")
        text = unquote(address.path, errors="strict")
    if not text:
        raise ValueError("empty")
    return _path(text, given).absolute().as_uri()
