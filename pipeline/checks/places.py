"""Where things are kept: settings, the store, room on disk, the measuring lease, datasets, leftovers."""

from __future__ import annotations

import configparser
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil

from pipeline.checks.check import Check, bad, fine
from pipeline.cleaning import leftovers, size
from pipeline.config import packaged_file, settings_files
from pipeline.datasets.sources import dataset_slug, source
from pipeline.lease import StillHeldError, holders, lease_file, measuring_lease
from pipeline.luigi_manners import EXIT_CODES
from pipeline.opening import open_store
from pipeline.settings import Settings
from report.words import counted, listed
from store.errors import StoreError
from store.publish import Staging, temporary_name, temporary_owner

SPARE_BYTES = 1_000_000_000  # for runs, work directories and downloads
BYTES_A_CELL = 25  # at most, of a byte-sized cell as text, normalized text and packed


def layers() -> Check:
    own = [str(path) for path, _ in settings_files()]
    if not own:
        return fine(
            f"only the packaged {packaged_file()}: neither ./luigi.cfg nor LUIGI_CONFIG_PATH",
            advice="yarnstick init writes a luigi.cfg here, which the luigi line needs",
        )
    return fine(f"{listed([str(packaged_file()), *own], 'and over it')}")


def exit_codes() -> Check:
    """Whether a scheduler sees a failure: Luigi's own codes for that are 0."""
    found: dict[str, str] = {}
    for path, _ in settings_files():
        parser = configparser.RawConfigParser(strict=False)
        parser.read(path, encoding="utf-8-sig")
        if parser.has_section("retcode"):
            found |= {name: value.strip() for name, value in parser.items("retcode") if name in EXIT_CODES}
    missing = sorted(name for name in EXIT_CODES if found.get(name, "0") in ("", "0"))
    if not missing:
        return fine("all are set in [retcode]")
    return fine(f"[retcode] leaves {listed(missing)} to us: the shipped values are taken at run time")


def keeping(settings: Settings) -> Check:
    """A file and a directory are published, found again and removed, as every trial is."""
    store = open_store(settings)
    folder = f"doctor-{temporary_name().rpartition('.')[2]}"
    try:
        store.write(f"{folder}/file", b"one")
        store.write(f"{folder}/file", b"two")
        with Staging(store, f"{folder}/published") as staging:
            staging.put("part", b"some")
            published = staging.commit()
        with Staging(store, f"{folder}/published") as second:
            second.put("part", b"other")
            twice = second.commit()
        there = [entry.name for entry in store.list(folder)]
        read = store.read(f"{folder}/file"), store.read(f"{folder}/published/part")
        if not published or twice or there != ["file", "published"] or read != (b"two", b"some"):
            raise StoreError(f"{store.url} does not rename atomically; keep the store on a local or POSIX file system")
    finally:
        store.remove(folder)
    return fine(f"{store.url}: written, renamed, read and removed")


def disk(settings: Settings) -> Check:
    """Free bytes where data and runs go, and where work and downloads go."""
    needed = needed_bytes(settings)
    address = urlsplit(settings.store.url)
    here = [Path(unquote(address.path))] if address.scheme == "file" else []  # how full a cluster is, it says itself
    places = [*here, settings.main.cache.absolute()]
    free = {str(path): shutil.disk_usage(_existing(path)).free for path in places}
    said = listed([f"{size(each)} free for {path}" for path, each in free.items()])
    short = [path for path, each in free.items() if each < needed]
    if short:
        return bad(f"{said}, and this profile may need {size(needed)}", advice=f"make room, or move {listed(short)}")
    return fine(f"{said}; at most {size(needed)} are needed")


def needed_bytes(settings: Settings) -> int:
    """What data and runs of this profile may take at most."""
    return SPARE_BYTES + sum(
        BYTES_A_CELL * (about.columns + 1) * (about.train_rows + about.test_rows)
        for name in settings.profile.datasets
        if is_known(name, settings) and not _packed(name, settings)
        for about in (source(name, settings).description(),)
    )


def lease(settings: Settings) -> Check:
    path = lease_file(settings.main.lease)
    try:
        with measuring_lease(path, waiting=lambda: None, patience=0.0):
            return fine(f"free ({path})")
    except StillHeldError:
        who = listed([_process(pid) for pid in holders(path)]) or "a process that cannot be seen"
        return fine(f"held by {who} ({path})", advice="a trial is being measured; a new run waits until it has ended")


def dataset(name: str, settings: Settings) -> Check:
    """Whether a run finds it here. Nothing is fetched for the answer."""
    if not is_known(name, settings):
        source(name, settings)  # an unknown name is an error with its sentence
        return fine(
            f"{name}: not here yet, a run fetches it first", advice=f"yarnstick data {name} fetches it ahead of time"
        )
    about = source(name, settings).description()
    rows = f"{about.train_rows:,} and {about.test_rows:,} rows of {about.columns} columns, {about.classes} classes"
    if _packed(name, settings):
        return fine(f"{name}, {rows}: packed in the store")
    if _is_image_set(name) and not _is_cached(name, settings):
        return fine(
            f"{name}, {rows}: not here yet, a run fetches it first",
            advice=f"yarnstick data {name} fetches it ahead of time",
        )
    return fine(f"{name}, {rows}: a run packs it first")


def left(settings: Settings) -> Check:
    """What dead processes left: files, and children that outlived them."""
    orphans = _orphans(settings)
    if orphans:
        named = listed([_process(pid) for pid in orphans])
        return bad(
            f"a run is dead, and what it started is still there: {named}",
            advice=f"end with kill {' '.join(map(str, orphans))}",
        )
    found = leftovers(settings)
    if not found:
        return fine("none")
    total = sum(each.bytes for each in found)
    return fine(f"{counted(len(found), 'leftover')} of dead processes, {size(total)}", advice="yarnstick runs clean")


def _orphans(settings: Settings) -> list[int]:
    """Processes that work in the directory of an owner who is gone."""
    work = str(settings.main.cache.absolute() / "work")
    found = []
    for process in psutil.process_iter(["cmdline"]):
        for argument in process.info["cmdline"] or []:
            if argument.startswith(work):
                owner = temporary_owner(Path(argument).relative_to(work).parts[0]) if argument != work else None
                if owner is not None and not psutil.pid_exists(owner.pid):
                    found.append(process.pid)
                    break
    return found


def _packed(name: str, settings: Settings) -> bool:
    return open_store(settings).exists(f"data/{dataset_slug(source(name, settings), settings)}/packed/train")


def is_known(name: str, settings: Settings) -> bool:
    """Whether it can be described without being fetched."""
    return not _is_image_set(name) or _is_cached(name, settings) or name == "mnist"


def _is_image_set(name: str) -> bool:
    return ":" not in name


def _is_cached(name: str, settings: Settings) -> bool:
    folder = settings.main.cache / name
    return folder.is_dir() and any(path.suffix == ".bin" for path in folder.iterdir())


def _existing(path: Path) -> Path:
    """It or the nearest directory above that is there."""
    return next(each for each in (path, *path.parents) if each.is_dir())


def _process(pid: int) -> str:
    try:
        command = " ".join(psutil.Process(pid).cmdline()[:4])
    except psutil.Error:
        command = "not to be seen"
    return f"process {pid} ({command})"
