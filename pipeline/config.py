"""The only reader of luigi.cfg. Everything after it receives frozen, checked values."""

from __future__ import annotations

import configparser
import difflib
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin, get_type_hints
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Meta, Struct

from store.errors import SettingError

Whole = Annotated[int, Meta(ge=1)]
Fraction = Annotated[float, Meta(gt=0, le=1)]
Inner = Annotated[float, Meta(gt=0, lt=1)]
PACKAGED = Path(__file__).with_name("luigi.cfg")


class Main(Struct, frozen=True, kw_only=True):
    seed: int
    scale: Literal["global", "pixel"]
    machine: str
    cache: Path
    noisy_share: Inner
    noisy_repeats: Annotated[int, Meta(ge=0, le=10)]
    lease: Path | None


class StoreSettings(Struct, frozen=True, kw_only=True):
    url: str


class Baseline(Struct, frozen=True, kw_only=True):
    platform: str
    precision: str
    threads: Whole


class Csv(Struct, frozen=True, kw_only=True):
    label: Literal["last", "first"]
    header: bool
    test_fraction: Inner
    split_seed: Annotated[int, Meta(ge=0)]
    classes: Annotated[int, Meta(ge=2)] | None
    minimum: float | None
    maximum: float | None
    longest_line_bytes: Annotated[int, Meta(ge=1024)]


class Mnist(Struct, frozen=True, kw_only=True):
    path: Path | None
    source_seconds: Annotated[float, Meta(gt=0)]


class MapReduce(Struct, frozen=True, kw_only=True):
    runner: Literal["inline", "local"]


class Spark(Struct, frozen=True, kw_only=True):
    master: Literal["local-cluster"]
    conf: dict[str, str]


class Profile(Struct, frozen=True, kw_only=True):
    datasets: tuple[str, ...]
    networks: tuple[str, ...]
    platforms: tuple[str, ...]
    solvers: tuple[Literal["gd", "l-bfgs", "sgd", "momentum", "adam"], ...]
    learning_rates: tuple[Annotated[float, Meta(gt=0)], ...]
    executors: tuple[Whole, ...]
    cores: tuple[Whole, ...]
    memory_mib: tuple[Whole, ...]
    threads: tuple[Whole, ...]
    workers: tuple[Whole, ...]
    partitions: tuple[Whole, ...]
    batch_sizes: tuple[Whole | None, ...]
    precisions: tuple[Literal["float64", "float32", "bfloat16"], ...]
    gradients: tuple[Literal["autograd"], ...]
    deploy_modes: tuple[Literal["client"], ...]
    fractions: tuple[Fraction, ...]
    epochs: Whole
    trials: Whole
    session: Literal["shared", "own"]


SECTIONS: dict[str, type[Struct]] = {
    "yarnstick": Main,
    "yarnstick.store": StoreSettings,
    "yarnstick.baseline": Baseline,
    "yarnstick.csv": Csv,
    "yarnstick.mnist": Mnist,
    "yarnstick.mapreduce": MapReduce,
    "yarnstick.spark": Spark,
}
# Lists that may be empty; of all others at least one value is needed.
MAY_BE_EMPTY = {"workers", "partitions"}
# What does not change a result may differ between two calls of one run.
INCIDENTAL = {"yarnstick.cache", "yarnstick.lease", "yarnstick.store.url", "yarnstick.mnist.source_seconds"}


class Settings(Struct, frozen=True, kw_only=True):
    """All of luigi.cfg for one profile."""

    profile_name: str
    main: Main
    store: StoreSettings
    baseline: Baseline
    csv: Csv
    mnist: Mnist
    mapreduce: MapReduce
    spark: Spark
    profile: Profile

    def fingerprint(self) -> dict[str, Any]:
        """Every setting that a result depends on, by its full name."""
        sections = {f"profile.{self.profile_name}": self.profile}
        sections |= {name: getattr(self, _attribute(name)) for name in SECTIONS}
        return {
            f"{section}.{key}": value
            for section, values in sections.items()
            for key, value in msgspec.to_builtins(values, enc_hook=str).items()
            if f"{section}.{key}" not in INCIDENTAL
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One value as it was written, and where."""

    text: str
    origin: str  # the file, or --set
    folder: Path  # from which a relative path counts


def read_settings(profile: str, *, overrides: Iterable[str] = (), store: str | None = None) -> Settings:
    """Read all layers; `overrides` are `section.key=value` of the command line."""
    return _settings(profile, _layers(), [_override(text) for text in overrides], store)


def read_settings_json(profile: str, settings: Mapping[str, Any]) -> Settings:
    """As `read_settings`, with the `--settings` object of the `luigi` line."""
    given = [
        (*_place(name), value if isinstance(value, str) else msgspec.json.encode(value).decode())
        for name, value in settings.items()
    ]
    return _settings(profile, _layers(), given, None)


def has_own_configuration() -> bool:
    return Path("luigi.cfg").is_file() or bool(os.environ.get("LUIGI_CONFIG_PATH"))


def _layers() -> dict[str, dict[str, Given]]:
    values: dict[str, dict[str, Given]] = {}
    layers = [(_packaged(), Path.cwd())]
    if Path("luigi.cfg").is_file():
        layers.append((Path("luigi.cfg").absolute(), Path.cwd()))
    if named := os.environ.get("LUIGI_CONFIG_PATH"):
        path = Path(named).absolute()
        if not path.is_file():
            raise SettingError(f"LUIGI_CONFIG_PATH={named}: no such file")
        layers.append((path, path.parent))
    for path, folder in layers:
        for section, keys in _read_file(path).items():
            for key, text in keys.items():
                _check_known(section, key, origin=_where(path, section, key), sections=values)
                values.setdefault(section, {})[key] = Given(text=text, origin=_where(path, section, key), folder=folder)
    return values


def _packaged() -> Path:
    """Inside an installed package, or at the top of a checkout."""
    return PACKAGED if PACKAGED.is_file() else PACKAGED.parent.parent / "luigi.cfg"


def _read_file(path: Path) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(path.read_text(encoding="utf-8"), source=str(path))
    except (configparser.Error, UnicodeDecodeError) as error:
        # configparser's messages quote the line, which may hold a secret.
        line = getattr(error, "lineno", None) or next((number for number, _ in getattr(error, "errors", [])), None)
        kind = type(error).__name__
        raise SettingError(f"{path}{f':{line}' if line else ''} is not a settings file ({kind})") from None
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from None
    return {section: dict(parser.items(section)) for section in parser.sections()}


def _where(path: Path, section: str, key: str) -> str:
    """File and line of a key."""
    inside = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("["):
            inside = line.strip() == f"[{section}]"
        elif inside and line.replace(":", "=").partition("=")[0].strip() == key:
            return f"{path}:{number}"
    return str(path)


def _override(text: str) -> tuple[str, str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SettingError(f"--set {name!r}: write --set section.key=value")
    return (*_place(name.strip()), value.strip())


def _place(name: str) -> tuple[str, str]:
    """Section and key of a dotted name; `yarnstick.` may be left out, and a bare key is in [yarnstick]."""
    section, _, key = name.rpartition(".")
    if not section:
        return "yarnstick", key
    return (section if _is_ours(section) else f"yarnstick.{section}"), key


def _is_ours(section: str) -> bool:
    return section.split(".")[0] in ("yarnstick", "profile")


def _check_known(section: str, key: str, *, origin: str, sections: Mapping[str, Any]) -> None:
    """Unknown names of ours are refused with the nearest known one; the value is never printed."""
    if section.startswith("profile."):
        known: Iterable[str] = Profile.__struct_fields__
    elif section in SECTIONS:
        known = SECTIONS[section].__struct_fields__
    else:
        near = difflib.get_close_matches(section, SECTIONS, n=1, cutoff=0.8)
        if not _is_ours(section) and not near:
            return  # one of Luigi's own
        near = near or difflib.get_close_matches(section, SECTIONS, n=1, cutoff=0.0)
        raise SettingError(f"{origin}: section [{section}] is not known; the nearest is [{near[0]}]")
    if key not in known:
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
        raise SettingError(f"{origin}: [{section}] has no key {key}; the nearest is {near[0]}")


def _settings(
    profile: str, values: dict[str, dict[str, Given]], overrides: list[tuple[str, str, str]], store: str | None
) -> Settings:
    for section, key, text in overrides:
        _check_known(section, key, origin="--set", sections=values)
        values.setdefault(section, {})[key] = Given(text=text, origin="--set", folder=Path.cwd())
    if store is not None:
        values["yarnstick.store"]["url"] = Given(text=store, origin="--store", folder=Path.cwd())
    named = f"profile.{profile}"
    if named not in values:
        known = sorted(name.partition(".")[2] for name in values if name.startswith("profile."))
        raise SettingError(f"profile {profile!r} is not in luigi.cfg; known are {', '.join(known)}")
    parts = {_attribute(name): _convert(name, kind, values[name]) for name, kind in SECTIONS.items()}
    whole = _convert(named, Profile, values["profile.default"] | values[named])
    return msgspec.convert({"profile_name": profile, "profile": whole, **parts}, Settings)


def _attribute(section: str) -> str:
    return section.partition(".")[2] or "main"


def _convert(section: str, kind: type[Struct], values: Mapping[str, Given]) -> Struct:
    hints = get_type_hints(kind, include_extras=True)
    parsed = {}
    for key, hint in hints.items():
        given = values[key]
        try:
            parsed[key] = msgspec.convert(_parse(key, hint, given), hint, strict=False)
        except (msgspec.ValidationError, ValueError) as error:
            reason = str(error).partition(" - at")[0].replace("`", "")
            raise SettingError(f"{given.origin}: {section}.{key} = {given.text}: {reason}") from None
        if parsed[key] == () and key not in MAY_BE_EMPTY:
            raise SettingError(f"{given.origin}: {section}.{key} is empty; give at least one value")
    if section == "yarnstick.store":
        parsed["url"] = _store_url(values["url"])
    return kind(**parsed)


def _parse(key: str, hint: Any, given: Given) -> Any:
    """From text to what msgspec can convert."""
    text = given.text.strip()
    if get_origin(hint) is tuple:
        return [_item(key, item, given) for item in _split(text)]
    if get_origin(hint) is dict:
        return msgspec.json.decode(text or "{}", strict=False)
    if hint is Path or hint == Path | None:
        return given.folder / Path(text).expanduser() if text else None
    if hint is bool:
        states = configparser.RawConfigParser.BOOLEAN_STATES
        if text.lower() not in states:
            raise ValueError("expected true or false")
        return states[text.lower()]
    if hint is str:
        return text
    return text or None


def _split(text: str) -> list[Any]:
    if text.startswith("["):
        items = msgspec.json.decode(text)
        return items if isinstance(items, list) else [items]
    return shlex.split(text)


def _item(key: str, item: Any, given: Given) -> Any:
    if key == "batch_sizes" and item == "full":
        return None
    if key == "datasets" and isinstance(item, str):
        kind, _, path = item.partition(":")
        if kind in ("csv", "parquet") and path:
            return f"{kind}:{given.folder / Path(path).expanduser()}"
    return item


def _store_url(given: Given) -> str:
    """A directory as a file:// address, with a relative path made absolute."""
    text = given.text.strip()
    address = urlsplit(text)
    if len(address.scheme) > 1 and address.scheme != "file":
        raise SettingError(f"{given.origin}: yarnstick.store.url = {text}: write a directory or file://...")
    if address.scheme == "file":
        text = unquote(address.path)
    if not text:
        raise SettingError(f"{given.origin}: yarnstick.store.url is empty; give a directory")
    return (given.folder / Path(text).expanduser()).absolute().as_uri()
