"""The cheap parts of preparing Spark's class archives: which are found, and for which installation."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import warm
from store.errors import YarnstickError


def java(folder: Path, says: str, *, code: int = 0) -> Path:
    """A Java that says another version."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "java", "openjdk 17.0.1")))
    return tmp_path / "java"


def archives(cache: Path, *kinds: str) -> Path:
    folder = cache / warm.FOLDER / warm._installation()
    folder.mkdir(parents=True)
    for kind in kinds:
        (folder / f"{kind}.jsa").touch()
    return folder


def test_without_archives_there_are_no_options(home: Path, tmp_path: Path) -> None:
    assert warm.class_archives(tmp_path / "cache") == {}


def test_what_was_made_is_used(home: Path, tmp_path: Path) -> None:
    folder = archives(tmp_path / "a cache", "driver", "executor")
    options = warm.class_archives(tmp_path / "a cache")
    assert options.keys() == {"driver", "executor"}
    assert options["driver"] == f"'-XX:SharedArchiveFile={folder}/driver.jsa' -Xlog:disable"
    (folder / "executor.jsa").unlink()
    assert warm.class_archives(tmp_path / "a cache").keys() == {"driver"}


def test_another_java_does_not_use_them(home: Path, tmp_path: Path) -> None:
    archives(tmp_path / "cache", "driver")
    java(home, "openjdk 21.0.1")
    assert warm.class_archives(tmp_path / "cache") == {}


def test_they_are_made_once(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archives(tmp_path / "cache", "driver")
    warm.make_archives(tmp_path / "cache")
    assert capsys.readouterr().out == ""


def test_no_java_or_a_broken_one_is_a_sentence(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archives(tmp_path, "driver")
    java(home, "broken", code=1)
    with pytest.raises(YarnstickError, match="java does not run: install Java 17"):
        warm.make_archives(tmp_path)
    assert warm.class_archives(tmp_path) == {}, "platforms that need no Java go on"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(YarnstickError, match="no Java: install Java 17"):
        warm.make_archives(tmp_path)
    assert warm.class_archives(tmp_path) == {}


def test_a_rehearsal_that_fails_leaves_nothing(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This Java says its version and starts no Spark."""
    java(home, "openjdk 17.0.1")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYTHONPATH", str(Path(warm.__file__).parent.parent))
    with pytest.raises(YarnstickError, match="Spark does not work here: "):
        warm.make_archives(tmp_path / "cache")
    assert list((tmp_path / "cache" / warm.FOLDER).iterdir()) == []
